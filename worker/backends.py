"""Which ways to grade this host has, and why not the others."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage
from worker import emulator
from worker.gpu import backend as gpu
from worker.judging.job import CaseRun, Job, Run, never
from worker.pytorch.backend import run_cases
from worker.sandbox import Sandbox
from worker.triton import interpret, replay

WARM_TRITON = (
    "triton",
    "triton.backends.nvidia.compiler",
    "triton.backends.nvidia.driver",
    "triton.experimental.gluon.nvidia.hopper",
    "torch.utils._python_dispatch",
)
"""What a session that records kernels would else import for seconds."""


@dataclass(frozen=True)
class Way:
    """How a backend grades one language.

    run: yields each case as it has run; raises Failure for what the submission did. why_missing: why this host cannot, or None.
    warm: modules that the sandbox's interpreter has imported before a session begins.
    """

    run: Run
    why_missing: Callable[[], str | None]
    warm: tuple[str, ...] = ()


def _no_torch() -> str | None:
    return _cannot_import("torch")


def _no_triton() -> str | None:
    return _no_torch() or _cannot_import("triton")


def _no_triton_on_gpu() -> str | None:
    """On a GPU too, the sandbox's Triton is what records a submission."""
    return gpu.missing_gpu() or _no_triton()


def _no_emulator() -> str | None:
    return emulator.missing() if settings().emulator else "switched off (KERNELGATE_EMULATOR)"


WAYS: dict[tuple[Backend, str], Way] = {
    (Backend.TORCH, "pytorch"): Way(run_cases, _no_torch, ("torch",)),
    (Backend.GPU, "cuda"): Way(gpu.run_cases, gpu.missing_gpu),
    (Backend.GPU, "triton"): Way(replay.run_cases, _no_triton_on_gpu),
    (Backend.EMULATOR, "cuda"): Way(emulator.run_cases, _no_emulator),
    (Backend.INTERPRETER, "triton"): Way(interpret.run_cases, _no_triton, WARM_TRITON),
}


class NoBackendError(RuntimeError):
    """This worker has none of the backends a stage can be graded with; the text says which and why."""


@cache
def why_missing(backend: Backend, language: str) -> str | None:
    """Why this host cannot grade a language with a backend, or None. Asked once a process: packages do not change."""
    way = WAYS.get((backend, language))
    return way.why_missing() if way else f"it does not grade {language}"


@cache
def missing() -> dict[Backend, str]:
    """Backends with which this host can grade no language, with the first one's reason."""
    absent = {}
    for backend in Backend:
        whys = [why_missing(backend, language) for known, language in WAYS if known is backend]
        if None not in whys:
            absent[backend] = next((why for why in whys if why), "this release has no such backend")
    return absent


def available() -> tuple[Backend, ...]:
    return tuple(backend for backend in Backend if backend not in missing())


def open_sandbox(give_way: Callable[[], bool] = never, slot: int = 0) -> Sandbox:
    """A sandbox as the settings ask for it; what its backends use is warm where the interpreter has it. Raises SandboxError.

    give_way: what runs in it ends, with Cancelled, whenever this is true. slot: the kernel counts processes by user, so each
    sandbox that is used at the same time has a user of its own.
    """
    values = settings()
    preload = tuple(
        module for key, way in WAYS.items() if way.warm and why_missing(*key) is None for module in way.warm
    )
    return Sandbox(
        python=values.runner_python,
        uid=values.sandbox_uid + slot,
        minimum=values.sandbox_minimum,
        preload=preload,
        give_way=give_way,
    )


def warm() -> None:
    """Starts, in the background, what the first submissions would wait for: a bench for the card, the CPU's player."""
    gpu.warm()
    if settings().check_pass or gpu.missing_gpu() is not None:
        emulator.warm()


def gradable(stage: Stage) -> bool:
    """Whether this host has one of the stage's backends."""
    return any(_lacking(stage, backend) is None for backend in stage.spec.backends)


def choose(stage: Stage) -> Backend:
    """The first of the stage's backends that this host has. Raises NoBackendError."""
    for backend in stage.spec.backends:
        if _lacking(stage, backend) is None:
            return backend
    why = "; ".join(f"{backend}: {_lacking(stage, backend)}" for backend in stage.spec.backends)
    raise NoBackendError(
        f"stage {stage.name} cannot be graded on this machine ({why}); `kernelgate doctor` shows what is here"
    )


def run(backend: Backend, job: Job) -> Iterator[CaseRun]:
    """Runs a job's cases with a backend that `choose` gave."""
    return WAYS[backend, job.stage.spec.language].run(job)


def _lacking(stage: Stage, backend: Backend) -> str | None:
    return why_missing(backend, stage.spec.language)


def _cannot_import(module: str) -> str | None:
    """Why the sandbox's interpreter cannot find `module`, or None. Finding is enough: importing torch takes seconds."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    python = settings().runner_python
    try:
        found = subprocess.run([python, "-I", "-c", code], capture_output=True, timeout=60, check=False)
    except OSError as error:
        return f"{python} does not start: {error}"
    return None if found.returncode == 0 else f"{python} has no {module}; install requirements/grade.txt for it"
