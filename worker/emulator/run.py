"""One run of a compiled seam in the sandbox: arrays in, arrays out, and what the emulator found on the way."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kernelgate.stages import Limits as StageLimits
from worker.emulator import findings
from worker.emulator.build import Seam
from worker.emulator.findings import Finding
from worker.emulator.toolchain import Pass
from worker.judging.job import never
from worker.sandbox import End, Finished, Limits, Sandbox

STARTUP_S = 2.0
"""Seconds on top of a case's own: the sandbox, the program's start and the arrays' way in and out."""
ADDR2LINE_LIMITS = Limits(wall_s=60, cpu_s=20, memory_mb=1024, scratch_mb=128, output_kb=256, processes=8)


_ENDED = re.compile(r"(\d{1,18}) (\w{0,80})\n")


@dataclass(frozen=True)
class Call:
    """What a seam is called with. inputs: arrays by parameter; outputs: bytes of each array it writes; values: numbers.

    workspace, static: bytes it may allocate, and its variables may take. decoy: other inputs that it is called with before;
    then it is also called once more with the same ones after. addresses: where arrays have to lie, of those that cannot lie
    anywhere. tape: what a seam that is replayed does.
    """

    inputs: Mapping[str, NDArray[np.generic]]
    outputs: Mapping[str, int]
    values: Mapping[str, float]
    workspace: int = 0
    static: int = 1 << 30
    decoy: Mapping[str, NDArray[np.generic]] | None = None
    addresses: Mapping[str, int] = field(default_factory=dict)
    tape: str = ""

    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.inputs.values()) + sum(self.outputs.values())

    def files(self) -> dict[str, bytes]:
        lines = [f"workspace {self.workspace}", f"static {self.static}", *(["decoy"] if self.decoy else [])]
        lines += [f"in {name} {array.nbytes} {self.addresses.get(name, 0)}" for name, array in self.inputs.items()]
        lines += [f"out {name} {size} {self.addresses.get(name, 0)}" for name, size in self.outputs.items()]
        lines += [f"value {name} {value!r}" for name, value in self.values.items()]
        arrays = {f"{name}.in": array.tobytes() for name, array in self.inputs.items()}
        decoys = {f"{name}.decoy": array.tobytes() for name, array in (self.decoy or {}).items()}
        tape = {"tape": self.tape.encode()} if self.tape else {}
        return {"case": ("\n".join(lines) + "\n").encode(), **tape, **arrays, **decoys}


@dataclass(frozen=True)
class Ran:
    """One run. written: every array's bytes after the call, inputs too; empty unless the seam returned. again: what the seam
    wrote when it was called once more, where it was.

    launches: kernels that were started. error: the CUDA error that was left behind, "" for none. lines: of the finding's
    addresses.
    """

    finished: Finished
    written: Mapping[str, bytes]
    launches: int
    error: str
    finding: Finding | None
    lines: Mapping[str, int]
    ms: float
    again: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def returned(self) -> bool:
        return self.finished.end is End.EXITED and self.finding is None and bool(self.written)


def run(
    sandbox: Sandbox,
    seam: Seam,
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
    """Calls the seam once. order: how fibres take turns (forward, reverse, random by `seed`); no result may depend on it."""
    names, again = [*call.inputs, *call.outputs], [*call.outputs] if call.decoy else []
    settings = {
        "EMULATOR_FINDINGS": findings.FILE,
        "EMULATOR_WORKERS": str(workers),
        "EMULATOR_ORDER": order,
        "EMULATOR_SEED": str(seed),
        "EMULATOR_CPU_MS": str(int(cpu_allowance(limits, build, call) * 1000)),
    }
    exported = " ".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())
    argv = ["/bin/sh", "-c", f"chmod u+x submission && {exported} exec ./submission"]
    start = time.perf_counter()
    finished = sandbox.run(
        argv,
        limits=_sandbox_limits(limits, build, call),
        files={"submission": executable, **call.files()},
        collect=[*(f"{name}.out" for name in names), *(f"{name}.again" for name in again), "ended", findings.FILE],
        cancelled=cancelled,
    )
    ms = (time.perf_counter() - start) * 1e3
    finding = findings.read(finished.files.get(findings.FILE, b""))
    lines = _lines(sandbox, seam, executable, finding) if finding else {}
    ended = _ENDED.fullmatch(finished.files.get("ended", b"")[:200].decode(errors="replace"))
    sizes = {**{name: array.nbytes for name, array in call.inputs.items()}, **call.outputs}
    written = {name: finished.files.get(f"{name}.out", b"") for name in names}
    repeated = {name: finished.files.get(f"{name}.again", b"") for name in again}
    if ended is None or any(len(data) != sizes[name] for name, data in (*written.items(), *repeated.items())):
        return Ran(finished, {}, 0, "", finding, lines, ms)
    return Ran(finished, written, int(ended[1]), ended[2], finding, lines, ms, repeated)


def cpu_allowance(limits: StageLimits, build: Pass, call: Call) -> float:
    """CPU seconds of one call: a stage's limit is a GPU's, and what takes a GPU longer takes an emulator longer by far.

    Processor time, so that a busy machine changes no verdict.
    """
    by_size = 1 + min(call.size() / (1 << 19), 30.0)
    return limits.case_s * by_size * (1 if build is Pass.PLAIN else 3)


def _sandbox_limits(limits: StageLimits, build: Pass, call: Call) -> Limits:
    """Shadow memory is many times the arrays; scratch holds every array twice and the program."""
    factor = {Pass.PLAIN: 1, Pass.ASAN: 2, Pass.CHECK: 3}[build]
    allowed = cpu_allowance(limits, build, call)
    return Limits(
        wall_s=allowed * 3 + STARTUP_S,
        cpu_s=allowed + STARTUP_S,
        memory_mb=limits.memory_mb * factor,
        scratch_mb=limits.scratch_mb + (3 * call.size() >> 20) + 64,
        output_kb=limits.output_kb,
        processes=limits.processes,
    )


def _lines(sandbox: Sandbox, seam: Seam, executable: bytes, finding: Finding) -> dict[str, int]:
    def addr2line(asked: list[str]) -> str:
        done = sandbox.run(
            ["/usr/bin/addr2line", "-i", "-a", "-e", "submission", *asked],
            limits=ADDR2LINE_LIMITS,
            files={"submission": executable},
        )
        return done.stdout.decode(errors="replace")

    return findings.resolve_with(finding, seam.file, addr2line)
