"""Stages in one file, one of each kind that the form can say, proven whole: every answer is the promised one."""

from __future__ import annotations

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from worker.backends import gradable
from worker.sandbox import Sandbox
from worker.stages.verify import verify

FOLDERS = sorted(path for path in (ROOT / "tests" / "stages").iterdir() if path.is_dir())
KINDS = {
    "histogram": "whole numbers, exact",
    "layer_norm_both_ways": "gradients, in PyTorch",
    "prefix_sum": "written by the documents alone",
    "row_softmax": "one kernel in three dtypes",
    "scaled_both_ways": "two functions of one file",
    "top_rows": "ties, by a checker of its own",
    "turned_in_place": "an array that is changed in place",
}


def test_every_kind_is_here() -> None:
    assert [path.name for path in FOLDERS] == list(KINDS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", KINDS)
def test_a_stage_in_one_file_keeps_its_promises(sandbox: Sandbox, name: str) -> None:
    stage = load_stage(ROOT / "tests" / "stages" / name)
    if not gradable(stage):
        pytest.skip(f"this machine has none of the backends of {name}")
    report = verify(stage, sandbox, brief=True)
    assert [f"{check.name}: {check.detail}" for check in report.checks if not check.ok] == []
    assert len(report.checks) >= 6
