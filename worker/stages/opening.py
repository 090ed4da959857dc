"""Which stages take submissions here: what was proven, what shipped as proven, what still waits for its proof.

A row of `stage_versions` says it. `verified` without anything else: proven here. A report with `shipped`: open because it
shipped as proven, and still to be proven here in the background. A report with `proving`: how far a proof has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.dialects.postgresql import insert

from kernelgate.db import transaction
from kernelgate.models import StageVersion
from kernelgate.settings import settings
from kernelgate.shipped import is_shipped
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Backend, Stage
from worker.backends import choose, gradable
from worker.stages.verify import Check, Report

TOLD_EVERY_S = 2.0
"""How often a proof says how far it is."""


@dataclass(frozen=True)
class Unproven:
    """Folders of the present versions that this host can grade and has not proven. Emulated ones come last: they take longest.

    own: nobody has proven them, so they are closed. shipped: they are open, for they were proven before they shipped.
    """

    own: list[Path]
    shipped: list[Path]


def unproven(*, failed_too: bool = False) -> Unproven:
    """Unreadable stages are left out; one that needs a GPU waits for a worker that has it.

    failed_too: also those that were tried and did not pass; a machine that lacked something may have it now.
    """
    own, proven_elsewhere = [], []
    for stage, row in _rows():
        if row is None or (_flag(row, "proving") is not None and not row.verified):
            own.append(stage)
        elif _flag(row, "shipped"):
            proven_elsewhere.append(stage)
        elif failed_too and not row.verified:
            own.append(stage)
    return Unproven(_by_cost(own), _by_cost(proven_elsewhere))


def open_shipped() -> list[str]:
    """Opens what shipped as proven, can be graded here, and was never looked at. Returns the names."""
    names = []
    for stage, row in _rows():
        if row is None and is_shipped(stage):
            _write(stage.name, stage.hash, verified=True, report=_pending(stage.name, stage.hash), replace=False)
            names.append(stage.name)
    return names


def record(report: Report) -> None:
    """Stores a verification: the stage version is open from now on, or says on the admin page why it is not."""
    _write(report.stage, report.hash, verified=report.ok, report=report.as_json(), replace=True)


class Progress:
    """Says in the database how far a proof is, for the pages: "31 of 106, about 2 min". shipped: the stage stays open."""

    def __init__(self, stage: Stage, total: int, *, shipped: bool) -> None:
        self.stage = stage
        self.total = total
        self.shipped = shipped
        self._done = 0
        self._started = time.monotonic()
        self._told = 0.0

    def __call__(self, _: Check) -> None:
        self._done += 1
        now = time.monotonic()
        if now - self._told >= TOLD_EVERY_S:
            self._told = now
            self.tell(now)

    def tell(self, now: float) -> None:
        took = now - self._started
        left = round(took / self._done * max(0, self.total - self._done), 1) if self._done else None
        report = _pending(self.stage.name, self.stage.hash) if self.shipped else {}
        report["proving"] = {"done": self._done, "of": self.total, "seconds_left": left}
        _write(self.stage.name, self.stage.hash, verified=self.shipped, report=report, replace=True)


def _pending(name: str, version: str) -> dict[str, object]:
    return {"stage": name, "hash": version, "shipped": True, "checks": []}


def _write(stage: str, version: str, *, verified: bool, report: dict[str, object], replace: bool) -> None:
    values = {"stage": stage, "hash": version, "verified": verified, "report": report}
    statement = insert(StageVersion).values(values)
    key = ["stage", "hash"]
    with transaction() as session:
        session.execute(
            statement.on_conflict_do_update(index_elements=key, set_=values)
            if replace
            else statement.on_conflict_do_nothing(index_elements=key)
        )


def _rows() -> list[tuple[Stage, StageVersion | None]]:
    stages, _ = load_stages(settings().graders_dir)
    here = [stage for stage in stages.values() if gradable(stage)]
    with transaction() as session:
        return [(stage, session.get(StageVersion, (stage.name, stage.hash))) for stage in here]


def _flag(row: StageVersion, name: str) -> object:
    return (row.report or {}).get(name)


def _by_cost(stages: list[Stage]) -> list[Path]:
    key: Callable[[Stage], tuple[bool, str]] = lambda stage: (choose(stage) is Backend.EMULATOR, stage.name)  # noqa: E731
    return [stage.folder for stage in sorted(stages, key=key)]
