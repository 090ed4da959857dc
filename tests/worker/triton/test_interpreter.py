"""Kernels in the interpreter against numpy, through the whole backend but for the judging: recorded, translated, run."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from kernelgate.stages import Case, Params, Stage
from tests.worker.triton.sources import SAMPLES, Sample, source
from worker.judging.failures import Failure
from worker.judging.grader import Grader, dtypes_of
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.recording.placement import Edge
from worker.sandbox import Sandbox
from worker.triton import interpret
from worker.triton.cases import order_for

ROWS = 32


def job_for(stage: Stage, sandbox: Sandbox, text: str) -> Job:
    """A job of one case: q, k, v are fp16 [32, 16] of plain random values."""
    params: Params = {"rows": ROWS, "dim": 16, "block_n": 32, "causal": False}
    data: Params = {"plant": "plain"}
    case = Case(name="sample", title="sample", group="sample", dtype="float16", params=params, data=data)
    assert stage.form is not None
    spec = stage.spec.model_copy(update={"cases": (case,)})
    one = Stage(stage.folder, spec, stage.files, replace(stage.form, lines=()))
    return Job(one, text, Grader(one), sandbox, "5eed" * 8, Phases(Unwatched()))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_kernel_gives_numpys_answer(stage: Stage, sandbox: Sandbox, name: str) -> None:
    sample: Sample = SAMPLES[name]
    (run,) = interpret.run_cases(job_for(stage, sandbox, source(sample)))
    want = sample.want(run.inputs["q"], run.inputs["k"])
    np.testing.assert_allclose(run.outputs["out"].numbers(), want, rtol=2e-3, atol=2e-3)


def test_an_undefined_lane_that_comes_out_is_told_with_its_load(stage: Stage, sandbox: Sandbox) -> None:
    """The second load is the one: what the first leaves undefined is never stored."""
    body = (
        "kept = tl.load(x + at, mask=at < 8)\n"
        "b = tl.load(y + at, mask=at < 24)\n"
        "tl.store(out + at, tl.where(at < 8, kept, b * 2))\n"
    )
    text = source(Sample(body, lambda x, _: x.astype(float)))
    with pytest.raises(Failure) as raised:
        list(interpret.run_cases(job_for(stage, sandbox, text)))
    assert raised.value.reason == "uninitialised_read"
    line = 1 + next(at for at, text in enumerate(text.splitlines()) if "b = tl.load" in text)
    assert f"line {line} of " in raised.value.message
    assert "first in its element 24" in raised.value.message


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


ORDERS = {
    "a program clears the next one's row": (
        "row = tl.program_id(0)\nd = tl.arange(0, 16)\n"
        "tl.store(out + (row + 1) * 16 + d, tl.zeros([16], tl.float16), mask=(row + 1 < n) & (d >= 0))\n"
        "tl.store(out + row * 16 + d, tl.load(x + row * 16 + d) + 1)\n"
    ),
    "a program reads what the one before it wrote": (
        "row = tl.program_id(0)\nd = tl.arange(0, 16)\n"
        "tl.store(out + row * 16 + d, tl.load(x + row * 16 + d))\n"
        "before = tl.load(out + (row - 1) * 16 + d, mask=(row > 0) & (d >= 0), other=0.0)\n"
        "tl.store(out + row * 16 + d, tl.load(x + row * 16 + d) + before)\n"
    ),
}


@pytest.mark.parametrize("name", ORDERS)
def test_programs_that_meet_in_memory_are_told_whatever_their_order(stage: Stage, sandbox: Sandbox, name: str) -> None:
    with pytest.raises(Failure) as raised:
        list(interpret.run_cases(job_for(stage, sandbox, source(Sample(ORDERS[name], lambda x, _: x, "(n,)")))))
    assert raised.value.reason == "not_repeatable"
    assert "took the programs in another order" in raised.value.message


WAITS = {
    "a lock": ("while tl.atomic_cas(out.to(tl.pointer_type(tl.int32)), 0, 1) == 1:\n    pass\n", "tl.atomic_cas"),
    "a flag": (
        "while tl.atomic_add(out.to(tl.pointer_type(tl.int32)), 0) != 1:\n    pass\n",
        "a loop with an atomic operation went round 10,000 times",
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_a_wait_for_another_program_is_refused_by_name(stage: Stage, sandbox: Sandbox, name: str) -> None:
    body, words = WAITS[name]
    text = source(Sample(body + "tl.store(out + at, tl.load(x + at))\n", lambda x, _: x, "(2,)"))
    with pytest.raises(Failure) as raised:
        list(interpret.run_cases(job_for(stage, sandbox, text)))
    assert raised.value.reason == "cannot_interpret"
    assert words in raised.value.message
    assert "line 9" in raised.value.message


def test_a_part_of_a_buffer_is_filled_with_a_number(stage: Stage, sandbox: Sandbox) -> None:
    text = source(Sample("tl.store(out + at, tl.load(x + at), mask=at < 256)", lambda x, _: x))
    text = text.replace("    kernel[", "    out[3:] = 7.0\n    out[20:].fill_(9.0)\n    kernel[")
    (run,) = interpret.run_cases(job_for(stage, sandbox, text))
    want = np.vstack([run.inputs["q"][:16], np.full((4, 16), 7.0), np.full((12, 16), 9.0)])
    np.testing.assert_array_equal(run.outputs["out"].numbers(), want)


def test_an_input_of_whole_numbers_keeps_its_dtype() -> None:
    case = Case(name="sample", title="", group="", dtype="bfloat16")
    made = {"x": np.zeros(3, np.uint16), "index": np.zeros(3, np.int32), "scale": np.zeros(2, np.float32)}
    assert order_for(case, made, dtypes_of(case, made), (Edge.END, Edge.START)).dtypes == {
        "x": "bfloat16",
        "index": "int32",
        "scale": "float32",
    }


LASTING = {
    "a kernel": ("while tl.load(x + at, volatile=True).to(tl.float32).sum() < 1e9:\n    tl.store(out + at, 0)\n", ""),
    "its host code": ("tl.store(out + at, tl.load(x + at))\n", "while True:\n    k.shape\n"),
}


@pytest.mark.parametrize("name", LASTING)
def test_a_time_limit_says_which_line_ran(stage: Stage, sandbox: Sandbox, name: str) -> None:
    body, host = LASTING[name]
    text = source(Sample(body, lambda x, _: x.astype(float)))
    if host:
        lines = text.splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("def streaming_attention")) + 1
        lines[at:at] = [f"    {line}" for line in host.splitlines()]
        text = "\n".join(lines) + "\n"
    job = job_for(stage, sandbox, text)
    limits = job.stage.spec.limits.model_copy(update={"case_s": 5.0})
    job.stage = Stage(
        job.stage.folder, job.stage.spec.model_copy(update={"limits": limits}), job.stage.files, job.stage.form
    )
    with pytest.raises(Failure) as raised:
        list(interpret.run_cases(job))
    assert raised.value.reason == "time_limit"
    said = re.search(r"It was at line (\d+), in (\w+)\.", raised.value.message)
    assert said, raised.value.message
    running = text.splitlines()[int(said[1]) - 1].strip()
    assert running in [line.strip() for line in (body + host).splitlines()], running
    assert ("in case sample" if not host else "while its host code ran") in raised.value.message
