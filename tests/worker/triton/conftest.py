"""The sandbox of the Triton tests, with torch and Triton warm; without the two they are skipped with the reason."""

from __future__ import annotations

import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend, Stage
from worker.backends import missing
from worker.judging.grader import Grader
from worker.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox(sandbox: Sandbox) -> Sandbox:
    if Backend.INTERPRETER in missing():
        pytest.skip(missing()[Backend.INTERPRETER])
    return sandbox


@pytest.fixture(scope="session")
def stage(own_settings: None) -> Stage:
    del own_settings
    return load_stage(settings().graders_dir / "streaming_attention")


@pytest.fixture(scope="session")
def grader(stage: Stage) -> Grader:
    return Grader(stage)
