"""What there is to do and who does it: queues, workers, what runs now."""

from __future__ import annotations

from collections import Counter

from fastapi import Request
from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from api.queues import alive_since, live_workers
from api.schemas import QueueOverview, QueueView, WorkerView
from api.views import summary
from kernelgate.models import Submission, WorkerRow
from kernelgate.turns import queued_since
from kernelgate.verdicts import State

_RUNNING_SHOWN = 200


def queue_overview(request: Request, database: Session) -> QueueOverview:
    running = select(Submission).where(Submission.state == State.RUNNING).options(defer(Submission.source))
    rows = database.scalars(running.order_by(Submission.claimed_at).limit(_RUNNING_SHOWN))
    return QueueOverview(
        queues=queue_views(database), workers=worker_views(database), running=[summary(request, row) for row in rows]
    )


def queue_views(database: Session) -> list[QueueView]:
    """Every queue that has work or a live worker."""
    live = Counter(queue for worker in live_workers(database) for queue in worker.queues)
    queued, running = (func.count().filter(Submission.state == state) for state in (State.QUEUED, State.RUNNING))
    oldest = func.extract("epoch", func.now() - func.min(queued_since()).filter(Submission.state == State.QUEUED))
    rows = database.execute(
        select(Submission.queue, queued, running, oldest)
        .where(Submission.state.in_([State.QUEUED, State.RUNNING]))
        .group_by(Submission.queue)
    ).all()
    found = {
        name: QueueView(
            queue=name,
            queued=waiting,
            running=busy,
            oldest_queued_s=None if age is None else float(age),
            live_workers=live[name],
        )
        for name, waiting, busy, age in rows
    }
    for name in live:
        found.setdefault(name, QueueView(queue=name, queued=0, running=0, live_workers=live[name]))
    return [found[name] for name in sorted(found)]


def worker_views(database: Session) -> list[WorkerView]:
    since = alive_since()
    rows = database.scalars(select(WorkerRow).order_by(WorkerRow.heartbeat_at.desc()).limit(200))
    names = [name for name in WorkerView.model_fields if name != "live"]
    return [
        WorkerView.model_validate({**{name: getattr(row, name) for name in names}, "live": row.heartbeat_at >= since})
        for row in rows
    ]
