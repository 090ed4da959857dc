"""PTX text run by the emulator: a module, its launches, and the words that came out."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kernelgate.stages import Limits
from worker.emulator.build import build
from worker.emulator.ptx import translate
from worker.emulator.run import Call, Ran, run
from worker.emulator.script import address
from worker.emulator.toolchain import Pass, toolchain
from worker.sandbox import Sandbox

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
LIMITS = Limits(wall_s=60, case_s=10, memory_mb=2048)
FILE = "kernel.cu"


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel whose parameters are the two arrays' addresses."""

    kernel: str
    grid: int = 1
    block: int = 32
    shared: int = 0
    cooperative: bool = False
    cluster: int = 0

    def line(self, given: int, written: int) -> str:
        arguments = struct.pack("<QQ", given, written).hex()
        sizes = f"{self.grid} 1 1 {self.block} 1 1 {self.shared} {int(self.cooperative)}"
        return f"launch {self.kernel} {sizes} {arguments}" + (f" {self.cluster} 1 1" if self.cluster else "")


@dataclass(frozen=True)
class Programs:
    """A module's program for each pass that was asked for."""

    executables: Mapping[Pass, bytes]


def programs(text: str, sandbox: Sandbox, passes: Sequence[Pass] = (Pass.PLAIN,)) -> Programs:
    """A module's programs. Raises PtxError, or Failure, as grading does."""
    translated = translate(HEAD + text, FILE).text
    return Programs(build(toolchain(), translated, Pass.CHECK, passes, sandbox))


def played(
    made: Programs, sandbox: Sandbox, launches: Sequence[Launch], given: np.ndarray, size: int, build: Pass = Pass.PLAIN
) -> Ran:
    """Runs the launches on `given`; `size`: bytes of the array that is written."""
    return run(sandbox, FILE, build, made.executables[build], called(launches, given, size), limits=LIMITS)


def called(launches: Sequence[Launch], given: np.ndarray, size: int) -> Call:
    places = {"given": address(0, given.nbytes), "written": address(1, size)}
    tape = "".join(f"{launch.line(*places.values())}\n" for launch in launches)
    return Call({"given": given}, {"written": size}, {}, places, tape)


def words(
    text: str, sandbox: Sandbox, launches: Sequence[Launch], given: np.ndarray, count: int, dtype: str = "uint64"
) -> np.ndarray:
    """What the plain program of a module writes."""
    size = count * np.dtype(dtype).itemsize
    ran = played(programs(text, sandbox), sandbox, launches, given, size)
    told = ran.finding.text if ran.finding else ran.finished.stderr.decode(errors="replace")
    assert ran.returned, f"{ran.finished.end}: {told}"
    return np.frombuffer(ran.written["written"], dtype)
