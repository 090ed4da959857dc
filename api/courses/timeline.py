"""One person in one stage: every attempt, how it was judged, what changed since the one before; and points given by hand."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.attempts import Term, term
from api.courses.kept import row_of
from api.courses.roster import member_named
from api.courses.schedule import stage_of
from api.courses.schemas import AttemptView, Cell, PointsBody, Timeline
from api.courses.seats import Seat
from api.outcomes import outcomes
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.models import CourseRole, CourseStage, Member, Override, Submission, now
from kernelgate.stages import Stage

SHOWN = 200
_MOST_LINES = 4000


def person_in(database: Session, by: Seat, handle: str) -> Member:
    """A member whose work the caller may see. Raises Refusal, the same for those who are not in the course."""
    member = member_named(database, by.course, handle)
    if member.role != CourseRole.MEMBER or not by.sees(member.user_id):
        raise Refusal("unknown_member", "Nobody of that handle is in the course.", field="path.handle", value=handle)
    return member


def timeline(database: Session, by: Seat, handle: str, stage: str, stages: Mapping[str, Stage]) -> Timeline:
    member = person_in(database, by, handle)
    return timelines(database, by, member, [stage_of(database, by.course, stage)], stages)[0]


def timelines(
    database: Session, by: Seat, member: Member, of: Iterable[CourseStage], stages: Mapping[str, Stage]
) -> list[Timeline]:
    """One person's in several stages of the course."""
    found = term(database, by.course, users=[member.user_id])
    row = row_of(database, by.course, stages, member.user.handle)
    cells = {cell.stage: cell for cell in row.cells} if row else {}
    return [_timeline(database, member, rules, found, cells.get(rules.stage, Cell(stage=rules.stage))) for rules in of]


def _timeline(database: Session, member: Member, rules: CourseStage, found: Term, cell: Cell) -> Timeline:
    stage = rules.stage
    attempts = found.attempts.get((member.user_id, stage), [])[-SHOWN:]
    notes = outcomes(database, [each.id for each in attempts])
    texts = _texts(database, [each.id for each in attempts])
    views, before = [], ""
    for each in attempts:
        added, removed = changed(before, texts[each.id])
        before = texts[each.id]
        note = notes.get(each.id)
        views.append(
            AttemptView(
                id=each.id,
                at=each.at,
                verdict=each.now.verdict if each.now else None,
                counted_as=each.fixed.verdict if each.fixed else None,
                speedup=each.now.speedup if each.now else None,
                mistake=note.mistake if note else None,
                right=note.right if note else 0,
                ran=note.ran if note else 0,
                days_late=each.days_late,
                apart=each.apart,
                added=added,
                removed=removed,
            )
        )
    return Timeline(
        course=found.course.name,
        stage=stage,
        user=member.user.handle,
        due_at=found.due(member.user_id, rules),
        extended=(member.user_id, stage) in found.extensions,
        cell=cell,
        attempts=views,
    )


def _texts(database: Session, ids: list[str]) -> dict[str, str]:
    rows = database.execute(select(Submission.id, Submission.source).where(Submission.id.in_(ids)))
    return {name: source.decode("utf-8", "replace") for name, source in rows}


def changed(before: str, after: str) -> tuple[int, int]:
    """Lines added and removed. Bounded: a comparison is quadratic at worst."""
    old, new = before.splitlines()[:_MOST_LINES], after.splitlines()[:_MOST_LINES]
    same = sum(block.size for block in difflib.SequenceMatcher(None, old, new).get_matching_blocks())
    return len(new) - same, len(old) - same


def give_points(database: Session, by: Seat, handle: str, stage: str, body: PointsBody) -> None:
    """Points by hand in place of those that were earned; none takes them back."""
    member, rules = person_in(database, by, handle), stage_of(database, by.course, stage)
    key = (by.course.id, rules.stage, member.user_id)
    given = database.get(Override, key)
    audit(
        database, by.identity.handle, "course.points", f"{by.course.name}/{stage}",
        user=member.user.handle, before=given.points if given else None, after=body.points, reason=body.reason,
    )  # fmt: skip
    if body.points is None:
        if given is not None:
            database.delete(given)
    else:
        database.merge(
            Override(
                course_id=by.course.id, stage=stage, user_id=member.user_id, points=body.points,
                reason=body.reason.strip(), actor=by.identity.handle, at=now(),
            )
        )  # fmt: skip
    database.flush()
