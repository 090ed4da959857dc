"""The emulator as a worker has it: its toolchain, and submissions compiled and run in the real sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pytest

from kernelgate.settings import settings
from kernelgate.stages import Limits
from worker.emulator.build import Programs, Seam, build
from worker.emulator.run import Call, Ran, run
from worker.emulator.toolchain import Pass, Toolchain, missing, toolchain
from worker.sandbox import Sandbox

PATIENCE_S = 600
LIMITS = Limits(wall_s=60, case_s=10, memory_mb=2048)


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    values = settings()
    with Sandbox(python=values.runner_python, uid=values.sandbox_uid, minimum="reduced") as opened:
        yield opened


@pytest.fixture(scope="session")
def compiler() -> Toolchain:
    why = missing()
    if why:
        pytest.skip(why)
    return toolchain()


@dataclass(frozen=True)
class Emulated:
    """A submission with its programs; call it to run one of them. starter: a script that starts a program for another
    processor, put before it."""

    seam: Seam
    programs: Programs
    sandbox: Sandbox
    starter: bytes = b""

    def __call__(
        self,
        build: Pass,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, int],
        values: Mapping[str, float],
        *,
        limits: Limits = LIMITS,
        workers: int = 1,
        order: str = "forward",
        seed: int = 1,
        workspace: int = 0,
    ) -> Ran:
        call = Call(inputs, outputs, values, workspace)
        executable = self.starter + self.programs.executables[build]
        return run(
            self.sandbox, self.seam, build, executable, call, limits=limits, workers=workers, order=order, seed=seed
        )


@pytest.fixture(scope="session")
def emulate(compiler: Toolchain, sandbox: Sandbox) -> Callable[..., Emulated]:
    """emulate(name, signature, source, passes=…): compiles a seam; raises worker.failures.Failure as grading does."""
    return compiling(compiler, sandbox)


def compiling(toolchain: Toolchain, sandbox: Sandbox, starter: bytes = b"") -> Callable[..., Emulated]:
    def compiled(name: str, signature: str, source: str, passes: Iterable[Pass] = tuple(Pass)) -> Emulated:
        seam = Seam(name, signature, f"{name}.cu")
        return Emulated(seam, build(toolchain, seam, source, passes, sandbox=sandbox), sandbox, starter)

    return compiled


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first of these tests builds the emulator's runtimes, which takes half a minute of an idle machine's time."""
    for item in items:
        if "compiler" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(PATIENCE_S))
