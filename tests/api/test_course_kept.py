"""What is kept of a course comes to the same as what is worked out anew, whatever changed in between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import select, update

from api.courses import kept
from kernelgate.db import transaction
from kernelgate.models import Course, Submission
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api
from tests.api.test_course_marks import DUE, RIGHT, WRONG, Desk, timed


def standings(desk: Desk) -> tuple[kept.Standing, kept.Standing]:
    """With what is kept, and without."""
    stages = desk.api.app.state.catalog.with_drafts()
    with transaction() as database:
        course = database.scalars(select(Course).where(Course.name == desk.name)).one()
        first = kept.standing(database, course, stages)
        whole = dict(kept._KEPT)
        kept._KEPT.clear()
        anew = kept.standing(database, course, stages)
        kept._KEPT.update(whole)
        return first, anew


def test_what_changes_is_worked_out_anew_and_the_rest_stays_right(api: Api) -> None:
    desk = Desk(api)
    at, team = f"/courses/{desk.name}", {"team": "red"}
    desk.rules("double", points=8, late="days", late_limit=3, joint=True)
    desk.rules("fast", rule="ratio", points=10, late="days", late_limit=3)
    made: list[str] = []

    def hidden(value: bool) -> None:
        with transaction() as session:
            session.execute(update(Submission).where(Submission.id == made[0]).values(hidden=value))

    later = (DUE + timedelta(days=1)).isoformat()
    steps: list[Callable[[], object]] = [
        lambda: made.append(desk.tried("ada", RIGHT)),
        lambda: desk.tried("bob", timed(2.0), stage="fast", gpu="H200", late=2),
        lambda: desk.tried("ada", timed(3.0), stage="fast", gpu="H200"),
        lambda: [desk.ines.post(f"{at}/members/{who}", json=team) for who in ("ada", "bob")],
        lambda: hidden(True),
        lambda: hidden(False),
        lambda: desk.tried("bob", WRONG, late=1),
        lambda: desk.ines.post(f"{at}/people/bob/fast/points", json={"points": 7, "reason": "shown"}),
        lambda: desk.ines.post(f"{at}/stages/fast/extensions", json={"user": "bob", "due_at": later}),
        lambda: desk.ines.post(at, json={"late_days": 0}),
        lambda: desk.rules("double", points=3),
        lambda: desk.ines.post(f"{at}/stages/fast/remove"),
        lambda: desk.tried("ada", RIGHT, late=-2),
    ]
    seen = set()
    for number, step in enumerate(steps):
        step()
        first, anew = standings(desk)
        assert first.grid == anew.grid, number
        assert (first.changes, first.rounds) == (anew.changes, anew.rounds), number
        seen.add(first.grid.model_dump_json())
    assert len(seen) > len(steps) // 2
    assert Verdict.ACCEPTED in {cell.verdict for row in first.grid.rows for cell in row.cells}
