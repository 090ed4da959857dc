"""Which ways to grade this host has, and why not the others."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from kernelgate import add_ons
from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage
from worker import emulator
from worker.gpu import backend as gpu
from worker.judging.job import CaseRun, Job, never
from worker.judging.way import Way
from worker.sandbox import Sandbox

BUILT_IN = (
    ("torch", "worker.pytorch.backend:WAYS"),
    ("gpu", "worker.gpu.backend:WAYS"),
    ("gpu", "worker.triton.ways:ON_A_CARD"),
    ("emulator", "worker.emulator:WAYS"),
    ("interpreter", "worker.triton.ways:INTERPRETED"),
)
"""Our own, in the form in which an installed package states its backend (kernelgate/add_ons.py): word, "module:attribute"."""
log = logging.getLogger(__name__)


@cache
def ways() -> dict[tuple[Backend, str], Way]:
    """Every way to grade a language, by backend: ours, then those of installed packages, which replace none of ours."""
    found: dict[tuple[Backend, str], Way] = {}
    for word, reference in BUILT_IN:
        found |= {(Backend(word), way.language): way for way in _load(reference)}
    for word, about in add_ons.backends().items():
        try:
            theirs = {(Backend(word), way.language): way for way in _load(about.ways)}
        except Exception as error:  # a package may fail in any way
            log.warning("backend %r (%s) does not load: %s: %s", word, about.ways, type(error).__name__, error)
        else:
            found |= {pair: way for pair, way in theirs.items() if pair not in found}
    return found


def _load(reference: str) -> Sequence[Way]:
    module, _, attribute = reference.partition(":")
    stated: Sequence[Way] = getattr(importlib.import_module(module), attribute)
    if not all(isinstance(way, Way) for way in stated):
        raise TypeError(f"{reference} holds what is no worker.judging.way.Way")
    return stated


def known() -> tuple[Backend, ...]:
    """Every backend that some way belongs to."""
    return tuple(dict.fromkeys(backend for backend, _ in ways()))


class NoBackendError(RuntimeError):
    """This worker has none of the backends a stage can be graded with; the text says which and why."""


@cache
def why_missing(backend: Backend, language: str) -> str | None:
    """Why this host cannot grade a language with a backend, or None. Asked once a process: packages do not change."""
    way = ways().get((backend, language))
    return way.why_missing() if way else f"it does not grade {language}"


@cache
def missing() -> dict[Backend, str]:
    """Backends with which this host can grade no language, with the first one's reason."""
    absent = {}
    for backend in known():
        whys = [why_missing(backend, language) for each, language in ways() if each is backend]
        if None not in whys:
            absent[backend] = next(why for why in whys if why)
    return absent


def available() -> tuple[Backend, ...]:
    return tuple(backend for backend in known() if backend not in missing())


def open_sandbox(give_way: Callable[[], bool] = never, slot: int = 0) -> Sandbox:
    """A sandbox as the settings ask for it; what its backends use is warm where the interpreter has it. Raises SandboxError.

    give_way: what runs in it ends, with Cancelled, whenever this is true. slot: the kernel counts processes by user, so each
    sandbox that is used at the same time has a user of its own.
    """
    values = settings()
    preload = tuple(
        module for key, way in ways().items() if way.warm and why_missing(*key) is None for module in way.warm
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
    return ways()[backend, job.stage.spec.language].run(job)


def _lacking(stage: Stage, backend: Backend) -> str | None:
    return why_missing(backend, stage.spec.language)
