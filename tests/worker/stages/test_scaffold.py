"""A new stage is made complete and green, in every language and out of another stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.languages import LANGUAGES
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import StageError
from worker.backends import gradable
from worker.sandbox import Sandbox
from worker.stages.scaffold import scaffold
from worker.stages.verify import verify


@pytest.mark.timeout(600)  # the first to emulate anything builds the runtime
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_stage_is_green(tmp_path: Path, sandbox: Sandbox, language: str) -> None:
    folder = scaffold("row_scale", tmp_path, language)
    if not gradable(load_stage(folder)):
        pytest.skip(f"nothing here grades {language}")
    report = verify(load_stage(folder), sandbox)
    assert report.ok, [check for check in report.checks if not check.ok]
    assert len(report.checks) >= 7


def test_a_stage_is_made_out_of_another(tmp_path: Path) -> None:
    folder = scaffold("more_bins", tmp_path, "cuda", ROOT / "tests" / "stages" / "histogram")
    stage = load_stage(folder)
    assert stage.spec.file == "more_bins.cu"
    assert 'extern "C" void more_bins(' in stage.text("solution/more_bins.cu")


@pytest.mark.parametrize("name", ["", "Upper", "has-dash", "1st", "../up", "a" * 64])
def test_names_that_no_stage_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(StageError, match="stage name"):
        scaffold(name, tmp_path)


def test_what_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="known are pytorch, triton, cuda"):
        scaffold("row_scale", tmp_path, "rust")
    with pytest.raises(StageError, match="is no stage to start from"):
        scaffold("row_scale", tmp_path, "cuda", tmp_path / "nowhere")
    scaffold("row_scale", tmp_path)
    with pytest.raises(StageError, match="exists; choose another name"):
        scaffold("row_scale", tmp_path)
