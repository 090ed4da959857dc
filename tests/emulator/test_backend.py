"""The capstone graded by the emulator, end to end: rewritten, compiled and run in the sandbox, judged outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.protocol import Result
from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage, load_stage
from kernelgate.verdicts import Verdict
from worker.emulate.toolchain import Toolchain
from worker.grade import grade
from worker.sandbox import Sandbox

SEED = "5eed" * 8
SUBMISSIONS = {
    "wrong_answer/racing_tile.cu": (Verdict.WRONG_ANSWER, "race", "check pass: line "),
    "contract_violation/workspace_malloc.cu": (
        Verdict.CONTRACT_VIOLATION,
        "workspace",
        "asked for 16,777,216 bytes, the size of a 2048 × 2048 float matrix.",
    ),
    "contract_violation/workspace_static.cu": (Verdict.CONTRACT_VIOLATION, "workspace", "take 16,777,216 bytes"),
    "contract_violation/copy_to_host.cu": (Verdict.CONTRACT_VIOLATION, "unrecordable_call", "cudaMemcpy (line "),
    "contract_violation/input_scribbled.cu": (Verdict.CONTRACT_VIOLATION, "inputs_changed", "'qkv' was changed"),
    "contract_violation/side_stream_not_joined.cu": (
        Verdict.CONTRACT_VIOLATION,
        "stream_not_joined",
        "is never waited for: record an event there",
    ),
    "contract_violation/driver_call.cu": (Verdict.CONTRACT_VIOLATION, "forbidden_call", "cuCtxGetCurrent"),
    "runtime_error/reads_device_pointer.cu": (Verdict.RUNTIME_ERROR, "crashed", "host code ended with signal 11"),
    "runtime_error/exits_before_main.cu": (Verdict.RUNTIME_ERROR, "ended_early", "the host code ended the process"),
    "runtime_error/writes_past_the_end.cu": (Verdict.RUNTIME_ERROR, "illegal_address", "past the end of out"),
    "runtime_error/shared_memory_not_asked_for.cu": (
        Verdict.RUNTIME_ERROR,
        "launch_refused",
        "the last CUDA error is cudaErrorInvalidValue.",
    ),
    "compile_error/syntax.cu": (Verdict.COMPILE_ERROR, "compiler_error", "attention.cu:11: error: "),
    "compile_error/no_kernel.cu": (Verdict.COMPILE_ERROR, "no_kernel", "no __global__ function"),
    "compile_error/secret_include.cu": (Verdict.COMPILE_ERROR, "compiler_error", "No such file"),
}


@pytest.fixture(scope="module")
def stage() -> Stage:
    return load_stage(settings().graders_dir / "online_attention")


def graded(stage: Stage, sandbox: Sandbox, path: Path) -> Result:
    return grade(stage, path.read_bytes(), sandbox=sandbox, seed=SEED)


@pytest.mark.usefixtures("switched_on")
@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_submission_gets_its_verdict_and_its_words(stage: Stage, sandbox: Sandbox, name: str) -> None:
    verdict, reason, words = SUBMISSIONS[name]
    result = graded(stage, sandbox, stage.folder / "submissions" / name)
    assert result.backend is Backend.EMULATOR
    assert (result.verdict, result.reason) == (verdict, reason), result.message
    assert words in result.message
    assert "emulator" not in result.log.replace("kernels/emulator", "")


@pytest.mark.usefixtures("switched_on")
def test_a_short_stage_ends_as_correct_with_its_gate_unjudged(
    stage: Stage, sandbox: Sandbox, compiler: Toolchain
) -> None:
    """The stage's own solution at its short lengths; 2048 tokens are left to `stage verify` and the benchmark."""
    short = tuple(case for case in stage.spec.cases if int(case.params["tokens"]) <= 65)
    few = Stage(stage.folder, stage.spec.model_copy(update={"cases": short}), stage.files)
    result = graded(few, sandbox, stage.folder / "solution" / "attention.cu")
    assert (result.verdict, result.reason) == (Verdict.CORRECT, "speed_not_judged"), result.message
    assert result.timing is None
    assert result.machine["emulator"] == compiler.version
    assert "not judged" in result.machine["speed"]
    assert [case.state for case in result.cases] == ["right"] * len(short)


@pytest.mark.usefixtures("switched_on")
def test_a_known_mistake_is_named(stage: Stage, sandbox: Sandbox) -> None:
    result = graded(stage, sandbox, stage.folder / "submissions" / "wrong_answer" / "diagonal_excluded.cu")
    assert result.verdict is Verdict.WRONG_ANSWER
    assert result.wrong is not None
    assert (result.wrong.case, result.wrong.tensor) == ("tokens_1", "attention")
