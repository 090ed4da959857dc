"""One sandbox for all tests of the grading side: its warm interpreter takes seconds to import torch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from tests.long_form import long_form
from worker.backends import open_sandbox
from worker.sandbox import Sandbox


@pytest.fixture(scope="session")
def sandbox(own_settings: None) -> Iterator[Sandbox]:
    del own_settings
    with open_sandbox() as opened:
        yield opened


@pytest.fixture(scope="session")
def small_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A stage of two quick cases, made as `kernelgate stage new` makes one."""
    return load_stage(long_form("scaling", tmp_path_factory.mktemp("graders")))


@pytest.fixture(scope="session")
def graders(own_settings: None) -> Path:
    del own_settings
    return settings().graders_dir
