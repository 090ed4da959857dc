"""What a right submission is told from given facts, and that it is told nothing where they do not speak."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgate.faster import STEPS, Bound
from kernelgate.protocol import Faster, KernelResources, Timing
from kernelgate.stages import Stage
from worker.judging.faster import next_step
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.judging.traffic import Access, Traffic, table
from worker.sandbox import Sandbox

ARRAYS = {"x": 1 << 16, "w": 1 << 10, "y": 1 << 16}
READ = Access("sum", 12, "x", False, False, 4, 512, 2048, 2048, bytes=1 << 16, within=1 << 16, distinct=1 << 16)  # fmt: skip
WRITTEN = replace(READ, line=14, array="y", writes=True, within=0, distinct=0)
SHARED = Access("sum", 13, "part", True, False, 4, 512, 512, 512)
IN_ORDER = (READ, WRITTEN, SHARED)
KERNEL = KernelResources(kernel="sum", registers=32, spill_bytes=0, shared_bytes=1024, occupancy=0.1)


@pytest.fixture
def job(small_stage: Stage, sandbox: Sandbox) -> Job:
    grader, phases = Grader(small_stage), Phases(Unwatched())
    return Job(stage=small_stage, source="", grader=grader, sandbox=sandbox, seed="5eed", phases=phases)


def told(job: Job, *accesses: Access) -> Faster | None:
    job.traffic = Traffic("largest", accesses, ARRAYS)
    return next_step(job)


def measured(bandwidth: float, pipe: float) -> Timing:
    facts: dict[str, float | str] = {"share_of_peak_bandwidth": bandwidth, "share_of_fp32_peak": pipe}
    return Timing(baseline_ms=1, user_ms=1, speedup=1, speedup_low=1, speedup_high=1, gate=None,
                  baseline_samples_ms=(), user_samples_ms=(), facts=facts)  # fmt: skip


def test_accesses_in_order_are_told_nothing(job: Job) -> None:
    assert told(job, *IN_ORDER) is None


def test_a_sector_more_at_borders_and_lanes_an_iteration_apart_are_told_nothing(job: Job) -> None:
    assert told(job, replace(READ, taken=2560), replace(WRITTEN, taken=4096), SHARED) is None


@pytest.mark.parametrize(
    ("accesses", "bound", "sentence"),
    [
        (
            (replace(READ, taken=16384), WRITTEN, SHARED),
            Bound.UNCOALESCED,
            (
                "Line 12: each time a warp reads x, its lanes touch 32 sectors of 32 bytes, where 4 would hold what they ask "
                "for."
            ),
        ),
        (
            (READ, WRITTEN, replace(SHARED, taken=16384)),
            Bound.BANK_CONFLICTS,
            (
                "Line 13: when a warp reads part, its lanes meet in the same banks of shared memory, and it takes 32 times as "
                "long as it must."
            ),
        ),
        (
            (replace(READ, taken=6144, least=6144, within=3 << 16, bytes=3 << 16), WRITTEN, SHARED),
            Bound.READ_AGAIN,
            "Line 12: each block asks 3 times for every byte of x that it needs, in the mean.",
        ),
        (
            (replace(READ, bytes=64 << 16), WRITTEN, SHARED),
            Bound.READ_BY_EVERY_BLOCK,
            "Line 12: all blocks together ask 64 times for every byte of x, each of them about once.",
        ),
    ],
)
def test_each_way_of_asking_for_too_much_is_told_with_its_line_and_step(
    job: Job, accesses: tuple[Access, ...], bound: Bound, sentence: str
) -> None:
    found = told(job, *accesses)
    assert found == Faster(bound=bound, sentence=sentence, step=STEPS[bound], lines=found.lines if found else ())
    assert found.lines == ((13,) if bound is Bound.BANK_CONFLICTS else (12,))


def test_what_saves_little_is_no_next_step(job: Job) -> None:
    rare = replace(READ, line=20, requests=4, taken=128, least=16, bytes=512, within=512, distinct=512)
    assert told(job, *IN_ORDER, rare) is None


def test_a_small_array_may_be_read_by_every_block(job: Job) -> None:
    assert told(job, *IN_ORDER, replace(READ, array="w", within=1 << 10, distinct=1 << 10)) is None


def test_the_stage_has_the_word(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {Bound.UNCOALESCED: "Give each warp a row."}
    monkeypatch.setattr(job.stage, "spec", job.stage.spec.model_copy(update={"faster": own}))
    found = told(job, replace(READ, taken=16384), WRITTEN)
    assert found is not None
    assert found.step == "Give each warp a row."


@pytest.mark.parametrize(
    ("bandwidth", "pipe", "bound"),
    [(0.86, 0.1, Bound.BANDWIDTH), (0.1, 0.9, Bound.ARITHMETIC), (0.2, 0.3, Bound.OCCUPANCY), (0.6, 0.1, None)],
)
def test_what_was_measured_says_what_bounds(job: Job, bandwidth: float, pipe: float, bound: Bound | None) -> None:
    job.timing, job.resources = measured(bandwidth, pipe), (KERNEL,)
    found = next_step(job)
    assert (found.bound if found else None) is bound


def test_spills_are_told_of_the_kernel_that_has_most(job: Job) -> None:
    job.resources = (KERNEL, KERNEL.model_copy(update={"kernel": "tile", "spill_bytes": 96}))
    found = next_step(job)
    assert found is not None
    assert found.sentence == "tile: 96 bytes of each thread's registers are spilled to local memory."


def test_the_table_has_the_costliest_place_first(job: Job) -> None:
    del job
    rows = table(Traffic("largest", (*IN_ORDER, replace(SHARED, line=0, taken=9000)), ARRAYS)).rows
    assert rows[0] == ("read part (shared)", "not known", 4, 85, 17.6, 1.0, "sum")
    assert len(rows) == 4
