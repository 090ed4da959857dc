"""Leaderboards: the newest places of every stage, and each board by itself."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from api.dependencies import StageCatalog, StageName, Viewer
from api.negotiation import HtmlRoute
from api.pages.environment import page, query
from api.routes.leaderboard import read_board
from api.schemas import Leaderboard, LeaderboardRow
from kernelgate.db import transaction
from kernelgate.stages import Stage

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
PAGE = 100
TOP = 3


class Top(NamedTuple):
    """A stage with the first places of its board."""

    stage: Stage
    board: Leaderboard


@router.get("/leaderboard")
def boards(request: Request, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: ARG001 - the header shows the viewer
    with transaction() as database:
        found = [
            Top(each, read_board(database, each, gpu=None, limit=TOP, offset=0)) for each in catalog.stages().values()
        ]
    return page(request, "leaderboards.html", tops=found)


@router.get("/leaderboard/{stage}")
def board(
    request: Request,
    stage: StageName,
    viewer: Viewer,
    catalog: StageCatalog,
    gpu: Annotated[str | None, Query(max_length=100)] = None,
    offset: Annotated[int, Query(ge=0, le=10**7)] = 0,
) -> Response:
    found = catalog.stage(stage)
    with transaction() as database:
        shown = read_board(database, found, gpu=gpu or None, limit=PAGE, offset=offset)
        mine = _mine(shown, viewer.handle if viewer else None)
    gate = found.spec.gate.speedup if found.spec.gate else None
    return page(
        request,
        "leaderboard.html",
        stage=found,
        board=shown,
        gate=gate,
        scale=_scale(shown, gate),
        offset=offset,
        mine=mine,
        newer=f"?{query(request, offset=None)}" if offset else None,
        older=f"?{query(request, offset=offset + PAGE)}" if offset + PAGE < shown.total else None,
    )


def _mine(board: Leaderboard, handle: str | None) -> LeaderboardRow | None:
    return next((row for row in board.rows if row.user == handle), None)


class Scale(NamedTuple):
    """The axis of the drawn intervals: speedups at its left and right edge."""

    low: float
    high: float

    def place(self, speedup: float) -> float:
        """Where a speedup stands on an axis of length 200."""
        return round(200 * (speedup - self.low) / (self.high - self.low), 1)


def _scale(board: Leaderboard, gate: float | None) -> Scale:
    """From a little below the slowest of the page or the gate to a little above the fastest."""
    ends = [end for row in board.rows for end in (row.speedup_low, row.speedup, row.speedup_high) if end is not None]
    ends += [gate] if gate is not None else []
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    margin = 0.04 * (high - low) or 0.05 * high or 1.0
    return Scale(low - margin, high + margin)
