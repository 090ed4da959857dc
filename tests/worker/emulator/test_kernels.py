"""Public-style kernels give numpy's answers in every pass, whatever the order of fibres and the number of workers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.worker.emulator.conftest import Emulated
from tests.worker.emulator.merged import Merged, merge, serial
from tests.worker.emulator.samples import SAMPLES, Sample
from worker.emulator.toolchain import Pass

WITH_ASAN = (
    "matmul",
    "wmma_matmul",
    "softmax",
    "producer_consumer",
    "bf16_scale",
    "async_copy",
    "big_shared",
)
"""Those that between them use every kind of memory; what AddressSanitizer finds is in test_planted_bugs.py."""
SCHEDULES = ({"order": "reverse"}, {"order": "random", "seed": 3}, {"workers": 2})


@pytest.fixture(scope="module")
def merged(emulate: Callable[..., Emulated]) -> Callable[[Sample], Merged]:
    """The compiled submission that holds a sample: those whose blocks may run side by side, and the others."""
    beside = [sample for sample in SAMPLES if not serial(sample)]
    others = [sample for sample in SAMPLES if serial(sample)]
    both = (merge(beside, emulate, tuple(Pass)), merge(others, emulate, (Pass.PLAIN, Pass.CHECK)))
    return lambda sample: both[serial(sample)]


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
    for build in (Pass.CHECK, Pass.ASAN) if sample.name in WITH_ASAN else (Pass.CHECK,):
        assert sample.wrong(inputs, run(sample, build)) == "", build


def test_more_than_one_worker_is_tried() -> None:
    """Samples with atomics or volatile flags run on one worker; most must not, or the schedules above would say little."""
    assert sum(not serial(sample) for sample in SAMPLES) >= 15


def test_what_a_kernel_prints_is_kept(merged: Callable[[Sample], Merged]) -> None:
    asks = next(sample for sample in SAMPLES if sample.name == "questions")
    assert merged(asks).run(asks, Pass.PLAIN).finished.stdout == b"thread 3 of 8 says 1.50\n"
