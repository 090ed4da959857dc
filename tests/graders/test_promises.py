"""Every shipped stage keeps the promises it ships with, as far as this machine can tell without its long cases.

A stage is one folder, so a new one is proven here without anybody writing it down. What must be right is graded in all short
cases; a wrong file in a few of them, and in all where those few do not show what they must. Where kernels are emulated or
interpreted, which takes seconds of processor time a file, that is the solution and one file of each verdict and reason.
`stage verify` grades every file in every case, and has to before a stage is shipped (test_shipped.py).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelgate.protocol import Result
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage, load_stages
from kernelgate.stages import Backend, Example, Stage
from kernelgate.verdicts import Verdict
from worker.backends import choose, gradable, open_sandbox
from worker.grade import grade, new_seed
from worker.sandbox import Sandbox
from worker.stages.verify import Check, judged, name_of, verify

FEW = 4
"""Cases in which a wrong file is graded first: the first, the last, and some between, for authors put small ones first."""
RIGHT = (Verdict.ACCEPTED, Verdict.CORRECT, Verdict.GATE_MISSED)
UNGRADED = ("mistake ", "expected.toml", "calibration")
"""Checks of a stage that grade no file."""
STAGES = sorted(load_stages(ROOT / "graders")[0])


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", STAGES)
def test_promises_hold(own_settings: None, name: str) -> None:
    del own_settings
    stage = load_stage(ROOT / "graders" / name)
    if not gradable(stage):
        pytest.skip(f"this machine has none of {name}'s backends: {', '.join(stage.spec.backends)}")
    slow = choose(stage) in (Backend.EMULATOR, Backend.INTERPRETER)
    with open_sandbox() as sandbox:
        only = UNGRADED if slow else (*UNGRADED, "starter")
        checks = [check for part in only for check in verify(stage.folder, sandbox, only=part).checks]
        checks += graded(stage.short(), list(one_of_each_reason(stage) if slow else stage.examples()), sandbox)
    assert len(checks) > len(stage.spec.mistakes)
    assert [f"{check.name}: {check.detail}" for check in checks if not check.ok] == []


def graded(stage: Stage, examples: list[Example], sandbox: Sandbox) -> Iterator[Check]:
    assert len(list(stage.examples())) > 10
    assert len(examples) > 4
    solution = result_of(stage, f"solution/{stage.spec.file}", sandbox)
    yield Check("solution", solution.verdict.passes, solution.message)
    for example in examples:
        check = None if example.verdict in RIGHT else kept(few(stage), example, sandbox)
        yield check if check and check.ok else kept(stage, example, sandbox)


def kept(stage: Stage, example: Example, sandbox: Sandbox) -> Check:
    return judged(stage, example, result_of(stage, name_of(stage, example), sandbox))


def result_of(stage: Stage, name: str, sandbox: Sandbox) -> Result:
    return grade(stage, stage.files[name], sandbox=sandbox, seed=new_seed())


def few(stage: Stage) -> Stage:
    """The same stage with few of its cases."""
    cases = stage.spec.cases
    step = max(1.0, (len(cases) - 1) / (FEW - 1))
    chosen = {round(step * at) for at in range(FEW) if round(step * at) < len(cases)}
    spec = stage.spec.model_copy(update={"cases": tuple(cases[at] for at in sorted(chosen))})
    return Stage(stage.folder, spec, stage.files, stage.form)


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
