"""Which queue a submission goes to: by the stage's backends and the workers that are alive."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.problems import Refusal
from kernelgate.models import Submission, WorkerRow, now
from kernelgate.protocol import CPU_QUEUE, gpu_queue
from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import State

_MISSED_HEARTBEATS = 3


def alive_since() -> datetime:
    """A worker whose heartbeat is older than this is taken for dead."""
    return now() - timedelta(seconds=_MISSED_HEARTBEATS * settings().heartbeat_s)


def live_workers(database: Session) -> list[WorkerRow]:
    """Workers with a recent heartbeat that call themselves healthy."""
    alive = select(WorkerRow).where(WorkerRow.heartbeat_at >= alive_since(), WorkerRow.healthy)
    return list(database.scalars(alive.order_by(WorkerRow.name)))


def unwell_workers(database: Session) -> list[WorkerRow]:
    """Workers with a recent heartbeat that take no work: `health` says why."""
    alive = select(WorkerRow).where(WorkerRow.heartbeat_at >= alive_since(), WorkerRow.healthy.is_(False))
    return list(database.scalars(alive.order_by(WorkerRow.name)))


def choose_queue(database: Session, stage: Stage, gpu: str | None) -> str:
    """The queue for a submission to `stage`; `gpu` names the model wished for. Raises Refusal when nothing can serve it."""
    backends = stage.spec.backends
    workers = live_workers(database)
    models = sorted({worker.gpu_model for worker in workers if worker.gpu_model and Backend.GPU in worker.backends})
    if gpu is not None:
        return _wished(stage, gpu, models)
    if backends[0] is Backend.GPU and models:
        return _shortest(database, [gpu_queue(model) for model in models])
    if set(backends) == {Backend.GPU}:
        raise Refusal(
            "stage_closed", f"{stage.name} is graded on a GPU, and no worker with one is alive.", field="stage"
        )
    return CPU_QUEUE


def _wished(stage: Stage, gpu: str, models: list[str]) -> str:
    if Backend.GPU not in stage.spec.backends:
        raise Refusal(
            "invalid_field", f"{stage.name} is not graded on a GPU.", field="gpu", value=gpu, accepted="no gpu field"
        )
    for model in models:
        if gpu.lower() in (model.lower(), gpu_queue(model)):
            return gpu_queue(model)
    raise Refusal(
        "invalid_field",
        "No live worker has a GPU of that model.",
        field="gpu",
        value=gpu,
        accepted=", ".join(models) or "none is alive",
    )


def _shortest(database: Session, queues: list[str]) -> str:
    waiting: Counter[str] = Counter(dict.fromkeys(queues, 0))
    rows = database.execute(
        select(Submission.queue, func.count())
        .where(Submission.queue.in_(queues), Submission.state.in_([State.QUEUED, State.RUNNING]))
        .group_by(Submission.queue)
    )
    waiting.update({row[0]: row[1] for row in rows})
    return min(queues, key=lambda name: waiting[name])
