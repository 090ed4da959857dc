"""Which ways to grade this host has, and why not the others."""

from __future__ import annotations

import subprocess
from functools import cache

from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage
from worker import emulator
from worker.gpu import backend as gpu
from worker.judging.job import Run
from worker.pytorch.backend import run_cases
from worker.sandbox import Sandbox
from worker.triton import interpret, replay

RUNS: dict[Backend, Run] = {
    Backend.TORCH: run_cases,
    Backend.GPU: lambda job: (replay if job.stage.spec.language == "triton" else gpu).run_cases(job),
    Backend.EMULATOR: emulator.run_cases,
    Backend.INTERPRETER: interpret.run_cases,
}

WARM_TRITON = (
    "triton",
    "triton.backends.nvidia.compiler",
    "triton.backends.nvidia.driver",
    "triton.experimental.gluon.nvidia.hopper",
    "torch.utils._python_dispatch",
)
"""What a session that records kernels would else import for seconds."""


class NoBackendError(RuntimeError):
    """This worker has none of the backends a stage can be graded with; the text says which and why."""


@cache
def missing() -> dict[Backend, str]:
    """Backends this host cannot run, with the reason. Asked once a process: the interpreter's packages do not change."""
    absent = {backend: "this release has no such backend" for backend in Backend if backend not in RUNS}
    if Backend.TORCH not in absent and (why := _cannot_import("torch")):
        absent[Backend.TORCH] = why
    if Backend.INTERPRETER not in absent and (why := absent.get(Backend.TORCH) or _cannot_import("triton")):
        absent[Backend.INTERPRETER] = why
    if Backend.GPU not in absent and (why := gpu.missing_gpu()):
        absent[Backend.GPU] = why
    if Backend.EMULATOR not in absent and (why := _no_emulator()):
        absent[Backend.EMULATOR] = why
    return absent


def available() -> tuple[Backend, ...]:
    return tuple(backend for backend in Backend if backend not in missing())


def open_sandbox() -> Sandbox:
    """A sandbox as the settings ask for it; with torch warm where the interpreter has it. Raises SandboxError."""
    values = settings()
    preload = tuple(
        module
        for backend, modules in ((Backend.TORCH, ("torch",)), (Backend.INTERPRETER, WARM_TRITON))
        if backend in available()
        for module in modules
    )
    return Sandbox(python=values.runner_python, uid=values.sandbox_uid, minimum=values.sandbox_minimum, preload=preload)


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


def _lacking(stage: Stage, backend: Backend) -> str | None:
    """Why this host cannot grade the stage with a backend, or None. On a GPU too, Triton is what records a submission."""
    if backend is Backend.GPU and stage.spec.language == "triton" and Backend.GPU not in missing():
        return missing().get(Backend.INTERPRETER)
    return missing().get(backend)


def _no_emulator() -> str | None:
    """Why CUDA C++ is not emulated here, or None."""
    return emulator.missing() if settings().emulator else "switched off (KERNELGATE_EMULATOR)"


def _cannot_import(module: str) -> str | None:
    """Why the sandbox's interpreter cannot find `module`, or None. Finding is enough: importing torch takes seconds."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    python = settings().runner_python
    try:
        found = subprocess.run([python, "-I", "-c", code], capture_output=True, timeout=60, check=False)
    except OSError as error:
        return f"{python} does not start: {error}"
    return None if found.returncode == 0 else f"{python} has no {module}; install requirements/grade.txt for it"
