"""Who may grade a submission: claimed, renewed and finished by conditional updates on Postgres.

Theory of operation. `attempt`, `lease_owner` and `lease_until` of a submission's row are one fencing token. A claim raises
`attempt`; every later write names the attempt and the owner and does nothing when they no longer hold. So a worker that was
paused for minutes and comes back can neither overwrite nor double the result of the one that took over: its writes match
no row, and it stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, select, text, update
from sqlalchemy.orm import Session

from kernelgate.db import notify, transaction
from kernelgate.models import EventRow, ResultRow, Submission, now
from kernelgate.protocol import EventKind, Result, Trial
from kernelgate.settings import settings
from kernelgate.verdicts import State


class LeaseLostError(Exception):
    """Another worker holds the submission now, or it was cancelled; nothing was written."""


@dataclass(frozen=True)
class Lease:
    """The right to grade one submission: valid while the row still has this attempt and owner."""

    submission_id: str
    stage: str
    filename: str
    source: bytes
    round: int
    attempt: int
    owner: str
    trial: Trial | None = None

    def holds(self) -> ColumnElement[bool]:
        return and_(
            Submission.id == self.submission_id,
            Submission.state == State.RUNNING,
            Submission.round == self.round,
            Submission.attempt == self.attempt,
            Submission.lease_owner == self.owner,
        )


def claim(submission_id: str, owner: str) -> Lease | None:
    """Takes a queued submission. None when it is not queued any more: claimed, cancelled or done by now."""
    with transaction() as session:
        moment = now()
        row = session.execute(
            update(Submission)
            .where(
                Submission.id == submission_id, Submission.state == State.QUEUED, Submission.cancel_requested.is_(False)
            )
            .values(
                state=State.RUNNING,
                attempt=Submission.attempt + 1,
                lease_owner=owner,
                lease_until=moment + timedelta(seconds=settings().lease_s),
                claimed_at=moment,
            )
            .returning(
                Submission.stage,
                Submission.filename,
                Submission.source,
                Submission.round,
                Submission.attempt,
                Submission.trial,
            )
        ).one_or_none()
        if row is None:
            return None
        trial = Trial.model_validate(row.trial) if row.trial is not None else None
        lease = Lease(submission_id, row.stage, row.filename, row.source, row.round, row.attempt, owner, trial)
        write_event(session, lease, EventKind.STATE, {"state": State.RUNNING, "attempt": lease.attempt})
        return lease


def renew(lease: Lease) -> bool:
    """Extends the lease. False when the submission was asked to be cancelled. Raises LeaseLostError."""
    with transaction() as session:
        until = now() + timedelta(seconds=settings().lease_s)
        row = session.execute(
            update(Submission).where(lease.holds()).values(lease_until=until).returning(Submission.cancel_requested)
        ).one_or_none()
    if row is None:
        raise LeaseLostError(lease.submission_id)
    return not row.cancel_requested


def wanted(lease: Lease) -> bool:
    """Whether the submission is still this lease's and not to be cancelled; reads only."""
    with transaction() as session:
        requested = session.scalars(select(Submission.cancel_requested).where(lease.holds())).one_or_none()
    return requested is False


def finish(lease: Lease, result: Result, worker: str) -> None:
    """Writes a result and ends the submission, in one transaction. Raises LeaseLostError, and then wrote nothing."""
    timing = result.timing
    with transaction() as session:
        _end(session, lease, {"state": State.DONE, **({} if lease.trial else _columns(result))})
        session.add(
            ResultRow(
                submission_id=lease.submission_id,
                round=lease.round,
                attempt=lease.attempt,
                worker=worker,
                verdict=result.verdict,
                reason=result.reason,
                stage_hash=result.stage_hash,
                speedup=timing.speedup if timing else None,
                speedup_low=timing.speedup_low if timing else None,
                speedup_high=timing.speedup_high if timing else None,
                body=result.stored(),
            )
        )
        told = {"verdict": result.verdict, "reason": result.reason, "message": result.message}
        write_event(session, lease, EventKind.RESULT, told)
        write_event(session, lease, EventKind.STATE, {"state": State.DONE, "attempt": lease.attempt})


def _columns(result: Result) -> dict[str, object]:
    """The columns of a submission that repeat its newest result."""
    return {
        "verdict": result.verdict,
        "reason": result.reason,
        "backend": result.backend,
        "gpu_model": result.machine.get("gpu"),
        "speedup": result.timing.speedup if result.timing else None,
        "held": result.held or None,
    }


def cancel(lease: Lease) -> State:
    """Ends a running submission without a new verdict. Raises LeaseLostError.

    A rejudging that is cancelled leaves the submission `done` with the verdict it had; a first grading leaves `cancelled`.
    """
    with transaction() as session:
        earlier = session.scalars(select(Submission.verdict).where(lease.holds())).one_or_none()
        state = State.DONE if earlier else State.CANCELLED
        _end(session, lease, {"state": state})
        write_event(session, lease, EventKind.STATE, {"state": state, "attempt": lease.attempt, "note": "cancelled"})
    return state


def give_back(lease: Lease, note: str) -> None:
    """Queues a submission again after a fault of ours; the sweeper ends it when its attempts are used up."""
    with transaction() as session:
        changed = session.execute(
            update(Submission)
            .where(lease.holds())
            .values(state=State.QUEUED, lease_owner=None, lease_until=None, rung_at=None)
            .returning(Submission.id)
        ).one_or_none()
        if changed is not None:
            told = {"state": State.QUEUED, "attempt": lease.attempt, "note": note}
            write_event(session, lease, EventKind.STATE, told)


def _end(session: Session, lease: Lease, values: Mapping[str, object]) -> None:
    changed = session.execute(
        update(Submission)
        .where(lease.holds())
        .values(finished_at=now(), lease_owner=None, lease_until=None, cancel_requested=False, **values)
        .returning(Submission.id)
    ).one_or_none()
    if changed is None:
        raise LeaseLostError(lease.submission_id)


def write_event(session: Session, lease: Lease, kind: EventKind, data: Mapping[str, object]) -> None:
    """Adds one event of a leased submission and tells listeners when the transaction commits."""
    add_event(session, (lease.submission_id, lease.round, lease.attempt), kind, data)


def add_event(session: Session, of: tuple[str, int, int], kind: EventKind, data: Mapping[str, object]) -> None:
    """Adds one event and tells listeners at the commit. `of`: the submission's id, round and attempt."""
    submission_id, round_, attempt = of
    session.add(EventRow(submission_id=submission_id, round=round_, attempt=attempt, kind=kind, data=dict(data)))
    session.flush()
    notify(session, submission_id)


def tell(lease: Lease, kind: EventKind, data: Mapping[str, object]) -> None:
    """An event on the way. Losing the last few in a crash of Postgres costs nothing, so it does not wait for the disk."""
    with transaction() as session:
        session.execute(text("SET LOCAL synchronous_commit = off"))
        write_event(session, lease, kind, data)
