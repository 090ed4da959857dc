"""What is to be told to other programs: webhooks, and the outbox that an event and its deliveries are written into together.

An event and the result that it is about belong to one transaction: neither is told of what was rolled back, nor forgotten. Who
sends them is the API (api/webhooks); a delivery may arrive twice, and its id says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    ForeignKey,
    Index,
    String,
    and_,
    exists,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import array
from sqlalchemy.orm import Mapped, Session, mapped_column

from kernelgate.models import Base, Course, CourseRole, CourseStage, Member, ResultRow, Submission, new_id, now
from kernelgate.protocol import Result
from kernelgate.verdicts import Verdict

_LOCK = 0x6B67_6F62
"""Advisory lock, with the stage: of two files accepted at once one is the first."""


class Happening(StrEnum):
    """What webhooks are told of."""

    FIRST_ACCEPTED = "first_accepted"
    """The first accepted submission to a stage: of the course, or of the service."""
    RECORD = "record"
    """An accepted one that is faster than all before it on its GPU model, by more than its interval."""
    JUDGE_ERROR = "judge_error"
    """A failure of ours."""
    PING = "ping"
    """A test, asked for by whoever has the webhook."""


class Webhook(Base):
    """An address that is told of events: of one course, or of the service. Its secret signs what is sent, so it is kept."""

    __tablename__ = "webhooks"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    course_id: Mapped[int | None] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    url: Mapped[str]
    secret: Mapped[str]
    events: Mapped[list[str]] = mapped_column(ARRAY(String))
    created_by: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    failures: Mapped[int] = mapped_column(default=0)
    """Tries that failed since the last that did not."""
    off_at: Mapped[datetime | None]


class Delivery(Base):
    """An event on its way to one webhook. next_at: when it is tried next; None: it arrived or was given up."""

    __tablename__ = "deliveries"
    __table_args__ = (Index("ix_deliveries_next_at", "next_at", postgresql_where=text("next_at IS NOT NULL")),)

    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    webhook_id: Mapped[int] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"), index=True)
    event: Mapped[str]
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    next_at: Mapped[datetime | None] = mapped_column(server_default=func.now())
    tries: Mapped[int] = mapped_column(default=0)
    delivered_at: Mapped[datetime | None]
    answer: Mapped[str] = mapped_column(default="")
    """What came of the last try, in words."""


def post(session: Session, hook: Webhook, event: Happening, about: dict[str, Any]) -> None:
    """Puts an event for one webhook into the outbox."""
    session.add(
        Delivery(
            webhook_id=hook.id, event=event, tries=0, answer="", body={"event": str(event), "at": now().isoformat(), **about}
        )
    )  # fmt: skip


def report(session: Session, row: Submission, result: Result) -> None:
    """Tells the webhooks that ask for it what a judging that is being recorded is. The service's own failures included."""
    told = _told(result)
    if row.trial is not None or not told:
        return
    hooks = session.execute(_listening(row, told)).all()
    if not hooks:
        return
    if Happening.FIRST_ACCEPTED in told:
        session.execute(
            text("SELECT pg_advisory_xact_lock(:lock, hashtext(:stage))"), {"lock": _LOCK, "stage": row.stage}
        )
    for hook, course in hooks:
        for event in _happened(session, row, result, hook.course_id):
            if event in hook.events:
                post(session, hook, event, _about(row, result, course))


def _told(result: Result) -> set[Happening]:
    if result.verdict is Verdict.JUDGE_ERROR:
        return {Happening.JUDGE_ERROR}
    if result.verdict is Verdict.ACCEPTED and not result.held:
        return {Happening.FIRST_ACCEPTED, Happening.RECORD}
    return set()


def _listening(row: Submission, told: set[Happening]) -> Any:
    """Webhooks that ask for one of these events and whose course, if they have one, the submission counts in."""
    counts = exists().where(
        Member.course_id == Webhook.course_id,
        Member.user_id == row.user_id,
        Member.role == CourseRole.MEMBER,
        CourseStage.course_id == Webhook.course_id,
        CourseStage.stage == row.stage,
    )
    asks = Webhook.events.op("&&", is_comparison=True)(array([str(each) for each in told]))
    return (
        select(Webhook, Course.name)
        .outerjoin(Course, Course.id == Webhook.course_id)
        .where(Webhook.off_at.is_(None), asks, or_(Webhook.course_id.is_(None), counts))
    )


def _happened(session: Session, row: Submission, result: Result, course_id: int | None) -> Iterator[Happening]:
    if result.verdict is Verdict.JUDGE_ERROR:
        yield Happening.JUDGE_ERROR
        return
    others = _others(row, course_id)
    earlier = and_(
        ResultRow.submission_id == row.id, ResultRow.round < row.round, ResultRow.verdict == Verdict.ACCEPTED
    )
    was = select(func.count(), func.max(ResultRow.speedup)).where(earlier)
    own_count, own_best = session.execute(was).one()
    if not own_count and not session.scalar(select(exists().where(others))):
        yield Happening.FIRST_ACCEPTED
    if result.timing is not None and result.timing.speedup_low is not None:
        on_card = others & (Submission.gpu_model == result.machine.get("gpu"))
        best = session.scalar(select(func.max(Submission.speedup)).where(on_card))
        if result.timing.speedup_low > max(best or 0.0, own_best or 0.0):
            yield Happening.RECORD


def _others(row: Submission, course_id: int | None) -> ColumnElement[bool]:
    """Other accepted submissions to the stage that stand on boards: of the course's members, or of everybody."""
    found = and_(
        Submission.stage == row.stage,
        Submission.id != row.id,
        Submission.verdict == Verdict.ACCEPTED,
        Submission.hidden.is_(False),
        Submission.held.is_(None),
    )
    if course_id is None:
        return found
    members = select(Member.user_id).where(Member.course_id == course_id, Member.role == CourseRole.MEMBER)
    return found & Submission.user_id.in_(members)


def _about(row: Submission, result: Result, course: str | None) -> dict[str, Any]:
    return {
        "course": course,
        "stage": row.stage,
        "submission": row.id,
        "user": row.user.handle,
        "verdict": str(result.verdict),
        "reason": str(result.reason),
        "speedup": result.timing.speedup if result.timing else None,
        "gpu_model": result.machine.get("gpu"),
    }
