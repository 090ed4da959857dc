"""A sandboxed program is one text: what it imports comes with it, whatever lies beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgate import settings
from worker.sandbox.program import program


def test_it_is_whole_whatever_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "sandboxed_frames.py").write_text("raise SystemExit('imported from beside')\n")
    whole = program("triton/interpreter", "triton/ir", "triton/writer", "triton/machine")
    text = whole.rpartition("\nmain(")[0]
    done = subprocess.run(
        [sys.executable, "-c", text + "\nimport sandboxed_frames\nprint(sandboxed_frames.__file__)"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "sandboxed_frames.py\n", done.stderr
    assert not list(tmp_path.glob("__pycache__"))


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(type(settings.settings()), "sandboxed_dir", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"session/imports\.py"):
        program("pytorch/other")
