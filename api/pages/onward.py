"""A way on after a stage is passed: the place on the board, what comes next on the path, what may be read now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy.orm import Session

from api.auth import Identity
from api.boards import whole_board
from api.catalog import Catalog, standings
from api.leaderboard import Entry
from api.pages.standing import reached
from api.submissions import has_solved
from kernelgate.models import Submission
from kernelgate.stages import Stage, Visibility


class Onward(NamedTuple):
    """place, places: on the stage's board, None where the person has none. ahead: the entry before it, if any.

    best: whether the place is this very submission's. following: the next stage of the path that is not passed.
    shipped: whether the stage's own solution may be read now.
    """

    place: Entry | None
    places: int
    ahead: Entry | None
    best: bool
    following: Stage | None
    shipped: bool


def onward(
    database: Session, submission: Submission, stage: Stage, viewer: Identity | None, catalog: Catalog
) -> Onward | None:
    """For whoever has passed the stage and looks at a submission of their own; None for everybody else."""
    if viewer is None or viewer.user_id != submission.user_id or submission.trial is not None:
        return None
    if not has_solved(database, viewer.user_id, stage):
        return None
    board = whole_board(database, stage, gpu=None).places
    at = next(iter(board.of_user.get(viewer.handle, ())), None)
    place = board.entries[at] if at is not None else None
    return Onward(
        place,
        len(board),
        board.entries[at - 1] if at else None,
        place is not None and place.submission == submission.id,
        _following(database, stage, viewer, catalog),
        may_read_solution(database, stage, viewer),
    )


def may_read_solution(database: Session, stage: Stage, viewer: Identity | None) -> bool:
    """Where solvers may read one another's sources, they may read the shipped one: the stage decides about both."""
    if viewer is None or stage.spec.sources is Visibility.OWNER:
        return False
    return has_solved(database, viewer.user_id, stage)


def _following(database: Session, stage: Stage, viewer: Identity, catalog: Catalog) -> Stage | None:
    """The next stage that is open and that they have not passed."""
    stages = catalog.stages()
    states, passed = standings(database, stages), reached(database, viewer.user_id, stages)
    left = [
        each
        for name, each in stages.items()
        if states[name].open and name != stage.name and not (name in passed and passed[name].passed)
    ]
    return next_of(stage, left)


def next_of(stage: Stage, left: Sequence[Stage]) -> Stage | None:
    """Of those left, the first after this one in its path; else the first that builds on it; else the first."""
    later = [each for each in left if each.spec.path == stage.spec.path and each.spec.order > stage.spec.order]
    built = [each for each in left if stage.name in each.spec.needs]
    return next(iter([*later, *built, *left]), None)
