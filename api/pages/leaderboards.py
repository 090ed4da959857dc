"""Leaderboards: the newest places of every stage, and each board by itself."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.boards import whole_board
from api.catalog import Standing, standings
from api.dependencies import StageCatalog, StageName, Viewer
from api.leaderboard import Each, Entry, Places
from api.negotiation import HtmlRoute
from api.pages.drawings.places import marks_of, placed, scale_of, spread
from api.pages.onward import may_read_solution
from api.pages.people import public_among
from api.pages.right_first import Right, right_first
from api.pages.site.environment import page, query
from api.schemas import Leaderboard
from kernelgate.db import transaction
from kernelgate.stages import Ranking, Stage

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
PAGE = 50
TOP = 3


class Top(NamedTuple):
    """A stage with the first places of its board."""

    stage: Stage
    board: Leaderboard
    open: bool
    right: list[Right]


@router.get("/leaderboard")
def boards(request: Request, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: ARG001 - the header shows the viewer
    with transaction() as database:
        states = standings(database, catalog.stages())
        found = [_top(database, each, states[name]) for name, each in catalog.stages().items()]
    return page(request, "leaderboards.html", tops=found)


def _top(database: Session, stage: Stage, standing: Standing) -> Top:
    whole = whole_board(database, stage, gpu=None)
    empty = stage.spec.gate is not None and not len(whole.places)
    right = right_first(database, stage.name, whole.frozen_at)[:TOP] if empty else []
    return Top(stage, whole.page(database, TOP, 0), standing.open, right)


@router.get("/leaderboard/{stage}")
def board(
    request: Request,
    stage: StageName,
    viewer: Viewer,
    catalog: StageCatalog,
    gpu: Annotated[str | None, Query(max_length=100)] = None,
    each: Each = Each.PERSON,
    who: Annotated[str, Query(max_length=39)] = "",
    offset: Annotated[int, Query(ge=0, le=10**7)] = 0,
) -> Response:
    """`who` keeps the rows whose handle contains it; ranks stay those of the whole board."""
    found = catalog.stage(stage)
    with transaction() as database:
        whole = whole_board(database, found, gpu=gpu or None, each=each)
        everyone = whole.places
        if who:
            whole = whole.only(lambda entry: who.lower() in entry.user.lower())
        shown = whole.page(database, PAGE, offset)
        gated_and_empty = found.spec.gate is not None and not everyone
        right = right_first(database, found.name, whole.frozen_at) if gated_and_empty else []
        public = public_among(database, [row.user for row in shown.rows], viewer)
        solved = may_read_solution(database, found, viewer)
    timed = found.spec.ranking is Ranking.SPEEDUP
    handle = viewer.handle if viewer else ""
    marks = marks_of(found, whole.model) if timed and not who else []
    spread_out = spread(everyone, timed=timed, gate=_gate(found))
    return page(
        request,
        "leaderboard.html",
        stage=found,
        public=public,
        solved=solved,
        board=shown,
        rows=placed(shown.rows, marks, whole.places, offset),
        marks=marks,
        scale=scale_of(shown.rows, marks),
        each=each,
        who=who,
        everyone=len(everyone),
        histogram=spread_out.seen_by(everyone.of_user.get(handle, ())) if spread_out else None,
        mine=_mine(everyone, handle),
        right=right,
        fewest=sorted(right, key=lambda each: (each.by_attempts, each.at))[:TOP],
        links=_links(request, len(whole.places), offset),
    )


def _gate(stage: Stage) -> float | None:
    return stage.spec.gate.speedup if stage.spec.gate else None


class Links(NamedTuple):
    """Addresses of this board: the first and the next page of it, the files, and each choice of what has a place."""

    newer: str | None
    older: str | None
    csv: str
    json: str
    person: str
    submission: str


def _links(request: Request, total: int, offset: int) -> Links:
    def to(**changes: object) -> str:
        return f"?{query(request, **changes)}"

    return Links(
        newer=to(offset=None) if offset else None,
        older=to(offset=offset + PAGE) if offset + PAGE < total else None,
        csv=to(format="csv", limit=1000, offset=None, who=None),
        json=to(format="json", limit=1000, offset=None, who=None),
        person=to(each=None, offset=None),
        submission=to(each=Each.SUBMISSION, offset=None),
    )


class Place(NamedTuple):
    """The viewer's own place: the entry, and which page of the board it is on."""

    entry: Entry
    offset: int


def _mine(places: Places, handle: str) -> Place | None:
    at = places.of_user.get(handle, ())
    return Place(places.entries[at[0]], at[0] - at[0] % PAGE) if at else None
