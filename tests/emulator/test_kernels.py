"""Public-style kernels give numpy's answers in every pass, whatever the order of fibres and the number of workers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.emulator.conftest import Emulated
from tests.emulator.samples import SAMPLES, Sample
from worker.emulate.run import Ran
from worker.emulate.toolchain import Pass

WITH_ASAN = (
    "matmul",
    "wmma_matmul",
    "softmax",
    "producer_consumer",
    "bf16_scale",
    "jacobi",
    "async_copy",
    "big_shared",
)
"""Those that between them use every kind of memory; what AddressSanitizer finds is in test_planted_bugs.py."""
SCHEDULES = ({"order": "reverse"}, {"order": "random", "seed": 3}, {"workers": 2})


def _run(emulated: Emulated, sample: Sample, build: Pass, **schedule: object) -> Ran:
    outputs = {name: size * np.dtype(dtype).itemsize for name, (size, dtype) in sample.outputs.items()}
    ran = emulated(build, sample.made(), outputs, sample.values, **schedule)
    told = ran.finding.sentence(ran.lines) if ran.finding else ran.error or ran.finished.stderr.decode()
    assert ran.returned, f"{sample.name} in {build}: {ran.finished.end}, {told}"
    assert ran.error == ""
    return ran


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_kernel_gives_numpys_answer_in_every_pass_and_order(emulate: Callable[..., Emulated], sample: Sample) -> None:
    inputs = sample.made()
    checking = (Pass.ASAN, Pass.CHECK) if sample.name in WITH_ASAN else (Pass.CHECK,)
    emulated = emulate(sample.name, sample.signature(inputs), sample.source, [Pass.PLAIN, *checking])
    plain = _run(emulated, sample, Pass.PLAIN)
    assert sample.wrong(inputs, plain.written) == ""
    assert all(plain.written[name] == array.tobytes() for name, array in inputs.items())
    for schedule in SCHEDULES:
        assert _run(emulated, sample, Pass.PLAIN, **schedule).written == plain.written, schedule
    for build in checking:
        assert sample.wrong(inputs, _run(emulated, sample, build).written) == "", build
