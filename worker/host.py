"""What this worker's host offers: its sandbox, its queues, and the row that says so."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from sqlalchemy.dialects.postgresql import insert

from kernelgate.db import transaction
from kernelgate.models import WorkerRow, now
from kernelgate.protocol import CPU_QUEUE, gpu_queue
from kernelgate.settings import settings
from kernelgate.stages import Backend
from worker import gpu
from worker.backends import available, missing
from worker.identity import host_name
from worker.sandbox import Sandbox

WARM_TRITON = (
    "triton",
    "triton.backends.nvidia.compiler",
    "triton.backends.nvidia.driver",
    "triton.experimental.gluon.nvidia.hopper",
    "torch.utils._python_dispatch",
)
"""What a session that records kernels would else import for seconds."""


def open_sandbox() -> Sandbox:
    """A sandbox as the settings ask for it; with torch warm where the interpreter has it. Raises SandboxError."""
    values = settings()
    preload = tuple(
        module
        for backend, modules in ((Backend.TORCH, ("torch",)), (Backend.INTERPRETER, WARM_TRITON))
        if backend in available()
        for module in modules
    )
    return Sandbox(python=values.runner_python, uid=values.sandbox_uid, minimum=values.sandbox_minimum, preload=preload)


def queues() -> tuple[str, ...]:
    """The queues this worker listens on."""
    stated = tuple(name.strip() for name in settings().worker_queues.split(",") if name.strip())
    found = gpu.model()
    return stated or ((CPU_QUEUE, gpu_queue(found)) if found else (CPU_QUEUE,))


def worker_name() -> str:
    return f"{host_name()}:{os.getpid()}"


def report_worker(name: str, started: datetime, *, healthy: bool, health: dict[str, Any]) -> None:
    """Writes this worker's row with a fresh heartbeat."""
    values = {
        "name": name,
        "queues": list(queues()),
        "backends": [*map(str, available())],
        "gpu_model": gpu.model(),
        "healthy": healthy,
        "health": {**health, "missing": {str(backend): why for backend, why in missing().items()}},
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
