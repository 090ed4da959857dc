"""Every shipped stage keeps every promise it ships with: what `kernelgate stage verify --brief` says on this machine.

A stage is one folder, so a new one is proven here without anybody writing it down. Where CUDA is emulated, one file of each
kind is graded instead of all.
"""

from __future__ import annotations

import pytest

from kernelgate.settings import ROOT
from kernelgate.stages import load_stage, load_stages
from worker.backends import gradable, open_sandbox
from worker.stages.verify import verify

STAGES = sorted(load_stages(ROOT / "graders")[0])


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", STAGES)
def test_every_promise_holds(own_settings: None, name: str) -> None:
    del own_settings
    stage = load_stage(ROOT / "graders" / name)
    if not gradable(stage):
        pytest.skip(f"this machine has none of {name}'s backends: {', '.join(stage.spec.backends)}")
    with open_sandbox() as sandbox:
        report = verify(stage.folder, sandbox, brief=True)
    assert len(report.checks) > 10
    assert [f"{check.name}: {check.detail}" for check in report.checks if not check.ok] == []


def test_every_folder_is_a_stage_that_loads() -> None:
    """A stage that does not load would be missing above without anybody noticing."""
    folders = {path.parent.name for path in (ROOT / "graders").glob("[a-z]*/stage.toml")}
    assert folders == set(STAGES)
