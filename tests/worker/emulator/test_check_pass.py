"""The check pass beside a GPU: what it does to the verdict of a submission that another backend grades."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kernelgate.reasons import Reason
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict
from tests.conftest import forget_settings
from worker.emulator.check_pass import SURVIVED, AccessCheck
from worker.emulator.toolchain import Toolchain
from worker.judging.failures import Cancelled, Failure
from worker.judging.grader import Arrays, Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.sandbox import Sandbox

SEED = "5eed"


@pytest.fixture(scope="module")
def stage(compiler: Toolchain) -> Stage:
    del compiler
    return load_stage(settings().graders_dir / "online_attention").short()


@pytest.fixture(scope="module")
def inputs(stage: Stage) -> dict[str, Arrays]:
    return {case.name: Grader(stage).inputs(case, SEED) for case in stage.spec.cases}


@pytest.fixture(scope="module")
def made(stage: Stage, sandbox: Sandbox) -> Callable[[str], Job]:
    def job(source: str) -> Job:
        grader, phases = Grader(stage), Phases(Unwatched())
        return Job(stage=stage, source=source, grader=grader, sandbox=sandbox, seed=SEED, phases=phases)

    return job


@pytest.fixture(scope="module")
def survivor(stage: Stage) -> str:
    """Right on every card: the threads of a warp happen to run in step. It is a race all the same."""
    text = stage.text("submissions/gate_missed/plain_rows.cu")
    assert text.count("__syncwarp();") == 1
    return text.replace("__syncwarp();", "")


@pytest.fixture(scope="module")
def raced(made: Callable[[str], Job], survivor: str, inputs: dict[str, Arrays]) -> Iterator[AccessCheck]:
    with AccessCheck(made(survivor), lambda: inputs) as checks:
        yield checks


def test_a_race_that_the_card_survived_decides(raced: AccessCheck, survivor: str) -> None:
    raced.job.source = survivor
    with pytest.raises(Failure) as told:
        raced.conclude()
    assert (told.value.verdict, told.value.reason) == (Verdict.WRONG_ANSWER, "race")
    line = 1 + next(n for n, text in enumerate(survivor.splitlines()) if "weight[row][j]" in text)
    assert f"check pass: line {line}, block (" in told.value.message
    assert "The other access is a write: line " in told.value.message
    assert told.value.message.endswith(SURVIVED)
    assert raced.job.machine["check pass"].startswith("race (")


def test_no_word_in_a_file_excuses_a_race(raced: AccessCheck, survivor: str) -> None:
    """What is checked is the PTX that the card's code was made of: nothing else may have run there."""
    raced.job.source = f"// __CUDA_ARCH__\n{survivor}"
    with pytest.raises(Failure, match=r"check pass: line "):
        raced.conclude()


def test_a_race_explains_wrong_values_and_faults(raced: AccessCheck) -> None:
    raced.job.right, raced.job.finding = False, ""
    raced.conclude()
    assert "check pass: line" in raced.job.finding
    fault = Failure(Reason.NOT_REPEATABLE, "Two runs differ.", case="tokens_33")
    assert raced.explained(fault).message.startswith("Two runs differ. Found on the CPU: Case ")
    refused = Failure(Reason.LAUNCH_REFUSED, "Refused.", case="tokens_33")
    assert raced.explained(refused).message == "Refused."


def test_a_deadlock_is_told_only_where_the_card_hung_too(
    made: Callable[[str], Job], stage: Stage, inputs: dict[str, Arrays]
) -> None:
    text = stage.text("submissions/gate_missed/plain_rows.cu")
    assert text.count("__syncwarp();") == 1
    job = made(text.replace("__syncwarp();", "if (lane < 4) __syncthreads(); else __syncwarp();"))
    with AccessCheck(job, lambda: inputs) as checks:
        checks.conclude()
        assert job.finding == ""
        hung = Failure(Reason.TIME_LIMIT, "Stopped.", case="tokens_1")
        assert checks.explained(hung).message.startswith("Stopped. Found on the CPU: Case tokens_1, check pass: ")
    assert job.machine["check pass"].startswith("deadlock (")


def test_a_right_submission_has_no_finding(made: Callable[[str], Job], stage: Stage, inputs: dict[str, Arrays]) -> None:
    job = made(stage.text("solution/attention.cu"))
    with AccessCheck(job, lambda: inputs) as checks:
        checks.conclude()
    assert job.finding == ""
    assert job.machine["check pass"].startswith("nothing found (")


def test_what_cannot_be_emulated_is_accused_of_nothing(
    made: Callable[[str], Job], stage: Stage, inputs: dict[str, Arrays]
) -> None:
    text = stage.text("starter/attention.cu")
    job = made(
        text.replace(
            "float* __restrict__ out) {\n",
            'float* __restrict__ out) {\n    asm volatile("wgmma.fence.sync.aligned;");\n',
            1,
        )
    )
    with AccessCheck(job, lambda: inputs) as checks:
        checks.conclude()
        fault = Failure(Reason.ILLEGAL_ADDRESS, "A fault.", case="tokens_1")
        assert checks.explained(fault).message == "A fault."
    assert job.finding == ""
    assert job.machine["check pass"].startswith("not made: cannot_emulate: ")


def test_a_pass_that_breaks_down_costs_the_submission_nothing(made: Callable[[str], Job], stage: Stage) -> None:
    def broken() -> dict[str, Arrays]:
        raise RuntimeError("no inputs")

    job = made(stage.text("starter/attention.cu"))
    with AccessCheck(job, broken) as checks:
        checks.conclude()
    assert job.machine["check pass"] == "not made: it broke down (RuntimeError)"


def test_a_cancelled_grading_waits_for_nothing(made: Callable[[str], Job], stage: Stage) -> None:
    job = made(stage.text("starter/attention.cu"))
    job.cancelled = lambda: True
    with AccessCheck(job, dict) as checks, pytest.raises(Cancelled):
        checks.conclude()


def test_it_can_be_switched_off(made: Callable[[str], Job], survivor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_CHECK_PASS", "0")
    forget_settings()
    job = made(survivor)
    with AccessCheck(job, dict) as checks:
        checks.conclude()
    assert "check pass" not in job.machine
    monkeypatch.undo()
    forget_settings()
