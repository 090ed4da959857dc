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

from kernelgate import lifecycle
from kernelgate.db import transaction
from kernelgate.models import Submission, now
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
        until = moment + timedelta(seconds=settings().lease_s)
        taken = lifecycle.change(
            session,
            lifecycle.CLAIM,
            and_(Submission.id == submission_id, Submission.cancel_requested.is_(False)),
            with_source=True,
            columns={"lease_owner": owner, "lease_until": until, "claimed_at": moment},
        )
        for row in taken:
            trial = Trial.model_validate(row.trial) if row.trial is not None else None
            return Lease(submission_id, row.stage, row.filename, row.source, row.round, row.attempt, owner, trial)
    return None


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
    columns = {} if lease.trial else lifecycle.columns_of(result)
    with transaction() as session:
        graded = lifecycle.Graded(result, worker)
        if not lifecycle.change(session, lifecycle.FINISH, lease.holds(), graded=graded, columns=columns):
            raise LeaseLostError(lease.submission_id)


def cancel(lease: Lease) -> State:
    """Ends a running submission without a new verdict. Raises LeaseLostError."""
    with transaction() as session:
        for row in lifecycle.change(session, lifecycle.CALL_OFF, lease.holds(), note="cancelled"):
            return State(row.state)
    raise LeaseLostError(lease.submission_id)


def give_back(lease: Lease, note: str) -> None:
    """Queues a submission again after a fault of ours; the sweeper ends it when its attempts are used up."""
    with transaction() as session:
        lifecycle.change(session, lifecycle.QUEUE_AGAIN, lease.holds(), note=note)


def tell(lease: Lease, kind: EventKind, data: Mapping[str, object]) -> None:
    """An event on the way. Losing the last few in a crash of Postgres costs nothing, so it does not wait for the disk."""
    with transaction() as session:
        session.execute(text("SET LOCAL synchronous_commit = off"))
        lifecycle.write_event(session, (lease.submission_id, lease.round, lease.attempt), kind, data)
