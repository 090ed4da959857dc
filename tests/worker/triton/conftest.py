"""The sandbox of the Triton tests, with torch and Triton warm; without the two they are skipped with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend, Stage
from worker.backends import missing, open_sandbox
from worker.judging.grader import Grader
from worker.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox(own_settings: None) -> Iterator[Sandbox]:
    del own_settings
    if Backend.INTERPRETER in missing():
        pytest.skip(missing()[Backend.INTERPRETER])
    with open_sandbox() as opened:
        yield opened


@pytest.fixture(scope="session")
def stage(own_settings: None) -> Stage:
    del own_settings
    return load_stage(settings().graders_dir / "streaming_attention")


@pytest.fixture(scope="session")
def grader(stage: Stage) -> Grader:
    return Grader(stage)
