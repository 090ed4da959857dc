"""What the courses of a person say when they submit: not before a stage opens, and not more often than its quota."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.limits import retry_after
from api.problems import Refusal
from kernelgate.contests import Contest
from kernelgate.models import Course, CourseRole, CourseStage, Member, Submission, now
from kernelgate.verdicts import Verdict

_DAY = timedelta(days=1)


def check_courses(database: Session, user_id: int, stage: str) -> None:
    """Raises Refusal where a person's courses do not let them submit to a stage now: none of those that have it has opened it,
    or the smallest of their quotas is used up. The caller holds `lock_user`."""
    rows = database.execute(
        select(func.greatest(CourseStage.opens_at, Contest.starts_at).label("opens_at"), CourseStage.quota, Course.name)
        .join(Course, Course.id == CourseStage.course_id)
        .outerjoin(Contest, Contest.course_id == Course.id)
        .join(Member, Member.course_id == Course.id)
        .where(Member.user_id == user_id, Member.role == CourseRole.MEMBER, CourseStage.stage == stage)
    ).all()
    ahead = sorted((row.opens_at, row.name) for row in rows if row.opens_at is not None and row.opens_at > now())
    if ahead and len(ahead) == len(rows):
        opens, course = ahead[0]
        raise Refusal(
            "not_open_yet", f"In the course {course} the stage opens at {opens:%Y-%m-%d %H:%M} UTC.",
            field="stage", value=stage, headers=retry_after(opens),
        )  # fmt: skip
    quotas = sorted((row.quota, row.name) for row in rows if row.quota is not None)
    if quotas:
        _check_quota(database, user_id, stage, *quotas[0])


def _check_quota(database: Session, user_id: int, stage: str, quota: int, course: str) -> None:
    made = database.scalars(
        select(Submission.created_at)
        .where(
            Submission.user_id == user_id,
            Submission.stage == stage,
            Submission.trial.is_(None),
            Submission.created_at > func.now() - _DAY,
            Submission.verdict.is_distinct_from(Verdict.JUDGE_ERROR),
        )
        .order_by(Submission.created_at.desc())
        .limit(quota)
    ).all()
    if len(made) >= quota:
        raise Refusal(
            "quota_used", f"The course {course} allows {quota} submissions to this stage within 24 hours.",
            field="stage", value=stage, headers=retry_after(made[-1] + _DAY),
        )  # fmt: skip
