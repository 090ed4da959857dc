"""What this worker's host offers: its queues, and the row that says so."""

from __future__ import annotations

import os
from datetime import datetime

from sqlalchemy.dialects.postgresql import insert

from kernelgate.db import transaction
from kernelgate.models import WorkerRow, now
from kernelgate.protocol import CPU_QUEUE, gpu_queue
from kernelgate.settings import settings
from worker.backends import available, missing
from worker.gpu import backend as gpu
from worker.leases.identity import host_name

MOST_SLOTS = 4
"""Each keeps an interpreter with torch and Triton in memory."""


def queues() -> tuple[str, ...]:
    """The queues this worker listens on."""
    stated = tuple(name.strip() for name in settings().worker_queues.split(",") if name.strip())
    found = gpu.model()
    return stated or ((CPU_QUEUE, gpu_queue(found)) if found else (CPU_QUEUE,))


def slots() -> int:
    """How many submissions this worker grades at once: a card is one's alone, processors are not."""
    return settings().worker_slots or (1 if gpu.model() else min(os.cpu_count() or 1, MOST_SLOTS))


def worker_name() -> str:
    return f"{host_name()}:{os.getpid()}"


def report_worker(name: str, started: datetime, *, healthy: bool, health: dict[str, object]) -> None:
    """Writes this worker's row with a fresh heartbeat."""
    values = {
        "name": name,
        "queues": list(queues()),
        "backends": [*map(str, available())],
        "gpu_model": gpu.model(),
        "healthy": healthy,
        "health": {**health, "slots": slots(), "missing": {str(backend): why for backend, why in missing().items()}},
        "started_at": started,
        "heartbeat_at": now(),
    }
    statement = insert(WorkerRow).values(values)
    with transaction() as session:
        session.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))


def forget_worker(name: str) -> None:
    """Takes this worker's row away: it stops on purpose and is not missing."""
    with transaction() as session:
        row = session.get(WorkerRow, name)
        if row is not None:
            session.delete(row)
