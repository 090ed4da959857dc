"""The life of a submission: the changes of state there are, and what each of them writes. Nobody makes any other.

    submit ─▶ queued ──claim──▶ running ──finish, give_up──▶ done
                ▲  │ give_up,      │ call_off ─▶ cancelled, or done with the verdict of an earlier round
                │  │ call_off      │
                ├──┼──queue_again──┘
                └──┴──rejudge── done, cancelled

A change is one conditional update: it moves the rows that are in a state it starts from and that its caller's condition holds
for, so of two that race one moves nothing. Its events, and its result where it has one, belong to the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, case, update
from sqlalchemy.orm import Session, defer

from kernelgate import outbox
from kernelgate.db import notify
from kernelgate.models import EventRow, ResultRow, Submission, now
from kernelgate.protocol import EventKind, Result
from kernelgate.verdicts import State

CALLED_OFF = case((Submission.verdict.is_not(None), State.DONE), else_=State.CANCELLED)
"""A rejudging that is called off leaves the submission done with the verdict it had; a first grading leaves it without one."""
_FREE = {"lease_owner": None, "lease_until": None}
_ENDED = {**_FREE, "cancel_requested": False}
_QUEUED = {**_FREE, "rung_at": None}
_ANEW = {
    **_QUEUED,
    "round": Submission.round + 1,
    "cancel_requested": False,
    "attempt": 0,
    "claimed_at": None,
    "finished_at": None,
}


@dataclass(frozen=True)
class Change:
    """start: the states it is made in. end: the state after it. columns: what is always written with it."""

    start: tuple[State, ...]
    end: State | ColumnElement[str]
    columns: Mapping[str, object] = field(default_factory=dict)
    ends: bool = False


CLAIM = Change((State.QUEUED,), State.RUNNING, {"attempt": Submission.attempt + 1})
FINISH = Change((State.RUNNING,), State.DONE, _ENDED, ends=True)
GIVE_UP = Change((State.QUEUED, State.RUNNING), State.DONE, _ENDED, ends=True)
CALL_OFF = Change((State.QUEUED, State.RUNNING), CALLED_OFF, _ENDED, ends=True)
QUEUE_AGAIN = Change((State.RUNNING,), State.QUEUED, _QUEUED)
REJUDGE = Change((State.DONE, State.CANCELLED), State.QUEUED, _ANEW)
CHANGES = {
    "claim": CLAIM,
    "finish": FINISH,
    "give_up": GIVE_UP,
    "call_off": CALL_OFF,
    "queue_again": QUEUE_AGAIN,
    "rejudge": REJUDGE,
}


@dataclass(frozen=True)
class Graded:
    """A result to be recorded with a change, and the host that it comes from."""

    result: Result
    worker: str


def change(
    session: Session,
    made: Change,
    wanted: ColumnElement[bool],
    *,
    note: str | None = None,
    graded: Graded | None = None,
    columns: Mapping[str, object] = {},
    with_source: bool = False,
) -> list[Submission]:
    """Makes a change of all submissions that `wanted` holds for and that are where it starts; returns those that moved.

    note: what their events say beside the state. graded: recorded for each. columns: what else is written, such as those that
    repeat a result.
    """
    moment = {"finished_at": now()} if made.ends else {}
    values = {"state": made.end, **made.columns, **moment, **columns}
    moving = (
        update(Submission)
        .where(wanted, Submission.state.in_(made.start))
        .values(values)
        .returning(Submission)
        .execution_options(synchronize_session=False, populate_existing=True)
    )
    moved = list(session.scalars(moving if with_source else moving.options(defer(Submission.source))))
    for row in moved:
        if graded is not None:
            _record(session, row, graded)
        write_state(session, row, note)
    return moved


def write_state(session: Session, row: Submission, note: str | None = None) -> None:
    """The event that says which state a submission is in now."""
    said = {"state": str(row.state), "attempt": row.attempt}
    write_event(session, (row.id, row.round, row.attempt), EventKind.STATE, {**said, "note": note} if note else said)


def write_event(session: Session, of: tuple[str, int, int], kind: EventKind, data: Mapping[str, object]) -> None:
    """Adds one event and tells listeners at the commit. `of`: the submission's id, round and attempt."""
    submission_id, round_, attempt = of
    session.add(EventRow(submission_id=submission_id, round=round_, attempt=attempt, kind=kind, data=dict(data)))
    session.flush()
    notify(session, submission_id)


def columns_of(result: Result) -> dict[str, object]:
    """The columns of a submission that repeat its newest result."""
    return {
        "verdict": result.verdict,
        "reason": result.reason,
        "backend": result.backend,
        "gpu_model": result.machine.get("gpu"),
        "speedup": result.timing.speedup if result.timing else None,
        "held": result.held or None,
        "mistake": result.mistake.name if result.mistake else None,
    }


def _record(session: Session, row: Submission, graded: Graded) -> None:
    result, timing = graded.result, graded.result.timing
    session.add(
        ResultRow(
            submission_id=row.id,
            round=row.round,
            attempt=row.attempt,
            worker=graded.worker,
            verdict=result.verdict,
            reason=result.reason,
            stage_hash=result.stage_hash,
            speedup=timing.speedup if timing else None,
            speedup_low=timing.speedup_low if timing else None,
            speedup_high=timing.speedup_high if timing else None,
            body=result.stored(),
        )
    )
    said = {"verdict": result.verdict, "reason": result.reason, "message": result.message}
    write_event(session, (row.id, row.round, row.attempt), EventKind.RESULT, said)
    outbox.report(session, row, result)
