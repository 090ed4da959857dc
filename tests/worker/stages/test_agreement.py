"""A stage that does not agree with itself is told in a sentence, before anything is graded, and stops nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage, load_stages
from tests.long_form import long_form
from worker.sandbox import Sandbox
from worker.stages.agreement import disagreements
from worker.stages.verify import verify

SEAM = """[seam]
name = "scale"
signature = 'extern "C" void scale(const float* x, float* out, int count, cudaStream_t stream)'
"""


def test_what_the_grader_raises_is_a_failed_check_with_file_and_line(tmp_path: Path, sandbox: Sandbox) -> None:
    folder = long_form("scaling", tmp_path)
    grader = folder / "grader.py"
    grader.write_text(grader.read_text().replace('inputs["x"]', 'inputs["z"]'))
    report = verify(load_stage(folder), sandbox)
    assert [check.name for check in report.checks] == ["agreement"], "nothing is graded where the grader is broken"
    assert not report.ok
    line = next(at for at, text in enumerate(grader.read_text().splitlines(), 1) if 'inputs["z"]' in text)
    assert report.checks[0].detail == f"grader.py line {line}: KeyError: 'z'"


def test_a_grader_that_ends_the_process_is_told_too(tmp_path: Path) -> None:
    folder = long_form("scaling", tmp_path)
    grader = folder / "grader.py"
    grader.write_text(grader.read_text().replace("    rows, columns", "    raise SystemExit(3)\n    rows, columns", 1))
    (found,) = disagreements(load_stage(folder))
    assert "SystemExit: 3" in found


def test_a_mistake_that_is_none_of_the_stages(tmp_path: Path) -> None:
    folder = long_form("scaling", tmp_path)
    expected = folder / "submissions" / "expected.toml"
    expected.write_text(expected.read_text().replace('mistake = "forgot_y"', 'mistake = "forgoty"'))
    assert list(disagreements(load_stage(folder))) == [
        "y_forgotten.py must show the mistake 'forgoty'; the stage has forgot_y"
    ]


def cuda(
    tmp_path: Path, inputs: str, outputs: str = "{'out': (case.params['count'],)}", params: str = "count = 4"
) -> list[str]:
    folder = long_form("scaling", tmp_path)
    toml = (folder / "stage.toml").read_text()
    seam, tail = toml.split("[seam]")[0], toml.split("[limits]")[1]
    head = seam.replace('"pytorch"', '"cuda"').replace("scaling.py", "scaling.cu").replace('["torch"]', '["emulator"]')
    tail = tail.replace("rows = 1, columns = 2, factor = 2.0", params).replace(
        "rows = 33, columns = 7, factor = -1.5", params
    )
    (folder / "stage.toml").write_text(f"{head}{SEAM}\n[limits]{tail}")
    (folder / "grader.py").write_text(
        f"import numpy as np\n\ndef inputs(case, rng):\n    return {inputs}\n\ndef outputs(case):\n    return {outputs}\n\n"
        "def finish(case, inputs, written):\n    return written\n\n"
        "def reference(case, inputs, mistake=None):\n"
        "    return {'out': np.zeros(4) if mistake else inputs['x'].astype(float)}\n"
    )
    (folder / "driver.py").unlink()
    shutil.rmtree(folder / "submissions")
    for part in ("starter", "solution"):
        (folder / part / "scaling.py").rename(folder / part / "scaling.cu")
    return list(disagreements(load_stage(folder)))


def test_a_grader_that_fits_its_seam(tmp_path: Path) -> None:
    assert cuda(tmp_path, "{'x': np.zeros(4, np.float32)}") == []


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("inputs gives x as float64; the seam takes float*: float32", {"inputs": "{'x': np.zeros(4)}"}),
        ("inputs has no 'x', which the seam reads; it has ['y']", {"inputs": "{'y': np.zeros(4, np.float32)}"}),
        ("outputs has no 'out', which the seam writes; it has ['o']", {"outputs": "{'o': (4,)}"}),
        (
            "params has no 'count', which the seam takes; it has ['length']",
            {"params": "length = 4", "outputs": "{'out': (4,)}"},
        ),
    ],
)
def test_a_grader_that_does_not_fit_its_seam_is_told_in_words(tmp_path: Path, words: str, how: dict[str, str]) -> None:
    found = cuda(tmp_path, **{"inputs": "{'x': np.zeros(4, np.float32)}", **how})
    assert f"case by_hand: {words}" in found


@pytest.mark.timeout(600)  # the first to emulate anything builds the runtime
def test_a_baseline_is_graded_before_it_times_anything(tmp_path: Path, sandbox: Sandbox) -> None:
    folder = Path(shutil.copytree(ROOT / "tests" / "stages" / "histogram", tmp_path / "histogram"))
    (folder / "baseline.cu").write_text("this is no C++\n")
    (folder / "starter").mkdir()
    shutil.copy(folder / "solution" / "histogram.cu", folder / "starter")
    stage = folder / "stage.py"
    stage.write_text(stage.read_text().replace('language = "cuda"', 'language, gate = "cuda", 1.5'))
    (check,) = [
        each for each in verify(load_stage(folder), sandbox, only="baseline").checks if each.name == "baseline.cu"
    ]
    assert not check.ok
    assert "compile_error" in check.detail
    assert "it must be right before it times anything" in check.detail


def test_one_check_alone(tmp_path: Path, sandbox: Sandbox) -> None:
    report = verify(load_stage(long_form("scaling", tmp_path)), sandbox, only="starter")
    assert [check.name for check in report.checks] == ["agreement", "starter"]


def test_derived_tolerances_are_shown_to_the_author(tmp_path: Path, sandbox: Sandbox) -> None:
    folder = Path(shutil.copytree(ROOT / "tests" / "stages" / "top_rows", tmp_path / "top_rows"))
    report = verify(load_stage(folder), sandbox, only="tolerances")
    assert [check.name for check in report.checks] == ["agreement", "tolerances"]
    assert "places: by_hand 0 + 0·|want|" in report.checks[1].detail


@pytest.mark.parametrize("name", sorted(load_stages(ROOT / "graders")[0]))
def test_shipped_stages_agree_with_themselves(name: str) -> None:
    assert list(disagreements(load_stage(ROOT / "graders" / name))) == []
