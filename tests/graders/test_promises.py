"""Every shipped stage keeps the promises it ships with: what `kernelgate stage verify` says on this machine.

A stage is one folder, so a new one is proven here without anybody writing it down. Where kernels are emulated or interpreted,
which takes minutes of processor time for a whole stage, the solution and one file of each verdict and reason are graded, in
the short cases.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage, load_stages
from kernelgate.stages import Backend, Example, Stage
from worker.backends import choose, gradable, open_sandbox
from worker.grade import grade, new_seed
from worker.sandbox import Sandbox
from worker.stages.verify import judged, name_of, verify

STAGES = sorted(load_stages(ROOT / "graders")[0])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", STAGES)
def test_promises_hold(own_settings: None, name: str) -> None:
    del own_settings
    stage = load_stage(ROOT / "graders" / name)
    if not gradable(stage):
        pytest.skip(f"this machine has none of {name}'s backends: {', '.join(stage.spec.backends)}")
    with open_sandbox() as sandbox:
        slow = choose(stage) in (Backend.EMULATOR, Backend.INTERPRETER)
        broken = broken_in_short(stage, sandbox) if slow else broken_promises(stage, sandbox)
    assert broken == []


def broken_promises(stage: Stage, sandbox: Sandbox) -> list[str]:
    report = verify(stage.folder, sandbox)
    assert len(report.checks) > 10
    return [f"{check.name}: {check.detail}" for check in report.checks if not check.ok]


def broken_in_short(stage: Stage, sandbox: Sandbox) -> list[str]:
    solution = grade(
        stage.short(), stage.text(f"solution/{stage.spec.file}").encode(), sandbox=sandbox, seed=new_seed()
    )
    assert solution.verdict.passes, solution.message
    assert len(list(stage.examples())) > 10
    kinds = list(one_of_each_reason(stage))
    assert len(kinds) > 4
    checks = [
        judged(stage, each, grade(stage.short(), stage.files[name_of(stage, each)], sandbox=sandbox, seed=new_seed()))
        for each in kinds
    ]
    return [f"{check.name}: {check.detail}" for check in checks if not check.ok]


def one_of_each_reason(stage: Stage) -> Iterator[Example]:
    """The first file of each verdict and reason that short cases show on a machine without a GPU."""
    seen = set()
    for example in stage.examples():
        kind = (example.verdict, example.reason)
        if kind not in seen and example.emulator is None and example.reason not in ("too_slow", "wrong_when_timed"):
            seen.add(kind)
            yield example


def test_every_folder_is_a_stage_that_loads() -> None:
    """A stage that does not load would be missing above without anybody noticing."""
    folders = {path.parent.name for path in (ROOT / "graders").glob("[a-z]*/stage.*")}
    assert folders == set(STAGES)
