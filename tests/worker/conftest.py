"""What tests of the grading side need besides the sandbox of tests/conftest.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from tests.long_form import long_form


@pytest.fixture(scope="session")
def small_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A stage of two quick cases, made as `kernelgate stage new` makes one."""
    return load_stage(long_form("scaling", tmp_path_factory.mktemp("graders")))


@pytest.fixture(scope="session")
def graders(own_settings: None) -> Path:
    del own_settings
    return settings().graders_dir
