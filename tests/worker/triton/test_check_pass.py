"""The check pass beside a card: what it finds on the CPU, for files that a card ran well."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.verdicts import Verdict
from worker.judging.failures import Failure
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.sandbox import Sandbox
from worker.triton.check_pass import CASES, MOST_BYTES, OrderCheck, short

STAGE = load_stage(ROOT / "graders" / "streaming_attention")


@pytest.fixture
def job(sandbox: Sandbox) -> Callable[[str], Job]:
    def made(source: str) -> Job:
        return Job(STAGE, source, Grader(STAGE), sandbox, "ab" * 16, Phases(Unwatched()))

    return made


def concluded(job: Job) -> Job:
    inputs = {case.name: job.grader.inputs(case, job.seed) for case in job.cases}
    with OrderCheck(job, inputs) as checks:
        checks.conclude()
    return job


def test_an_honest_file_has_nothing_found(job: Callable[[str], Job]) -> None:
    made = concluded(job(STAGE.text("solution/streaming_attention.py")))
    assert made.machine["check pass"].startswith(f"nothing found ({CASES} short cases in two orders of programs, ")


def test_programs_that_write_each_others_rows_are_told_although_the_card_was_right(job: Callable[[str], Job]) -> None:
    source = STAGE.text("solution/streaming_attention.py")
    loaded = '    m = tl.full([BM], float("-inf"), tl.float32)\n'
    assert loaded in source
    zeros = (
        "    later = rows + BM\n"
        "    tl.store(out_ptr + later[:, None] * D + dims[None, :], tl.zeros([BM, D], q.dtype), mask=later[:, None] < n)\n"
    )
    source = source.replace(loaded, zeros + loaded)
    with pytest.raises(Failure, match="On the GPU the values came out right this time") as raised:
        concluded(job(source))
    assert (raised.value.verdict, raised.value.reason) == (Verdict.WRONG_ANSWER, "not_repeatable")


def test_a_file_that_does_not_load_has_no_finding(job: Callable[[str], Job]) -> None:
    made = concluded(job("import nothing_of_that_name\n"))
    assert made.machine["check pass"].startswith("not made: import_error")


def test_short_cases_are_the_largest_of_the_small_ones(job: Callable[[str], Job]) -> None:
    made = job("")
    inputs = {case.name: made.grader.inputs(case, made.seed) for case in made.cases}
    sizes = [
        sum(array.nbytes for array in inputs[case.name].values()) for case in short(made.cases_without_gpu, inputs)
    ]
    assert len(sizes) == CASES
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= MOST_BYTES
