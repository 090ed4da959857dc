"""Laws of the online softmax that the reference has to keep, whatever the numbers; and how far honest files are from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case, Params
from worker.judging.grader import Grader

STAGE = load_stage(ROOT / "graders" / "online_softmax")
GRADER = Grader(STAGE)
HONEST = sorted(
    example.path.name
    for example in STAGE.examples()
    if example.verdict == "accepted" and example.path.stem not in ("defaults_changed", "looks_around_and_finds_nothing")
)
"""Without the two that are harmless in a process of their own only."""

Float64 = NDArray[np.float64]


@st.composite
def partitions(draw: st.DrawFn) -> tuple[Float64, Float64, list[int]]:
    """Scores [Q, K] up to ±1000, values [K, Dv], and the widths of blocks that K falls into."""
    blocks = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    rows, width, scale = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([0.0, 1.0, 30.0, 1000.0])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    keys = sum(blocks)
    return rng.uniform(-scale, scale, size=(rows, keys)), rng.normal(size=(keys, width)), blocks


def trace(scores: Float64, values: Float64, blocks: list[int]) -> dict[str, Float64]:
    params: Params = {"rows": len(scores), "dims": values.shape[1], "blocks": blocks}
    case = Case(name="drawn", title="", group="", dtype="float64", params=params, seam="trace")
    return GRADER.reference(case, {"scores": scores, "values": values})


def update(
    state: tuple[Float64, Float64, Float64], scores: Float64, values: Float64
) -> tuple[Float64, Float64, Float64]:
    case = Case(name="drawn", title="", group="", dtype="float64")
    names = ("row_max", "normalizer", "numerator")
    made = GRADER.reference(case, {**dict(zip(names, state, strict=True)), "scores": scores, "values": values})
    return made["new_max"], made["new_normalizer"], made["new_numerator"]


@settings(max_examples=60, deadline=None)
@given(partitions())
def test_every_partition_gives_the_result_of_one_block(drawn: tuple[Float64, Float64, list[int]]) -> None:
    scores, values, blocks = drawn
    whole, parted = trace(scores, values, [sum(blocks)]), trace(scores, values, blocks)
    for name in ("output", "logsumexp"):
        np.testing.assert_allclose(parted[name], whole[name], rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(partitions())
def test_the_recurrence_reaches_the_dense_state_after_every_block(drawn: tuple[Float64, Float64, list[int]]) -> None:
    scores, values, blocks = drawn
    rows, width = len(scores), values.shape[1]
    state = (np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, width)))
    dense = trace(scores, values, blocks)
    start = 0
    for index, size in enumerate(blocks):
        state = update(state, scores[:, start : start + size], values[start : start + size])
        start += size
        for name, part in zip(("trace_max", "trace_normalizer", "trace_numerator"), state, strict=True):
            np.testing.assert_allclose(dense[name][index], part, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(partitions(), st.floats(-500, 500))
def test_adding_a_constant_to_all_scores_moves_the_logsumexp_alone(
    drawn: tuple[Float64, Float64, list[int]], constant: float
) -> None:
    scores, values, blocks = drawn
    before, after = trace(scores, values, blocks), trace(scores + constant, values, blocks)
    np.testing.assert_allclose(after["output"], before["output"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(after["logsumexp"], before["logsumexp"] + constant, rtol=1e-9, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(partitions())
def test_the_normalizer_is_at_least_one_and_outputs_lie_between_the_values(
    drawn: tuple[Float64, Float64, list[int]],
) -> None:
    scores, values, blocks = drawn
    made = trace(scores, values, blocks)
    assert (made["trace_normalizer"] >= 1).all()
    assert (made["output"] <= values.max(axis=0) + 1e-12).all()
    assert (made["output"] >= values.min(axis=0) - 1e-12).all()


@pytest.mark.parametrize("name", ["update_gradient", "update_gradient_f64"])
def test_gradients_of_one_update_equal_autograd(name: str) -> None:
    case = next(case for case in STAGE.spec.cases if case.name == name)
    inputs = GRADER.inputs(case, "5eed")
    truth = GRADER.reference(case, inputs)
    parts = {key: torch.tensor(array.astype(np.float64)) for key, array in inputs.items()}
    leaves = {key: parts[key].requires_grad_() for key in ("normalizer", "numerator", "scores", "values")}
    mass = torch.exp(parts["row_max"]) * leaves["normalizer"] + torch.exp(leaves["scores"]).sum(1)
    weighted = (
        torch.exp(parts["row_max"])[:, None] * leaves["numerator"] + torch.exp(leaves["scores"]) @ leaves["values"]
    )
    results = {"output": weighted / mass[:, None], "logsumexp": torch.log(mass)}
    for which, result in results.items():
        np.testing.assert_allclose(truth[which], result.detach().numpy(), rtol=1e-12, atol=1e-12)
        loss = (result * parts[f"{which}_weight"]).sum()
        found = torch.autograd.grad(
            loss, list(leaves.values()), retain_graph=True, materialize_grads=True, allow_unused=True
        )
        for leaf, gradient in zip(leaves, found, strict=True):
            np.testing.assert_allclose(truth[f"{which}_grad_{leaf}"], gradient.numpy(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("file", HONEST)
def test_honest_files_stay_under_an_eighth_of_the_tolerance(file: str, drive: Callable[..., Any]) -> None:
    run = drive(STAGE, STAGE.folder / "submissions" / "accepted" / file)
    for seed in ("5eed", "beef"):
        for case in STAGE.spec.cases:
            inputs, tolerances = GRADER.inputs(case, seed), GRADER.tolerances(case)
            outputs = run(case, inputs)
            for name, want in GRADER.reference(case, inputs).items():
                allowed = tolerances[name].absolute + tolerances[name].relative * np.abs(want)
                assert (np.abs(outputs[name] - want) <= allowed / 8).all(), (case.name, name)


def test_every_tolerance_says_where_it_comes_from() -> None:
    for case in STAGE.spec.cases:
        assert all(len(tolerance.why) > 80 for tolerance in GRADER.tolerances(case).values())
