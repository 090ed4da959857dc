"""How long a queued submission will wait: by what stands and runs before it, each as long as its own stage usually takes."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.queues import live_workers
from api.submissions import ahead_of
from kernelgate.models import Submission, now
from kernelgate.verdicts import State

_LAST = 20
_NEARLY_DONE = 0.25
"""What is left of a grading that takes longer than usual, as a share of the usual: nobody knows, and 0 would be wrong."""


def expected_wait_ms(database: Session, submission: Submission) -> float | None:
    """Milliseconds; None where no worker takes it, where nothing is before it, and where a stage has no history yet."""
    slots = sum(int(it.health.get("slots", 1)) for it in live_workers(database) if submission.queue in it.queues)
    if not slots:
        return None
    running = database.execute(
        select(Submission.stage, Submission.claimed_at).where(
            Submission.state == State.RUNNING, Submission.queue == submission.queue
        )
    ).all()
    queued = database.scalars(select(Submission.stage).where(ahead_of(database, submission))).all()
    usual = {
        stage: typical_ms(database, stage, submission.queue) for stage in {row.stage for row in running} | {*queued}
    }
    total = 0.0
    for stage, since in [*((row.stage, row.claimed_at) for row in running), *((stage, None) for stage in queued)]:
        takes = usual[stage]
        if takes is None:
            return None
        elapsed = (now() - since).total_seconds() * 1000 if since else 0.0
        total += max(takes - elapsed, takes * _NEARLY_DONE)
    return total / slots or None


def typical_ms(database: Session, stage: str, queue: str) -> float | None:
    """The median of what the last gradings of this stage took in this queue; None without one."""
    spent = (
        select((func.extract("epoch", Submission.finished_at - Submission.claimed_at) * 1000).label("ms"))
        .where(
            Submission.stage == stage,
            Submission.queue == queue,
            Submission.state == State.DONE,
            Submission.claimed_at.is_not(None),
            Submission.trial.is_(None),
        )
        .order_by(Submission.finished_at.desc())
        .limit(_LAST)
        .subquery()
    )
    found = database.scalar(select(func.percentile_cont(0.5).within_group(spent.c.ms)))
    return float(found) if found is not None else None
