"""What authors slip on is told in one sentence, at once, and keeps no other stage from being proven."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from tests.long_form import long_form

AT_ONCE_S = 3.0
"""Of processor time: what a quiet machine takes."""
Slip = Callable[[Path], Path]


def changed(name: str, old: str, new: str) -> Slip:
    """A stage of tests/stages with a text of its stage.py replaced."""

    def make(into: Path) -> Path:
        folder = Path(shutil.copytree(ROOT / "tests" / "stages" / name, into / name))
        text = (folder / "stage.py").read_text()
        assert old in text
        (folder / "stage.py").write_text(text.replace(old, new, 1))
        return folder

    return make


def float64_for_float(into: Path) -> Path:
    """A grader.py of the long form may give another dtype than the seam takes; a stage.py's arrays have the seam's."""
    folder = long_form("scaling", into)
    toml = (folder / "stage.toml").read_text()
    toml = toml.replace('"pytorch"', '"cuda"').replace("scaling.py", "scaling.cu").replace('["torch"]', '["emulator"]')
    head, tail = toml.split("[seam]")[0], toml.split("[limits]")[1]
    seam = """[seam]
name = "scale"
signature = 'extern "C" void scale(const float* x, float* out, int rows, int columns, cudaStream_t stream)'
"""
    (folder / "stage.toml").write_text(f"{head}{seam}\n[limits]{tail}")
    (folder / "grader.py").write_text(
        "import numpy as np\n\ndef inputs(case, rng):\n    return {'x': np.zeros(4)}\n\n"
        "def outputs(case):\n    return {'out': (4,)}\n\ndef finish(case, inputs, written):\n    return written\n\n"
        "def reference(case, inputs, mistake=None):\n    return {'out': inputs['x'].astype(float)}\n"
    )
    (folder / "driver.py").unlink()
    shutil.rmtree(folder / "submissions")
    for part in ("starter", "solution"):
        (folder / part / "scaling.py").rename(folder / part / "scaling.cu")
    return folder


SLIPS: dict[str, tuple[Slip, str]] = {
    "a reference that raises": (
        changed("top_rows", "def reference(x, k):\n", "def reference(x, k):\n    raise KeyError('z')\n"),
        "KeyError: 'z'",
    ),
    "float64 for const float*": (float64_for_float, "inputs gives x as float64; the seam takes float*: float32"),
    "a missing number": (
        changed("histogram", "many     count=3001", "many"),
        "count has no value; the case needs count=",
    ),
    "a misspelt mistake": (
        changed("histogram", '{"mistake": "last_dropped"}', '{"mistake": "last_droped"}'),
        "last_dropped.cu must show the mistake 'last_droped'; the stage has last_dropped",
    ),
    "a misspelt key": (changed("histogram", "mistakes = {", "mistaks = {"), "did you mean mistakes?"),
}


def verified(*folders: Path) -> tuple[str, float]:
    """What `kernelgate stage verify` says, and the processor seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "kernelgate", "stage", "verify", *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=dict(os.environ))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 1
    return done.stdout + done.stderr, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("what", SLIPS)
def test_a_slip_is_told_in_one_sentence_at_once(what: str, tmp_path: Path) -> None:
    make, words = SLIPS[what]
    said, seconds = verified(make(tmp_path))
    (line,) = [line for line in said.splitlines() if words in line]
    assert line.startswith(("Error: stage ", "  FAIL agreement: "))
    assert "Traceback" not in said
    assert seconds < AT_ONCE_S, f"{seconds:.1f} s"


def test_a_slip_keeps_no_other_stage_from_being_one(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "stages" / "prefix_sum", tmp_path / "prefix_sum")
    changed("histogram", "mistakes = {", "mistaks = {")(tmp_path)
    good, bad = load_stages(tmp_path)
    assert (list(good), list(bad)) == (["prefix_sum"], ["histogram"])
