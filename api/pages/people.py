"""A person's own page, public if its owner says so, and the card of a place on a board, for whoever wants to show it.

The page says no more than boards and lists of accepted files do, but for the days somebody was at work: so its owner decides. A
card repeats a row of a board, which everybody may see.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response

from api.auth import Identity
from api.boards import whole_board
from api.catalog import Catalog, Standing, standings
from api.dependencies import Handle, Reader, StageCatalog, StageName, Viewer
from api.leaderboard import Entry
from api.negotiation import HtmlRoute
from api.pages.drawings.activity import activity
from api.pages.site.environment import environment, page
from api.pages.standing import Reached, reached
from api.problems import Refusal
from kernelgate.accounts import find_user
from kernelgate.db import transaction
from kernelgate.models import Submission, User
from kernelgate.stages import Ranking, Stage
from kernelgate.verdicts import Verdict

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
files = APIRouter(include_in_schema=False)


class Passed(NamedTuple):
    """A stage that somebody passed. best: their highest speedup by card."""

    stage: Stage
    reached: Reached
    best: list[tuple[str, float]]
    place: Entry | None
    places: int


@router.get("/people/{handle}")
def person(request: Request, handle: Handle, viewer: Viewer, catalog: StageCatalog) -> Response:
    """One that is not public is no other than one that does not exist."""
    with transaction() as database:
        user = find_user(database, handle)
        own = user is not None and viewer is not None and user.id == viewer.user_id
        if user is None or not (own or (user.public and user.disabled_at is None) or (viewer and viewer.reads_all)):
            raise Refusal("unknown_user", "There is no such account, or its page is not public.", field="path.handle")
        shown = _shown(database, user, catalog, everything=own or bool(viewer and viewer.reads_all))
    return page(request, "person.html", person=user, own=own, **shown)


def _shown(database: Session, user: User, catalog: Catalog, *, everything: bool) -> dict[str, Any]:
    """everything: also what frozen boards keep back."""
    stages = catalog.stages()
    states = standings(database, stages)
    done = reached(database, user.id, stages)
    best = _best(database, user.id, states, everything=everything)
    passed = [
        _passed(database, stage, done[name], user, best.get(name, []))
        for name, stage in stages.items()
        if name in done and done[name].passed and (everything or states[name].frozen_at is None or name in best)
    ]
    at = select(Submission.created_at).where(Submission.user_id == user.id, Submission.trial.is_(None))
    return {"passed": passed, "stages": len(stages), "activity": activity(list(database.scalars(at)))}


def _passed(database: Session, stage: Stage, done: Reached, user: User, best: list[tuple[str, float]]) -> Passed:
    board = whole_board(database, stage, gpu=None).places
    at = next(iter(board.of_user.get(user.handle, ())), None)
    return Passed(stage, done, best, board.entries[at] if at is not None else None, len(board))


def _best(
    database: Session, user_id: int, states: dict[str, Standing], *, everything: bool
) -> dict[str, list[tuple[str, float]]]:
    """By stage: the cards of accepted submissions with the highest speedup of each; the empty name: not timed."""
    rows = database.execute(
        select(Submission.stage, Submission.gpu_model, Submission.speedup, Submission.created_at)
        .where(
            Submission.user_id == user_id,
            Submission.verdict == Verdict.ACCEPTED,
            Submission.hidden.is_(False),
            Submission.held.is_(None),
        )
        .order_by(func.coalesce(Submission.speedup, 0.0).desc())
    )
    found: dict[str, dict[str, float]] = {}
    for stage, gpu, speedup, at in rows:
        frozen: datetime | None = states[stage].frozen_at if stage in states else None
        if everything or frozen is None or at <= frozen:
            cards = found.setdefault(stage, {})
            if speedup is not None:
                cards.setdefault(gpu or "", speedup)
    return {stage: list(cards.items()) for stage, cards in found.items()}


@router.post("/me/public")
def publish(request: Request, viewer: Reader) -> Response:
    """`?on=1` shows the page to everybody, without it to its owner and the staff alone."""
    with transaction() as database:
        on = request.query_params.get("on") == "1"
        database.execute(update(User).where(User.id == viewer.user_id).values(public=on))
    return RedirectResponse(f"/people/{viewer.handle}", 303)


@files.get("/leaderboard/{stage}/cards/{handle}.svg")
def card(request: Request, stage: StageName, handle: Handle, catalog: StageCatalog) -> Response:
    """A picture of a row of the board as it is now."""
    found = catalog.stage(stage)
    with transaction() as database:
        board = whole_board(database, found, gpu=None)
    at = next(iter(board.places.of_user.get(handle, ())), None)
    if at is None:
        raise Refusal("unknown_user", "Nobody of this handle stands on the board.", field="path.handle", value=handle)
    drawn = (
        environment()
        .get_template("share_card.svg")
        .render(
            stage=found,
            place=board.places.entries[at],
            places=len(board.places),
            model=board.model,
            timed=found.spec.ranking is Ranking.SPEEDUP,
            host=request.url.netloc,
        )
    )
    return Response(drawn, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=300"})


def public_among(database: Session, handles: list[str], viewer: Identity | None) -> set[str]:
    """Those of these handles whose page the viewer may open."""
    wanted = select(User.handle).where(User.handle.in_(handles), User.disabled_at.is_(None))
    if viewer is None or not viewer.reads_all:
        wanted = wanted.where(User.public.is_(True) | (User.id == (viewer.user_id if viewer else 0)))
    return set(database.scalars(wanted))
