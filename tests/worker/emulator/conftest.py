"""The emulator as a worker has it: submissions compiled by nvcc, recorded, and played in the real sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case, Limits, Seam, Stage
from worker.emulator.build import build
from worker.emulator.run import Call, Ran, Slice, run
from worker.emulator.script import VIRTUAL, placed, plain_name, script
from worker.emulator.submission import translation
from worker.emulator.toolchain import Pass, Toolchain, missing, toolchain
from worker.judging.failures import Failure
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.recording.compile import Compiled, compile_cuda, demangled
from worker.recording.placement import WORKSPACE, Edge
from worker.recording.record import Take, record
from worker.sandbox import Sandbox

PATIENCE_S = 600
LIMITS = Limits(wall_s=60, case_s=10, memory_mb=2048, workspace_kb=64)


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
    """A submission with its programs; call it to play one of them. starter: a script that starts a program for another
    processor, put before it."""

    job: Job
    compiled: Compiled
    programs: Mapping[Pass, bytes]
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
        slice: Slice | None = None,  # noqa: A002
        count: bool = False,
    ) -> Ran:
        return run(
            self.job.sandbox,
            self.job.stage.spec.file,
            build,
            self.starter + self.programs[build],
            replace(self._call(inputs, outputs, values, slice), count=count),
            limits=limits,
            workers=workers,
            order=order,
            seed=seed,
        )

    def _call(
        self,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, int],
        values: Mapping[str, float],
        watched: Slice | None,
    ) -> Call:
        sizes = {name: array.nbytes for name, array in inputs.items()}
        buffers = placed(sizes, outputs, LIMITS.workspace_kb << 10)
        case = Case(name="case", title="", group="", params=dict(values))
        take = Take(case, Edge.END, buffers)
        tape = record(self.job, self.compiled, VIRTUAL.device, [take])[take.label]
        addresses = {plain_name(name): it.address for name, it in buffers.items()}
        scratch = {plain_name(WORKSPACE): buffers[WORKSPACE].size}
        return Call(inputs, outputs, scratch, addresses, script(tape), slice=watched)


@pytest.fixture(scope="session")
def emulate(compiler: Toolchain, sandbox: Sandbox) -> Callable[..., Emulated]:
    """emulate(name, signature, source, passes=…): compiles a seam; raises worker.judging.failures.Failure as grading does."""
    return compiling(compiler, sandbox)


def compiling(toolchain: Toolchain, sandbox: Sandbox, starter: bytes = b"") -> Callable[..., Emulated]:
    def compiled(
        name: str,
        signature: str,
        source: str,
        passes: Iterable[Pass] = tuple(Pass),
        provided: Mapping[str, str] | None = None,
        code: Pass = Pass.CHECK,
    ) -> Emulated:
        job = job_of(name, signature, source, sandbox, provided or {})
        made = compile_cuda(job, VIRTUAL.target)
        names = list(made.cubin.kernels)
        shown = tuple(zip(names, demangled(sandbox, names), strict=True))
        text = translation(made.ptx.decode(), job.stage.spec.file, shown)
        if isinstance(text, Failure):
            raise text
        return Emulated(job, made, build(toolchain, text, code, tuple(passes), sandbox), starter)

    return compiled


def job_of(name: str, signature: str, source: str, sandbox: Sandbox, provided: Mapping[str, str]) -> Job:
    """A submission to a stage whose seam is `name`; inputs are the test's own."""
    shipped = load_stage(settings().graders_dir / "online_attention")
    seam = Seam(name=name, signature=signature)
    spec = shipped.spec.model_copy(update={"file": f"{name}.cu", "seam": seam, "limits": LIMITS})
    stage = Stage(shipped.folder, spec, {f"provided/{name}": text.encode() for name, text in provided.items()})
    nobody = cast(Grader, None)
    return Job(stage=stage, source=source, grader=nobody, sandbox=sandbox, seed="0", phases=Phases(Unwatched()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first of these tests builds the emulator's runtimes, which takes half a minute of an idle machine's time."""
    for item in items:
        if "compiler" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(PATIENCE_S))
