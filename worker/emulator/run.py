"""One run of a program in the sandbox: arrays in, arrays out, and what it found on the way."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelgate.stages import Limits as StageLimits
from worker.emulator import counts, findings
from worker.emulator.findings import Finding
from worker.emulator.toolchain import Pass
from worker.judging.job import never
from worker.sandbox import End, Finished, Limits, Sandbox

LONG_BYTES = 1 << 20
"""A case whose arrays take more runs behind all others on the host: short cases of everybody before long ones of anybody."""
STARTUP_S = 2.0
"""Seconds on top of a case's own: the sandbox, the program's start and the arrays' way in and out."""
SLICE_S = 10.0
"""Processor seconds of a case of which only some blocks are watched; when they are over, nothing was found there."""
ADDR2LINE_LIMITS = Limits(wall_s=60, cpu_s=20, memory_mb=1024, scratch_mb=128, output_kb=256, processes=8)


_ENDED = re.compile(r"(\w{0,80})\n")


@dataclass(frozen=True)
class Slice:
    """Which of a launch's blocks are watched: so many of them, drawn by the seed. What nobody waits for is not played."""

    blocks: int
    seed: int


@dataclass(frozen=True)
class Call:
    """What a program plays. inputs: arrays by name; outputs, scratch: bytes of each array that is written, and of those that
    nobody looks at afterwards; addresses: where all of them lie; tape: what is done, in its order (`script`).

    decoy: other inputs that the tape is played with before; then it is also played once more with the same ones after.
    slice: for the check build, of a case that is too long to be watched as a whole. count: for it too, of a case of which it
    is counted how its warps use memory.
    """

    inputs: Mapping[str, NDArray[np.generic]]
    outputs: Mapping[str, int]
    scratch: Mapping[str, int]
    addresses: Mapping[str, int]
    tape: str
    decoy: Mapping[str, NDArray[np.generic]] | None = None
    slice: Slice | None = None
    count: bool = False

    def size(self) -> int:
        """Bytes of all arrays."""
        return (
            sum(array.nbytes for array in self.inputs.values())
            + sum(self.outputs.values())
            + sum(self.scratch.values())
        )

    def files(self) -> dict[str, bytes]:
        lines = ["decoy"] if self.decoy else []
        lines += [f"slice {self.slice.blocks} {self.slice.seed}"] if self.slice else []
        lines += ["count"] if self.count else []
        lines += [f"in {name} {array.nbytes} {self.addresses[name]}" for name, array in self.inputs.items()]
        lines += [f"out {name} {size} {self.addresses[name]}" for name, size in self.outputs.items()]
        lines += [f"scratch {name} {size} {self.addresses[name]}" for name, size in self.scratch.items()]
        arrays = {f"{name}.in": array.tobytes() for name, array in self.inputs.items()}
        decoys = {f"{name}.decoy": array.tobytes() for name, array in (self.decoy or {}).items()}
        case = {"case": ("\n".join(lines) + "\n").encode(), "tape": self.tape.encode()}
        return {**case, **arrays, **decoys}


@dataclass(frozen=True)
class Ran:
    """One run. written: every array's bytes after the tape was played, inputs too; empty unless it was, to its end. again:
    the outputs after it was played once more, where it was.

    error: the CUDA error of a launch that was refused, "" for none. lines: of the finding's addresses. counted: what was
    counted, as it came.
    """

    finished: Finished
    written: Mapping[str, bytes]
    error: str
    finding: Finding | None
    lines: Mapping[str, int]
    ms: float
    again: Mapping[str, bytes] = field(default_factory=dict)
    counted: bytes = b""

    @property
    def returned(self) -> bool:
        return self.finished.end is End.EXITED and self.finding is None and bool(self.written)


def run(
    sandbox: Sandbox,
    file: str,
    build: Pass,
    executable: bytes,
    call: Call,
    *,
    limits: StageLimits,
    workers: int = 1,
    order: str = "forward",
    seed: int = 1,
    cancelled: Callable[[], bool] = never,
) -> Ran:
    """Plays a tape once. file: the submission's, whose lines are told. order: how fibres take turns (forward, reverse, random
    by `seed`); no result may depend on it.
    """
    names, again = [*call.inputs, *call.outputs], [*call.outputs] if call.decoy else []
    settings = {
        "EMULATOR_FINDINGS": findings.FILE,
        "EMULATOR_WORKERS": str(workers),
        "EMULATOR_ORDER": order,
        "EMULATOR_SEED": str(seed),
        "EMULATOR_CPU_MS": str(int(cpu_allowance(limits, build, call) * 1000)),
        "EMULATOR_WALL_MS": str(int(wall_allowance(limits, build, call) * 1000)),
    }
    exported = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    behind = "nice -n 10 " if is_long(call) else ""
    argv = ["/bin/sh", "-c", f"chmod u+x submission && {exported} exec {behind}./submission"]
    start = time.perf_counter()
    finished = sandbox.run(
        argv,
        limits=_sandbox_limits(limits, build, call),
        files={"submission": executable, **call.files()},
        collect=[
            *(f"{name}.out" for name in names),
            *(f"{name}.again" for name in again),
            "ended",
            findings.FILE,
            *([counts.FILE] if call.count else []),
        ],
        cancelled=cancelled,
    )
    ms = (time.perf_counter() - start) * 1e3
    finding = findings.read(finished.files.get(findings.FILE, b""))
    lines = _lines(sandbox, file, executable, finding) if finding else {}
    ended = _ENDED.fullmatch(finished.files.get("ended", b"")[:200].decode(errors="replace"))
    sizes = {**{name: array.nbytes for name, array in call.inputs.items()}, **call.outputs}
    written = {name: finished.files.get(f"{name}.out", b"") for name in names}
    repeated = {name: finished.files.get(f"{name}.again", b"") for name in again}
    if ended is None or any(len(data) != sizes[name] for name, data in (*written.items(), *repeated.items())):
        return Ran(finished, {}, "", finding, lines, ms)
    return Ran(finished, written, ended[1], finding, lines, ms, repeated, finished.files.get(counts.FILE, b""))


def is_long(call: Call) -> bool:
    return call.size() > LONG_BYTES


def cpu_allowance(limits: StageLimits, build: Pass, call: Call) -> float:
    """CPU seconds of one call: a stage's limit is a GPU's, and what takes a GPU longer takes an emulator longer by far.

    Processor time, so that a busy machine changes no verdict.
    """
    if call.slice is not None:
        return SLICE_S
    by_size = 1 + min(call.size() / (1 << 19), 30.0)
    return limits.case_s * by_size * (1 if build is Pass.PLAIN else 5 if call.count else 3)


def wall_allowance(limits: StageLimits, build: Pass, call: Call) -> float:
    """Seconds of one call on a machine that does other things as well."""
    return cpu_allowance(limits, build, call) * (10 if is_long(call) else 3)


def _sandbox_limits(limits: StageLimits, build: Pass, call: Call) -> Limits:
    """Shadow memory is many times the arrays; scratch holds every array twice and the program."""
    factor = 1 if build is Pass.PLAIN else 3
    allowed = cpu_allowance(limits, build, call)
    return Limits(
        wall_s=wall_allowance(limits, build, call) + STARTUP_S,
        cpu_s=allowed + STARTUP_S,
        memory_mb=limits.memory_mb * factor,
        scratch_mb=limits.scratch_mb + (3 * call.size() >> 20) + 64,
        output_kb=limits.output_kb,
        processes=limits.processes,
    )


def _lines(sandbox: Sandbox, file: str, executable: bytes, finding: Finding) -> dict[str, int]:
    return findings.resolve_with(finding, file, addr2line(sandbox, executable))


def addr2line(sandbox: Sandbox, executable: bytes) -> Callable[[list[str]], str]:
    """What the tool of that name says of a program's addresses."""

    def said(asked: list[str]) -> str:
        done = sandbox.run(
            ["/usr/bin/addr2line", "-i", "-a", "-e", "submission", *asked],
            limits=ADDR2LINE_LIMITS,
            files={"submission": executable},
        )
        return done.stdout.decode(errors="replace")

    return said
