"""Real nvcc objects, recorded in the real sandbox; skipped with a reason where the CUDA toolkit is not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.recording.native import BuildError, cuda_root
from worker.recording.record import Device
from worker.sandbox import Sandbox

H200 = {
    1: 1024,
    8: 49152,
    16: 132,
    39: 2048,
    75: 9,
    76: 0,
    81: 233472,
    82: 65536,
    95: 1,
    97: 232448,
    106: 32,
    111: 1024,
}
"""CUDA's device attributes by number, as an H200 has them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        cuda_root()
    except BuildError as error:
        for item in items:
            if item.get_closest_marker("nvcc"):
                item.add_marker(pytest.mark.skip(reason=str(error)))


@pytest.fixture(scope="session")
def device() -> Device:
    return Device("NVIDIA H200", 140 << 30, H200)


@pytest.fixture(scope="session")
def stage() -> Stage:
    return load_stage(settings().graders_dir / "online_attention")


@pytest.fixture(scope="session")
def job(stage: Stage, sandbox: Sandbox) -> Callable[[str], Job]:
    grader = Grader(stage)

    def make(source: str) -> Job:
        return Job(stage=stage, source=source, grader=grader, sandbox=sandbox, seed="0", phases=Phases(Unwatched()))

    return make


@pytest.fixture(scope="session")
def sources() -> Path:
    return Path(__file__).parent / "sources"


def with_workspace(made: Job, kb: int) -> Job:
    """The job under a stage that allows a workspace."""
    limits = made.stage.spec.limits.model_copy(update={"workspace_kb": kb})
    spec = made.stage.spec.model_copy(update={"limits": limits})
    return replace(made, stage=type(made.stage)(made.stage.folder, spec, made.stage.files))
