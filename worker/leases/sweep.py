"""Puts right what a crash left behind: leases that ran out, attempts that are used up, bells that nobody heard.

Any number of workers sweep; an advisory lock lets one do it at a time. What a sweep changes it changes by conditional
updates, so a worker that is alive after all loses its lease and stops at its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from kernelgate import lifecycle
from kernelgate.db import transaction
from kernelgate.models import SignInFailure, Submission, WorkerRow, now
from kernelgate.protocol import Result
from kernelgate.reasons import Reason
from kernelgate.settings import settings
from kernelgate.stages import Backend
from kernelgate.verdicts import State, Verdict
from worker.leases.identity import is_dead

LOCK = 0x6B67_7377
"""The advisory lock's number; "kgsw"."""
SIGN_IN_MEMORY = timedelta(minutes=15)
WORKER_MEMORY = timedelta(days=1)


@dataclass
class Swept:
    """What one sweep did: ids of submissions."""

    requeued: list[str]
    given_up: list[str]
    rung: list[str]


def sweep(ring: Callable[[str, str], None], *, host: str) -> Swept | None:
    """One sweep. `ring(id, queue)` is called after the commit. None when another worker is sweeping."""
    with transaction() as session:
        if not session.scalar(text("SELECT pg_try_advisory_xact_lock(:lock)"), {"lock": LOCK}):
            return None
        swept = Swept([], [], [])
        _expired(session, swept, host)
        bells = _unrung(session)
        session.execute(delete(SignInFailure).where(SignInFailure.at < now() - SIGN_IN_MEMORY))
        session.execute(delete(WorkerRow).where(WorkerRow.heartbeat_at < now() - WORKER_MEMORY))
    for submission_id, queue in bells:
        ring(submission_id, queue)
        swept.rung.append(submission_id)
    return swept


def _expired(session: Session, swept: Swept, host: str) -> None:
    """Takes back submissions whose worker is gone; SKIP LOCKED leaves one alone that is being finished right now."""
    running = session.scalars(
        select(Submission).where(Submission.state == State.RUNNING).with_for_update(skip_locked=True, of=Submission)
    )
    for row in running:
        if row.lease_until and row.lease_until < now():
            _take_back(session, row, swept, "its worker stopped answering")
        elif row.lease_owner and is_dead(row.lease_owner, host):
            _take_back(session, row, swept, "its worker's process is gone")


def _take_back(session: Session, row: Submission, swept: Swept, why: str) -> None:
    this = Submission.id == row.id
    if row.cancel_requested:
        lifecycle.change(session, lifecycle.CALL_OFF, this, note="cancelled")
    elif row.attempt >= settings().attempts:
        give_up(session, row, why)
        swept.given_up.append(row.id)
    else:
        lifecycle.change(session, lifecycle.QUEUE_AGAIN, this, note=f"{why}; tried again")
        swept.requeued.append(row.id)


def give_up(session: Session, row: Submission, why: str) -> None:
    """Ends a submission as `judge_error`, which does not count against its submitter."""
    result = Result(
        verdict=Verdict.JUDGE_ERROR,
        reason=Reason.JUDGE_FAILED,
        message=f"The service failed {row.attempt} times to grade this ({why}). It does not count; submit it again later.",
        stage=row.stage,
        stage_hash=row.stage_hash,
        backend=None if row.backend is None else Backend(row.backend),
        seed="",
    )
    columns = {} if row.trial else {"verdict": result.verdict, "reason": result.reason, "held": None, "mistake": None}
    graded = lifecycle.Graded(result, "sweeper")
    lifecycle.change(session, lifecycle.GIVE_UP, Submission.id == row.id, graded=graded, columns=columns)


def _unrung(session: Session) -> list[tuple[str, str]]:
    """Queued submissions whose bell was lost or never rung; ends those that have no attempt left."""
    late = now() - timedelta(seconds=settings().ring_again_s)
    waiting = session.scalars(
        select(Submission)
        .where(Submission.state == State.QUEUED, (Submission.rung_at.is_(None)) | (Submission.rung_at < late))
        .where(Submission.created_at < now() - timedelta(seconds=1))
        .order_by(Submission.created_at)
        .limit(500)
        .with_for_update(skip_locked=True, of=Submission)
    )
    bells = []
    for row in waiting:
        if row.attempt >= settings().attempts:
            give_up(session, row, "every attempt failed")
        else:
            row.rung_at = now()
            bells.append((row.id, row.queue))
    return bells
