"""Shipped stages, each proven in a file of its own: a proof takes a minute or two, and files are run side by side."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelgate.settings import ROOT
from kernelgate.stages import load_stage
from worker.backends import gradable, open_sandbox
from worker.stages.verify import verify


@pytest.fixture
def failures(own_settings: None) -> Callable[[str], list[str]]:
    """What `kernelgate stage verify` finds wrong with a shipped stage; skips where this machine cannot grade it."""
    del own_settings

    def proven(name: str) -> list[str]:
        stage = load_stage(ROOT / "graders" / name)
        if not gradable(stage):
            pytest.skip(f"this machine has none of {name}'s backends: {', '.join(stage.spec.backends)}")
        with open_sandbox() as sandbox:
            report = verify(stage.folder, sandbox)
        assert len(report.checks) > len([*stage.examples()])
        return [f"{check.name}: {check.detail}" for check in report.checks if not check.ok]

    return proven
