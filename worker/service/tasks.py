"""What a worker does when the bell rings: claim what is next, grade, write down. The bell says only that something waits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sqlalchemy.exc import OperationalError

from kernelgate.protocol import Result
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from worker.gpu import backend as gpu
from worker.grade import grade, new_seed
from worker.judging.failures import Cancelled
from worker.leases.events import Reported
from worker.leases.heartbeat import Heartbeat, beating
from worker.leases.identity import host_name, owner_name
from worker.leases.lease import Lease, LeaseLostError, cancel, finish, give_back
from worker.leases.turn import claim_next
from worker.sandbox import Sandbox
from worker.service.registration import queues

log = logging.getLogger(__name__)
RETRY_S = 0.5


def run(sandbox: Sandbox) -> None:
    """Grades what is next by fairness, if anything waits. Never raises for a fault of ours: the submission is queued again."""
    if not gpu.fit():
        return  # it stays queued, and is rung for again
    lease = claim_next(queues(), owner_name())
    if lease is None:
        return
    submission_id = lease.submission_id
    try:
        with beating(lease) as heartbeat:
            _grade(lease, sandbox, heartbeat)
    except LeaseLostError:
        log.warning("lost the lease of %s; whoever holds it writes the result", submission_id)
    except Exception as error:
        log.exception("grading %s failed", submission_id)
        note = f"the worker failed ({type(error).__name__}); tried again"
        _persistently(lease, lambda: give_back(lease, note))


def _grade(lease: Lease, sandbox: Sandbox, heartbeat: Heartbeat) -> None:
    stage = load_stage(settings().graders_dir / lease.stage)
    try:
        result = grade(
            stage,
            lease.source,
            sandbox=sandbox,
            seed=new_seed(),
            progress=Reported(lease),
            cancelled=heartbeat.stop_asked,
            trial=lease.trial,
        )
    except Cancelled:
        if heartbeat.lost.is_set():
            raise LeaseLostError(lease.submission_id) from None
        _persistently(lease, lambda: cancel(lease))
        return
    _persistently(lease, lambda: _finish(lease, result))


def _finish(lease: Lease, result: Result) -> None:
    finish(lease, result, host_name())


def _persistently(lease: Lease, write: Callable[[], object]) -> None:
    """Writes, waiting for a Postgres that restarts as long as the lease can still be ours. Raises what `write` raises."""
    deadline = time.monotonic() + settings().lease_s
    while True:
        try:
            write()
        except OperationalError:
            if time.monotonic() > deadline:
                raise
            log.warning("the database is away; the outcome of %s waits", lease.submission_id)
            time.sleep(RETRY_S)
        else:
            return
