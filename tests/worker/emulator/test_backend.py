"""The capstone graded by the emulator: compiled, recorded and played in the sandbox, judged outside.

Here at the lengths that are not measured, and what tests/graders/test_promises.py does not grade: that takes the first file
of each verdict and reason, whose words `expected.toml` states. tests/worker/emulator/test_service.py takes the whole way, and
`stage verify` grades every file.
"""

from __future__ import annotations

import pytest

from kernelgate.protocol import Result
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Verdict
from worker.emulator.toolchain import Toolchain
from worker.grade import grade
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.sandbox import Sandbox
from worker.stages.verify import expectation

SEED = "5eed" * 8
SUBMISSIONS = {
    "contract_violation/workspace_static.cu": "take 16,777,216 bytes",
    "runtime_error/reads_device_pointer.cu": "signal 11; device pointers cannot be read there",
    "compile_error/syntax.cu": "attention.cu:11:",
    "gate_missed/cached_by_content.cu": "Both calls were made by one process",
    "wrong_answer/racing_sum.cu": "took the threads in another order",
    "wrong_answer/inline_ptx_alpha_missing_on_l.cu": "Alpha is missing on l",
    "gate_missed/cached_by_pointer.cu": "never written",
    "accepted/launch_attributes.cu": "emulated: speed not judged on this machine",
}


@pytest.fixture(scope="module")
def stage(compiler: Toolchain) -> Stage:
    del compiler
    return load_stage(settings().graders_dir / "online_attention").short()


def graded(stage: Stage, sandbox: Sandbox, name: str) -> Result:
    """name: of a file of the stage; a starter that is the baseline lies in no folder."""
    return grade(stage, stage.files[name], sandbox=sandbox, seed=SEED)


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_gets_its_verdict_and_its_words(stage: Stage, sandbox: Sandbox, name: str) -> None:
    example = next(it for it in stage.examples() if it.path == stage.folder / "submissions" / name)
    result = graded(stage, sandbox, f"submissions/{name}")
    wanted = expectation(stage, example, result)
    assert result.backend is Backend.EMULATOR
    assert (result.verdict, result.reason) == (wanted.verdict, wanted.reason), result.message
    assert SUBMISSIONS[name] in result.message


def test_a_wrong_file_hears_of_it_before_its_long_cases_are_played(sandbox: Sandbox, compiler: Toolchain) -> None:
    del compiler
    whole = load_stage(settings().graders_dir / "online_attention")
    result = graded(whole, sandbox, "submissions/wrong_answer/no_launch.cu")
    assert (result.verdict, result.reason) == (Verdict.WRONG_ANSWER, "wrong_value"), result.message
    states = {case.name: case.state for case in result.cases}
    assert states[whole.spec.cases[0].name] == "wrong"
    long = [case.name for case in whole.spec.cases if case.measured and not case.needs_gpu]
    assert long
    assert {states[name] for name in long} == {"not_run"}


def test_the_starter_ends_as_correct_with_its_gate_unjudged(
    stage: Stage, sandbox: Sandbox, compiler: Toolchain
) -> None:
    result = graded(stage, sandbox, "starter/attention.cu")
    assert (result.verdict, result.reason) == (Verdict.CORRECT, "speed_not_judged"), result.message
    assert result.timing is None
    assert result.machine["emulator"] == compiler.compiler.version
    assert "not judged" in result.machine["speed"]
    cases = Job(stage, "", Grader(stage), sandbox, result.seed, Phases(Unwatched())).cases
    assert [case.state for case in result.cases] == ["not_run" if case.needs_gpu else "right" for case in cases]


def test_a_stage_says_what_a_race_costs(stage: Stage, sandbox: Sandbox) -> None:
    spec = stage.spec.model_copy(update={"races": Verdict.RUNTIME_ERROR})
    strict = Stage(stage.folder, spec, stage.files, stage.form)
    result = graded(strict, sandbox, "submissions/wrong_answer/racing_tile.cu")
    assert (result.verdict, result.reason) == (Verdict.RUNTIME_ERROR, "race")
