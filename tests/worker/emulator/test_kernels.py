"""Public-style kernels give numpy's answers in every pass, whatever the order of fibres and the number of workers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worker.emulator.conftest import Emulated
from tests.worker.emulator.merged import Merged, merge
from tests.worker.emulator.samples import SAMPLES, Sample
from worker.emulator.toolchain import Pass

TAKE_TURNS = ("work_queue", "look_back", "compaction", "jacobi", "pipeline", "producer_consumer")
SERIAL = [sample for sample in SAMPLES if sample.name in TAKE_TURNS]
"""Their blocks take turns on one worker, and so would all others that share a file with them."""
BESIDE = [sample for sample in SAMPLES if sample not in SERIAL]
SCHEDULES = ({"order": "reverse"}, {"order": "random", "seed": 3}, {"workers": 2})


@pytest.fixture(scope="module")
def merged(emulate: Callable[..., Emulated]) -> Callable[[Sample], Merged]:
    """The compiled submission that holds a sample: those whose blocks may run side by side, and the others."""
    both = [merge(samples, emulate, tuple(Pass)) for samples in (BESIDE, SERIAL)]
    return lambda sample: both[sample in SERIAL]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_kernel_gives_numpys_answer_in_every_pass_and_order(
    merged: Callable[[Sample], Merged], sample: Sample
) -> None:
    run, inputs = merged(sample), sample.made()
    plain = run(sample, Pass.PLAIN)
    assert sample.wrong(inputs, plain) == ""
    assert all(plain[name] == array.tobytes() for name, array in inputs.items())
    for schedule in SCHEDULES:
        assert run(sample, Pass.PLAIN, **schedule) == plain, schedule
    assert sample.wrong(inputs, run(sample, Pass.CHECK)) == ""


def test_code_without_the_checks_hooks_writes_the_same(
    merged: Callable[[Sample], Merged], emulate: Callable[..., Emulated]
) -> None:
    """What takes long is compiled once more to be fast: not a bit of its results may change."""
    fast = merge(BESIDE, emulate, [Pass.PLAIN], Pass.PLAIN)
    for sample in BESIDE:
        assert fast(sample, Pass.PLAIN) == merged(sample)(sample, Pass.PLAIN), sample.name


def test_what_a_kernel_prints_is_kept(merged: Callable[[Sample], Merged]) -> None:
    asks = next(sample for sample in SAMPLES if sample.name == "questions")
    assert merged(asks).run(asks, Pass.PLAIN).finished.stdout == b"thread 3 of 8 says 1.50\n"
