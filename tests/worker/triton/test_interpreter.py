"""Kernels in the interpreter against numpy, through the whole backend but for the judging: recorded, translated, run."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.stages import Case, Params, Stage
from tests.worker.triton.sources import SAMPLES, Sample, source
from worker.judging.failures import Failure
from worker.judging.grader import Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.sandbox import Sandbox
from worker.triton import interpret

ROWS = 32


def job_for(stage: Stage, sandbox: Sandbox, text: str) -> Job:
    """A job of one case: q, k, v are fp16 [32, 16] of plain random values."""
    params: Params = {"kind": "values", "block_n": 32, "causal": False}
    data: Params = {"n": ROWS, "d": 16, "plant": "plain"}
    case = Case(name="sample", title="sample", group="sample", dtype="float16", params=params, data=data)
    one = Stage(stage.folder, stage.spec.model_copy(update={"cases": (case,)}), stage.files)
    return Job(one, text, Grader(one), sandbox, "5eed" * 8, Phases(Unwatched()))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_kernel_gives_numpys_answer(stage: Stage, sandbox: Sandbox, name: str) -> None:
    sample: Sample = SAMPLES[name]
    (run,) = interpret.run_cases(job_for(stage, sandbox, source(sample)))
    want = sample.want(run.inputs["q"], run.inputs["k"])
    np.testing.assert_allclose(run.outputs["out"].numbers(), want, rtol=2e-3, atol=2e-3)


FAULTS = {
    "one row past the end": ("tl.store(out + at + 16, tl.load(x + at))", "illegal_address", "past the end of 'out'"),
    "one value before the start": (
        "tl.store(out + at, tl.load(x + at - 1))",
        "illegal_address",
        "before the start of 'q'",
    ),
    "an assert": (
        'tl.device_assert(n > 99, "n is small")\ntl.store(out + at, tl.load(x + at))',
        "assertion",
        "n is small",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_its_line(stage: Stage, sandbox: Sandbox, name: str) -> None:
    body, reason, words = FAULTS[name]
    text = source(Sample(body, lambda x, _: x.astype(float))).replace("@triton.jit", "@triton.jit(debug=True)")
    with pytest.raises(Failure) as raised:
        list(interpret.run_cases(job_for(stage, sandbox, text)))
    assert raised.value.reason == reason
    assert words in raised.value.message
    line = next(at for at, part in enumerate(text.splitlines(), 1) if body.splitlines()[0] in part)
    assert f"line {line} of streaming_attention.py" in raised.value.message


def test_what_is_not_interpreted_is_refused_by_name(stage: Stage, sandbox: Sandbox) -> None:
    text = source(
        Sample(
            "h = tl.histogram(tl.ravel(tl.load(x + at)).to(tl.int32), 16)\ntl.store(out + tl.arange(0, 16), h.to(tl.float16))",
            lambda x, _: x.astype(float),
        )
    )
    with pytest.raises(Failure) as raised:
        list(interpret.run_cases(job_for(stage, sandbox, text)))
    assert raised.value.reason == "cannot_interpret"
    assert "tt.histogram" in raised.value.message
    assert "a worker with a GPU runs it" in raised.value.message
