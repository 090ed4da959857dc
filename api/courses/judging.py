"""What the staff of a course does with its members' submissions: judge again after a look, hide."""

from __future__ import annotations

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session, defer

from api.administration import hide, open_round
from api.courses.schedule import stage_of
from api.courses.seats import Seat
from api.problems import Refusal
from api.submissions import the_one
from kernelgate.accounts import audit
from kernelgate.models import CourseRole, CourseStage, Member, Submission
from kernelgate.verdicts import State, Verdict

_NOTE = "the staff of a course had it judged again"


def of_course(course_id: int) -> ColumnElement[bool]:
    """Submissions of a course's members to its stages."""
    people = select(Member.user_id).where(Member.course_id == course_id, Member.role == CourseRole.MEMBER)
    stages = select(CourseStage.stage).where(CourseStage.course_id == course_id)
    return Submission.user_id.in_(people) & Submission.stage.in_(stages) & Submission.trial.is_(None)


def submission_in(database: Session, by: Seat, submission_id: str) -> Submission:
    """Raises Refusal for one that is not the course's."""
    found = the_one(database, submission_id)
    if database.scalar(select(Submission.id).where(Submission.id == found.id, of_course(by.course.id))) is None:
        raise Refusal("unknown_submission", "The course has no such submission.", field="path.id", value=submission_id)
    return found


def rejudge(database: Session, by: Seat, stage: str, verdict: Verdict | None, *, dry_run: bool) -> list[Submission]:
    """Opens a new round of every graded submission of the course's members to a stage; `dry_run` only finds them."""
    stage_of(database, by.course, stage)
    wanted = of_course(by.course.id) & (Submission.stage == stage) & (Submission.state == State.DONE)
    wanted &= Submission.verdict.is_not(None) if verdict is None else Submission.verdict == verdict
    if dry_run:
        return list(database.scalars(select(Submission).where(wanted).options(defer(Submission.source))))
    opened = open_round(database, wanted, _NOTE)
    audit(
        database, by.identity.handle, "course.rejudge", f"{by.course.name}/{stage}",
        verdict=str(verdict) if verdict else None, submissions=len(opened),
    )  # fmt: skip
    return opened


def rejudge_one(database: Session, by: Seat, submission_id: str) -> Submission:
    found = submission_in(database, by, submission_id)
    opened = open_round(database, Submission.id == found.id, _NOTE)
    if not opened:
        raise Refusal("not_final", f"Submission {found.id} is queued or running.", field="path.id")
    audit(database, by.identity.handle, "submission.rejudge", found.id, round=opened[0].round, course=by.course.name)
    return opened[0]


def hide_one(database: Session, by: Seat, submission_id: str, hidden: bool) -> Submission:
    return hide(database, by.identity, submission_in(database, by, submission_id).id, hidden)
