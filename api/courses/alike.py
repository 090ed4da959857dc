"""Similar submissions in a course's stage: of every member the one that counts, else their last one, compared pair by pair.

They are compared with those from elsewhere that the caller reads anyway: whoever reads every submission of the service sees
everybody's, the staff of this course those of the other courses, earlier ones most of all, in which they are staff too. A token
of a course reaches that course alone.
"""

from __future__ import annotations

import threading

from sqlalchemy import Select, or_, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from api.courses.kept import whole_grid
from api.courses.schemas import AlikePair, AlikeSide
from api.courses.seats import Seat
from api.courses.similarity import Collection
from api.problems import Refusal
from kernelgate.models import CourseRole, CourseStage, Member, Submission, User
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict

SHOWN = 200
_MOST_ELSEWHERE = 2000
_KEPT: dict[tuple[str, ...], Collection] = {}
_MOST_KEPT = 4
_ONE_AT_A_TIME = threading.Lock()
"""A comparison of hundreds of files keeps a processor busy for seconds."""


def pairs(database: Session, by: Seat, stage: Stage, stages: dict[str, Stage]) -> list[AlikePair]:
    """The most alike first."""
    handles = _chosen(database, by, stage, stages)
    found = _compared(database, stage, [*handles]).pairs()
    here = {row.handle for row in whole_grid(database, by.course, stages).rows}
    sides = {name: AlikeSide(submission=name, user=handle, member=handle in here) for name, handle in handles.items()}
    shown = (pair for pair in found if handles[pair.one] != handles[pair.other])
    made = [
        AlikePair(one=sides[pair.one], other=sides[pair.other], share=round(pair.share, 3), parts=pair.parts)
        for pair in shown
    ]
    return [pair for pair in made if pair.one.member or pair.other.member][:SHOWN]


def lines_alike(
    database: Session, by: Seat, stage: Stage, stages: dict[str, Stage], one: str, other: str
) -> tuple[set[int], set[int]]:
    """The lines of two submissions that lie in parts which both have. Raises Refusal for one that is not compared here."""
    handles = _chosen(database, by, stage, stages)
    for name in (one, other):
        if name not in handles:
            raise Refusal("unknown_submission", "It is not among those compared.", field="query.one", value=name)
    return _compared(database, stage, [*handles]).lines_alike(one, other)


def _chosen(database: Session, by: Seat, stage: Stage, stages: dict[str, Stage]) -> dict[str, str]:
    """Submission → handle."""
    counted = {
        row.handle: cell.counts
        for row in whole_grid(database, by.course, stages).rows
        for cell in row.cells
        if cell.stage == stage.name and cell.counts
    }
    people = select(Member.user_id).where(Member.course_id == by.course.id, Member.role == CourseRole.MEMBER)
    last = (
        select(Submission.id, User.handle)
        .join(User, User.id == Submission.user_id)
        .where(Submission.stage == stage.name, Submission.trial.is_(None), Submission.verdict.is_not(None))
        .ext(distinct_on(Submission.user_id))
        .order_by(Submission.user_id, Submission.created_at.desc())
    )
    of_members = database.execute(last.where(Submission.user_id.in_(people)))
    names = {counted.get(handle) or name for name, handle in of_members}
    # By whoever made it: what counts for somebody in a team may be another one's.
    owners = (
        select(Submission.id, User.handle).join(User, User.id == Submission.user_id).where(Submission.id.in_(names))
    )
    found = {str(row.id): str(row.handle) for row in database.execute(owners)}
    passed = or_(Submission.verdict == Verdict.ACCEPTED, Submission.verdict == Verdict.CORRECT)
    elsewhere = last.where(Submission.user_id.not_in(people), passed).limit(_MOST_ELSEWHERE)
    if by.identity.course is not None:
        return found
    if not by.identity.reads_all:
        elsewhere = elsewhere.where(Submission.user_id.in_(_taught(by.identity.user_id, stage.name)))
    return found | {str(row.id): str(row.handle) for row in database.execute(elsewhere)}


def _taught(user_id: int, stage: str) -> Select[int]:
    """Members of the courses with this stage in which somebody is staff."""
    staff, pupil = aliased(Member), aliased(Member)
    courses = (
        select(staff.course_id)
        .join(CourseStage, (CourseStage.course_id == staff.course_id) & (CourseStage.stage == stage))
        .where(staff.user_id == user_id, staff.role != CourseRole.MEMBER)
    )
    return select(pupil.user_id).where(pupil.course_id.in_(courses), pupil.role == CourseRole.MEMBER)


def _compared(database: Session, stage: Stage, names: list[str]) -> Collection:
    key = (stage.hash, *sorted(names))
    with _ONE_AT_A_TIME:
        if key not in _KEPT:
            rows = database.execute(select(Submission.id, Submission.source).where(Submission.id.in_(names)))
            files = {name: source.decode("utf-8", "replace") for name, source in rows}
            while len(_KEPT) >= _MOST_KEPT:
                del _KEPT[next(iter(_KEPT))]
            _KEPT[key] = Collection(files, given(stage), python=stage.spec.file.endswith(".py"))
        return _KEPT[key]


def given(stage: Stage) -> list[str]:
    """What the stage hands out: its starter and the provided files."""
    texts = [stage.text(name) for name in stage.files if name.split("/")[0] in ("starter", "provided")]
    return [*texts, stage.starter]
