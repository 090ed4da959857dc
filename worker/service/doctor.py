"""Looks at this machine and says what grading has here and what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import redis
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from kernelgate.db import transaction
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Backend
from worker.backends import available, known, missing, open_sandbox
from worker.emulator import compiler
from worker.emulator.check_pass import offered
from worker.gpu import bench_client
from worker.gpu.health import why_unwell
from worker.judging.machine import facts
from worker.sandbox import SandboxError


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `severity` matters when it is not `ok`: FAIL stops grading, `note` does not."""

    name: str
    ok: bool
    detail: str
    severity: str = "note"

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def examine() -> list[Finding]:
    """Everything worth knowing before trusting this machine with submissions. Never raises for what it finds."""
    parts: tuple[Callable[[], Iterator[Finding]], ...] = (_machine, _sandbox, _backends, _database, _broker, _stages)
    return [finding for part in parts for finding in part()]


def _machine() -> Iterator[Finding]:
    found = facts()
    yield Finding(
        "machine", True, f"{found['cpu']}, {found['cores']} cores, {found['system']}, Python {found['python']}"
    )


def _sandbox() -> Iterator[Finding]:
    try:
        with open_sandbox() as sandbox:
            for layer in sandbox.layers:
                yield Finding(f"sandbox {layer.name}", layer.holds, layer.detail)
            yield Finding(
                "sandbox", True, f"level {sandbox.layers.level}; asked for at least {settings().sandbox_minimum}"
            )
    except SandboxError as error:
        yield Finding("sandbox", False, str(error), "FAIL")


def _backends() -> Iterator[Finding]:
    for backend in known():
        yield Finding(f"backend {backend}", backend in available(), missing().get(backend) or _here(backend))
    if Backend.GPU in available() or why_unwell() is not None:
        why = bench_client.look()
        yield Finding("card", why is None, why or "well: a test kernel computes, and nobody else is on it", "FAIL")
    if not available():
        yield Finding("backends", False, "none; no stage can be graded here", "FAIL")


def _here(backend: Backend) -> str:
    return f"here, with {compiler()}; it judges values, not speed" if backend is Backend.EMULATOR else "here"


def _database() -> Iterator[Finding]:
    try:
        with transaction() as session:
            version = session.scalar(text("SHOW server_version"))
        yield Finding("database", True, f"Postgres {version}")
    except SQLAlchemyError as error:
        reason = str(error).splitlines()[0][:200]
        yield Finding(
            "database", False, f"{reason}; `check` works without one, `worker` does not (KERNELGATE_DATABASE_URL)"
        )


def _broker() -> Iterator[Finding]:
    url = settings().broker_url
    try:
        client = redis.Redis.from_url(url.replace("redis+socket://", "unix://").replace("virtual_host=", "db="))
        client.ping()
        yield Finding("broker", True, "answers")
    except (redis.RedisError, ValueError) as error:
        yield Finding("broker", False, f"{str(error)[:200]}; `check` works without one, `worker` does not")


def _stages() -> Iterator[Finding]:
    stages, broken = load_stages(settings().graders_dir)
    for name, stage in stages.items():
        here = [backend for backend in stage.spec.backends if backend not in missing()]
        wanted = ", ".join(stage.spec.backends)
        beside = ", with the emulator's check pass beside it" if here[:1] == [Backend.GPU] and offered(stage) else ""
        graded = f"graded by {here[0]}{beside}" if here else f"needs one of {wanted}"
        yield Finding(f"stage {name}", bool(here), graded)
    for name, why in broken.items():
        yield Finding(f"stage {name}", False, why, "FAIL")
