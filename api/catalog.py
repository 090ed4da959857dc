"""The stages this process serves: the folders on disk, re-read when they change, and what the database says of them.

A stage takes submissions when its folder parses, an admin has not switched it off, and exactly the version that lies there
was proven: by a worker here, or before it shipped. The API executes nothing of a stage; its grader is code and belongs to the
worker.
"""

from __future__ import annotations

import difflib
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from api.problems import Refusal
from kernelgate.models import StageSwitch, StageVersion
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Stage

_LOOK_AGAIN_S = 2.0


class StageState(StrEnum):
    """Whether a stage takes submissions, and if not, what it waits for."""

    OPEN = "open"
    BEING_PROVEN = "being_proven"
    FAILED = "failed"
    CLOSED = "closed"


@dataclass(frozen=True)
class Proof:
    """How far the proof of a version is that runs now. seconds_left: by what the checks before took; None at first."""

    done: int
    of: int
    seconds_left: float | None = None

    @property
    def text(self) -> str:
        left = "" if self.seconds_left is None else f", about {_roughly(self.seconds_left)}"
        return f"{self.done} of {self.of}{left}"


def _roughly(seconds: float) -> str:
    return f"{max(5, round(seconds / 5) * 5)} s" if seconds < 90 else f"{round(seconds / 60)} min"


@dataclass(frozen=True)
class Standing:
    """What the database says of a stage. shipped: it is open because it was proven before it shipped, and not yet here."""

    enabled: bool = True
    frozen_at: datetime | None = None
    verified: bool = False
    seen: bool = False
    shipped: bool = False
    proof: Proof | None = None

    @property
    def state(self) -> StageState:
        if not self.enabled:
            return StageState.CLOSED
        if not self.seen:
            return StageState.BEING_PROVEN
        return StageState.OPEN if self.verified else StageState.FAILED

    @property
    def open(self) -> bool:
        return self.enabled and self.verified

    def why_closed(self, stage: Stage) -> Refusal | None:
        """Why the stage takes no submissions, or None."""
        if not self.enabled:
            return Refusal(
                "stage_closed",
                f"The stage {stage.name} was closed by an administrator.",
                field="stage",
                value=stage.name,
            )
        if not self.seen:
            so_far = f" {self.proof.text}." if self.proof else ""
            detail = (
                f"No worker has verified {stage.name} yet: all files that ship with it are graded here first. "
                f"It opens by itself.{so_far}"
            )
            return Refusal("stage_unverified", detail, field="stage", value=stage.name)
        if not self.verified:
            detail = (
                f"{stage.name} failed its verification: not every file that ships with it got its verdict here. Its page under "
                "/admin/stages says why."
            )
            return Refusal("stage_unverified", detail, field="stage", value=stage.name)
        return None


class Catalog:
    """The stages under one folder. Thread-safe; a look at the disk at most every two seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._looked = 0.0
        self._fingerprint: tuple[tuple[str, int, int], ...] | None = None
        self._stages: dict[str, Stage] = {}
        self._broken: dict[str, str] = {}

    def stages(self) -> dict[str, Stage]:
        """Usable stages by name, in the order of their paths; no drafts, which administrators alone know of."""
        return {name: stage for name, stage in self.with_drafts().items() if not stage.spec.draft}

    def with_drafts(self) -> dict[str, Stage]:
        self._refresh()
        return self._stages

    def broken(self) -> dict[str, str]:
        """Folders that cannot be used, with why."""
        self._refresh()
        return self._broken

    def reload(self) -> None:
        """Reads everything again, now."""
        self._refresh(force=True)

    def _refresh(self, force: bool = False) -> None:
        with self._lock:
            if not force and time.monotonic() - self._looked < _LOOK_AGAIN_S:
                return
            fingerprint = self._look()
            if force or fingerprint != self._fingerprint:
                self._stages, self._broken = load_stages(self.folder) if self.folder.is_dir() else ({}, {})
                self._fingerprint = fingerprint
            self._looked = time.monotonic()

    def _look(self) -> tuple[tuple[str, int, int], ...]:
        found = []
        for path in sorted(self.folder.rglob("*")) if self.folder.is_dir() else ():
            try:
                status = path.stat()
            except OSError:  # gone between the listing and the look: an editor's temporary file
                continue
            found.append((str(path), status.st_mtime_ns, status.st_size))
        return tuple(found)

    def stage(self, name: str, *, field: str = "path.stage", drafts: bool = False) -> Stage:
        """Raises Refusal for an unknown name, with those that look like it, and for a folder that does not parse."""
        stages = self.with_drafts() if drafts else self.stages()
        if name in stages:
            return stages[name]
        if name in self._broken:
            raise Refusal("stage_unverified", f"The folder of stage {name} cannot be used at the moment.", field=field)
        near = difflib.get_close_matches(name[:64].lower(), stages, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        detail = f"There is no stage of that name.{hint}"
        raise Refusal(
            "unknown_stage", detail, field=field, value=name, accepted=", ".join(near or stages) or "none yet"
        )


def standings(database: Session, stages: dict[str, Stage]) -> dict[str, Standing]:
    """The standing of every stage given, for the version of it that lies on disk."""
    switches = {row.stage: row for row in database.scalars(select(StageSwitch))}
    versions = {(row.stage, row.hash): row for row in database.execute(select(*_VERSION))}
    return {name: _standing(switches.get(name), versions.get((name, stage.hash))) for name, stage in stages.items()}


def standing(database: Session, stage: Stage) -> Standing:
    here = (StageVersion.stage == stage.name, StageVersion.hash == stage.hash)
    version = database.execute(select(*_VERSION).where(*here)).one_or_none()
    return _standing(database.get(StageSwitch, stage.name), version)


_VERSION = (
    StageVersion.stage,
    StageVersion.hash,
    StageVersion.verified,
    StageVersion.report["proving"].label("proving"),
    StageVersion.report["shipped"].label("shipped"),
)


def _standing(switch: StageSwitch | None, version: Row[Any] | None) -> Standing:
    proving = version.proving if version is not None else None
    verified = version is not None and version.verified
    return Standing(
        enabled=switch is None or switch.enabled,
        frozen_at=switch.frozen_at if switch is not None and switch.frozen else None,
        verified=verified,
        seen=version is not None and (verified or proving is None),
        shipped=version is not None and bool(version.shipped),
        proof=Proof(**proving) if proving else None,
    )
