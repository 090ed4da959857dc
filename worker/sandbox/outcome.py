"""What a run may use, how it ended, and the two exceptions: our fault, and the sandboxed side being gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one run may use. Seconds, MiB and KiB; every figure is for all processes of the run together
    except `open_files`, which is for each."""

    wall_s: float
    cpu_s: float
    memory_mb: int
    scratch_mb: int
    output_kb: int
    processes: int = 64
    open_files: int = 256

    def __post_init__(self) -> None:
        for name, least in (("wall_s", 0), ("cpu_s", 0), ("memory_mb", 0), ("scratch_mb", 0), ("output_kb", 0)):
            if not getattr(self, name) > least:
                raise ValueError(f"limit {name} is {getattr(self, name)}; more than {least} is accepted")
        if self.processes < 1 or self.open_files < 16:
            raise ValueError(
                f"limits of {self.processes} processes and {self.open_files} open files; at least 1 and 16 are accepted"
            )


class End(StrEnum):
    """How a run ended."""

    EXITED = "exited"  # the main process left, with whatever status: no status means success to anyone
    SIGNALED = "signaled"  # a signal it caused itself
    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    OUTPUT = "output"
    SCRATCH = "scratch"
    KILLED = "killed"  # we were asked to


@dataclass(frozen=True)
class Finished:
    """What is left of a run.

    exit_code: set with End.EXITED (None there too when a session shut its channel and had to be stopped); signal: set with
    End.SIGNALED. stdout, stderr: the first bytes, `output_kb` KiB in both together at most. wall_ms: from the program's
    first instruction. peak_mb: the largest memory seen in MiB, sampled, pages shared with the warm interpreter left out.
    files: the contents of those names of `collect` that are regular files in the scratch folder.
    """

    end: End
    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    wall_ms: float
    peak_mb: float
    files: dict[str, bytes] = field(default_factory=dict)


class SandboxError(Exception):
    """Our fault, never the program's: a layer that could not be set up, an interpreter that does not start, a lost process."""


class SessionEnded(Exception):  # noqa: N818 - an outcome, not an error of this program
    """The sandboxed side is gone, or hit a limit, while it was read from or written to; `finished` says how."""

    def __init__(self, finished: Finished) -> None:
        super().__init__(f"the sandboxed process is gone: {finished.end.value}")
        self.finished = finished
