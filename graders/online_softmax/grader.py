"""Inputs, float64 reference and known mistakes of the stage online_softmax.

Theory of operation. The truth never uses the recurrence that is being taught: a state after some keys is the maximum, the
sum of exponentials and the weighted sum over *all* those keys at once, attention is a dense softmax, and gradients are the
closed formulas of a dense softmax. Only the mistakes run the recurrence, each with the one line wrong that its name says.
So a slip in the recurrence cannot hide in both.

Of a case, `params` are for driver.py: `kind` is what it runs, partitions are `block_size`, `block_sizes` or `blocks`; `data` is
how inputs are made here: their `kind`, and the sizes `queries`, `keys`, `width` (of q and k) and `value_width`.

All mathematics here is numpy float64, over the very inputs the submission got (a float32 input is converted exactly).

Formulas: Algorithm 1 of "FlashAttention" (Dao et al., 2022) and the usual derivative of softmax, in `attention_gradients`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from kernelgate.protocol import Table
from kernelgate.stages import Case

if TYPE_CHECKING:
    from worker.graders import CaseOutcome

Array = NDArray[np.float64]
Tensors = dict[str, Array]
Inputs = dict[str, NDArray[Any]]


class State(NamedTuple):
    """What is carried from block to block: row_max [Q], normalizer [Q], numerator [Q, Dv]."""

    row_max: Array
    normalizer: Array
    numerator: Array


# Inputs ------------------------------------------------------------------------------------------------------------------


def inputs(case: Case, rng: Generator) -> Inputs:
    """The case's inputs in its dtype, in the order driver.py passes them on."""
    made = DATA[str(case.data["kind"])](case, rng)
    return {name: array.astype(case.dtype) for name, array in made.items()}


def _size(case: Case, name: str) -> int:
    return int(case.data[name])  # type: ignore[arg-type]


def _listed(case: Case, name: str) -> list[int]:
    return [int(item) for item in case.params[name]]  # type: ignore[union-attr]


def _real(case: Case, name: str, otherwise: float = 0.0) -> float:
    return float(case.data.get(name, otherwise))  # type: ignore[arg-type]


def _countable(_case: Case, rng: Generator) -> Tensors:
    """Two rows, three keys, logarithms of small whole numbers: every exponential is a fraction one can write down.

    In row 0 the block raises the maximum by a factor of 2 to 5, in row 1 it stays below it. So each row shows mistakes that
    the other hides, and all of them show at once.
    """
    factor = rng.integers(2, 6)
    old_top = rng.integers(2, 4)
    rising = rng.permutation([old_top * factor, *rng.integers(1, old_top * factor, size=2)])
    staying = rng.permutation([rng.integers(4, 9), *rng.integers(1, 5, size=2)])
    return {
        "row_max": np.log(np.array([old_top, 12], dtype=np.float64)),
        "normalizer": rng.integers(2, 6, size=2).astype(float),
        "numerator": rng.integers(1, 10, size=(2, 2)).astype(float),
        "scores": np.log(np.stack([rising, staying]).astype(float)),
        "values": rng.integers(1, 10, size=(3, 2)).astype(float),
    }


def _empty_state(case: Case, rng: Generator) -> Tensors:
    """The initial state and a first block."""
    rows, width = _size(case, "queries"), _size(case, "value_width")
    state = State(np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, width)))
    return {**state._asdict(), **_block(case, rng)}


def _mid_stream(case: Case, rng: Generator) -> Tensors:
    """A state that some keys have been through. Even rows: the new block raises the maximum; odd rows: it does not."""
    rows, width = _size(case, "queries"), _size(case, "value_width")
    block = _block(case, rng)
    block["scores"] += _real(case, "level")
    rises = np.where(np.arange(rows) % 2 == 0, 1.0, -1.0)
    return {
        "row_max": block["scores"].max(axis=1) - rises * rng.uniform(0.7, 2.0, size=rows),
        "normalizer": rng.uniform(1.0, 4.0, size=rows),
        "numerator": rng.normal(size=(rows, width)) + 1.0,
        **block,
    }


def _block(case: Case, rng: Generator) -> Tensors:
    rows, keys, width = _size(case, "queries"), _size(case, "keys"), _size(case, "value_width")
    return {"scores": rng.normal(size=(rows, keys)) * 1.5, "values": rng.normal(size=(keys, width))}


def _reused(case: Case, rng: Generator) -> Tensors:
    made = _mid_stream(case, rng)
    other = _block(case, rng)
    return {**made, "other_scores": other["scores"] + _real(case, "level") + 1.0, "other_values": other["values"]}


def _levels(case: Case, rng: Generator) -> Tensors:
    """Scores around one level per block, with `spread` standard deviations of noise, so that maxima move where wanted."""
    rows, width, blocks = _size(case, "queries"), _size(case, "value_width"), _listed(case, "blocks")
    levels = np.repeat([float(level) for level in case.data["levels"]], blocks)  # type: ignore[union-attr]
    noise = rng.normal(size=(rows, len(levels))) * _real(case, "spread")
    return {"scores": levels + noise, "values": rng.normal(size=(len(levels), width)) * 2.0}


def _analytic_scores(_case: Case, _rng: Generator) -> Tensors:
    return {"scores": np.log([[1.0, 3.0]]), "values": np.array([[2.0], [6.0]])}


def _analytic_tokens(_case: Case, _rng: Generator) -> Tensors:
    """With D = 1 the scale sqrt(D) is 1, so the scores are the keys: 0 and log 3."""
    return {"q": np.ones((1, 1)), "k": np.log([[1.0], [3.0]]), "v": np.array([[2.0], [6.0]])}


def _tokens(case: Case, rng: Generator) -> Tensors:
    queries, keys = _size(case, "queries"), _size(case, "keys")
    width, value_width = _size(case, "width"), _size(case, "value_width")
    return {
        "q": rng.normal(size=(queries, width)) * 1.5,
        "k": rng.normal(size=(keys, width)) * 1.5,
        "v": rng.normal(size=(keys, value_width)),
    }


def _far_tokens(case: Case, rng: Generator) -> Tensors:
    """Scores up to about ±1000 that float32 holds exactly, so that only the softmax can lose digits.

    q counts in quarters, k in ones and D is 4, so q·k / sqrt(D) counts in eighths. The second half of the keys are the
    first half moved by one step, which gives every key a neighbour that still has weight beside it.
    """
    queries, half = _size(case, "queries"), _size(case, "keys") // 2
    q = rng.integers(-32, 33, size=(queries, 4)) / 4.0
    reach = int(_real(case, "reach", 64))
    far = rng.integers(-reach, reach + 1, size=(half, 4)).astype(float)
    near = far + np.eye(4)[rng.integers(0, 4, size=half)] * rng.choice([-1.0, 1.0], size=(half, 1))
    return {"q": q, "k": np.concatenate([far, near]), "v": rng.normal(size=(2 * half, _size(case, "value_width")))}


def _with_weights(make: Callable[[Case, Generator], Tensors]) -> Callable[[Case, Generator], Tensors]:
    """Adds what output and logsumexp are multiplied by before they are summed and differentiated."""

    def made(case: Case, rng: Generator) -> Tensors:
        rows, width = _size(case, "queries"), _size(case, "value_width")
        weights = {"output_weight": rng.normal(size=(rows, width)), "logsumexp_weight": rng.normal(size=rows)}
        return {**make(case, rng), **weights}

    return made


DATA: dict[str, Callable[[Case, Generator], Tensors]] = {
    "countable": _countable,
    "empty_state": _empty_state,
    "mid_stream": _mid_stream,
    "mid_stream_weighted": _with_weights(_mid_stream),
    "reused": _reused,
    "levels": _levels,
    "analytic_scores": _analytic_scores,
    "analytic_tokens": _analytic_tokens,
    "tokens": _tokens,
    "tokens_weighted": _with_weights(_tokens),
    "far_tokens": _far_tokens,
    "far_tokens_weighted": _with_weights(_far_tokens),
}


# The truth ---------------------------------------------------------------------------------------------------------------


def merged(state: State, scores: Array, values: Array) -> State:
    """The state over the keys of `state` and the block's: new maximum, and both old sums brought to it."""
    row_max = np.maximum(state.row_max, scores.max(axis=1))
    old, new = np.exp(state.row_max - row_max), np.exp(scores - row_max[:, None])
    return State(row_max, old * state.normalizer + new.sum(axis=1), old[:, None] * state.numerator + new @ values)


def dense(scores: Array, values: Array) -> State:
    """The state over all keys of scores [Q, K] at once."""
    row_max = scores.max(axis=1)
    weights = np.exp(scores - row_max[:, None])
    return State(row_max, weights.sum(axis=1), weights @ values)


def finished(state: State) -> tuple[Array, Array]:
    """(output [Q, Dv], logsumexp [Q]) of a final state."""
    return state.numerator / state.normalizer[:, None], state.row_max + np.log(state.normalizer)


def softmax_weights(scores: Array, state: State) -> Array:
    """P [Q, K]. Not exp(scores - logsumexp): at a log-sum-exp of 1000 that difference alone costs three digits."""
    return np.exp(scores - state.row_max[:, None]) / state.normalizer[:, None]


def score_gradients(weights: Array, output: Array, values: Array, d_output: Array, d_logsumexp: Array) -> Array:
    """d loss / d scores [Q, K] where weights [Q, K] are the softmax: P (dO·V - dO·O) from the output, P dL from the rest."""
    gradients: Array = weights * (
        d_output @ values.T - (d_output * output).sum(axis=1, keepdims=True) + d_logsumexp[:, None]
    )
    return gradients


class Cut(NamedTuple):
    """Where gradients were lost. first_key: those of earlier keys (in an update: of the old state) are 0.

    maximum_left: the new weights still follow the maximum while the old sums do not, so that it no longer cancels.
    """

    first_key: int = 0
    maximum_left: bool = False


def attention_gradients(given: Tensors, d_output: Array, d_logsumexp: Array, cut: Cut) -> Tensors:
    """d loss / d q, k, v of dense attention; `cut` says what was detached, if anything."""
    q, k, v = given["q"], given["k"], given["v"]
    scale = 1.0 / math.sqrt(q.shape[1])
    scores = q @ k.T * scale
    state = dense(scores, v)
    output, _ = finished(state)
    weights = softmax_weights(scores, state)
    d_scores = score_gradients(weights, output, v, d_output, d_logsumexp)
    d_v = weights.T @ d_output
    d_scores[:, : cut.first_key] = 0.0
    d_v[: cut.first_key] = 0.0
    if cut.maximum_left:
        d_scores += left_over(scores, state, d_scores, d_logsumexp)
    return {"q": d_scores @ k * scale, "k": d_scores.T @ q * scale, "v": d_v}


def update_gradients(given: Tensors, d_output: Array, d_logsumexp: Array, cut: Cut) -> Tensors:
    """d loss / d normalizer, numerator, scores, values of one update; the old state's are 0 where it is cut off."""
    old, scores = State(given["row_max"], given["normalizer"], given["numerator"]), given["scores"]
    state = merged(old, scores, given["values"])
    output, _ = finished(state)
    weights = softmax_weights(scores, state)
    alpha = np.exp(old.row_max - state.row_max) / state.normalizer * (0.0 if cut.first_key else 1.0)
    d_scores = score_gradients(weights, output, given["values"], d_output, d_logsumexp)
    if cut.maximum_left:
        d_scores += left_over(scores, state, d_scores, d_logsumexp)
    return {
        "normalizer": alpha * (d_logsumexp - (d_output * output).sum(axis=1)),
        "numerator": alpha[:, None] * d_output,
        "scores": d_scores,
        "values": weights.T @ d_output,
    }


def left_over(scores: Array, state: State, d_scores: Array, d_logsumexp: Array) -> Array:
    """What reaches each row's largest score through the maximum when only the last block's weights follow it.

    Through row_max + log(normalizer) comes d_logsumexp, through the weights exp(score - row_max) comes -sum(d_scores).
    """
    largest = scores == state.row_max[:, None]
    shares = largest / np.maximum(largest.sum(axis=1, keepdims=True), 1)
    found: Array = shares * (d_logsumexp - d_scores.sum(axis=1))[:, None]
    return found


# Mistakes ----------------------------------------------------------------------------------------------------------------


BLOCK_MAXIMUM_ALONE = ("latest_block_maximum", "old_state_dropped")
NORMALIZER_NOT_RESCALED = ("alpha_missing", "alpha_missing_on_normalizer")
NUMERATOR_NOT_RESCALED = ("alpha_missing", "alpha_missing_on_numerator")


def wrong_step(mistake: str, state: State, scores: Array, values: Array) -> State:
    """One update with the named mistake in it, written as a submission would write it."""
    if mistake == "scores_scaled_again":
        scores = scores / math.sqrt(values.shape[1])
    exp = np.exp2 if mistake == "base_two" else np.exp
    block_max = scores.max(axis=1)
    row_max = block_max if mistake in BLOCK_MAXIMUM_ALONE else np.maximum(state.row_max, block_max)
    shifts = {"maximum_not_subtracted": np.zeros_like(row_max), "new_block_not_rescaled": block_max}
    weights = exp(scores - shifts.get(mistake, row_max)[:, None])
    on_normalizer, on_numerator = _wrong_alphas(mistake, exp(state.row_max - row_max))
    normalizer = on_normalizer * state.normalizer + weights.sum(axis=1)
    numerator = on_numerator[:, None] * state.numerator + weights @ values
    if mistake == "numerator_normalized":
        numerator = numerator / normalizer[:, None]
    if mistake == "maximum_and_normalizer_swapped":
        return State(normalizer, row_max, numerator)
    return State(row_max, normalizer, numerator)


def _wrong_alphas(mistake: str, alpha: Array) -> tuple[Array, Array]:
    """What the old normalizer and the old numerator are multiplied by."""
    if mistake == "old_state_dropped":
        alpha = np.zeros_like(alpha)
    if mistake == "alpha_inverted":
        alpha = 1.0 / alpha
    missing = np.ones_like(alpha)
    return (
        missing if mistake in NORMALIZER_NOT_RESCALED else alpha,
        missing if mistake in NUMERATOR_NOT_RESCALED else alpha,
    )


def wrong_states(mistake: str, scores: Array, values: Array, blocks: list[int]) -> Iterator[State]:
    """The states after each block of the given widths, from the empty one, with the mistake in every step."""
    rows = len(scores)
    state = State(np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, values.shape[1])))
    start = 0
    for width in blocks:
        state = wrong_step(mistake, state, scores[:, start : start + width], values[start : start + width])
        start += width
        yield state


def _widths(keys: int, block_size: int) -> list[int]:
    return [min(block_size, keys - start) for start in range(0, keys, block_size)]


# Reference, by kind of case ----------------------------------------------------------------------------------------------

DETACHED = ("previous_blocks_detached", "old_sums_detached")
RIGHT_IN_VALUE = (*DETACHED, "argument_updated_in_place")
"""Mistakes whose values are right; what is wrong with them is the gradient, or the inputs afterwards."""


def reference(case: Case, inputs: Inputs, mistake: str | None = None) -> Tensors:
    """float64 tensors in the order they are judged; with `mistake`, what a submission with that mistake returns.

    Gradients are modelled for detached blocks alone: mistakes of the values show in values, in cases that come before.
    """
    given = {name: array.astype(np.float64) for name, array in inputs.items()}
    return REFERENCES[str(case.params["kind"])](case, given, mistake)


def _named(prefix: str, state: State) -> Tensors:
    return {
        f"{prefix}_max": state.row_max,
        f"{prefix}_normalizer": state.normalizer,
        f"{prefix}_numerator": state.numerator,
    }


def _step(mistake: str | None, given: Tensors, block: str = "") -> State:
    state = State(given["row_max"], given["normalizer"], given["numerator"])
    scores, values = given[f"{block}scores"], given[f"{block}values"]
    if mistake is None or mistake in RIGHT_IN_VALUE:
        return merged(state, scores, values)
    return wrong_step(mistake, state, scores, values)


def _update(_case: Case, given: Tensors, mistake: str | None) -> Tensors:
    return _named("new", _step(mistake, given))


def _reuse(_case: Case, given: Tensors, mistake: str | None) -> Tensors:
    first, second = _step(mistake, given), _step(mistake, given, "other_")
    return {**_named("new", first), **_named("second", second), **_named("again", first)}


def _trace(case: Case, given: Tensors, mistake: str | None) -> Tensors:
    scores, values, blocks = given["scores"], given["values"], _listed(case, "blocks")
    if mistake is None or mistake in RIGHT_IN_VALUE:
        states = [dense(scores[:, :end], values[:end]) for end in np.cumsum(blocks)]
    else:
        states = list(wrong_states(mistake, scores, values, blocks))
    output, logsumexp = finished(states[-1])
    stacked = State(*(np.stack(parts) for parts in zip(*states, strict=True)))
    return {**_named("trace", stacked), "output": output, "logsumexp": logsumexp}


def _attend(given: Tensors, block_size: int, mistake: str | None) -> tuple[Array, Array]:
    scores = given["q"] @ given["k"].T / math.sqrt(given["q"].shape[1])
    if mistake is None or mistake in RIGHT_IN_VALUE:
        return finished(dense(scores, given["v"]))
    *_, last = wrong_states(mistake, scores, given["v"], _widths(len(given["k"]), block_size))
    return finished(last)


def _attention(case: Case, given: Tensors, mistake: str | None) -> Tensors:
    output, logsumexp = _attend(given, int(str(case.params["block_size"])), mistake)
    return {"output": output, "logsumexp": logsumexp}


def _sizes(case: Case, given: Tensors, mistake: str | None) -> Tensors:
    runs = [_attend(given, size, mistake) for size in _listed(case, "block_sizes")]
    outputs, logsumexps = zip(*runs, strict=True)
    return {"output_by_size": np.stack(outputs), "logsumexp_by_size": np.stack(logsumexps)}


def _update_gradient(_case: Case, given: Tensors, mistake: str | None) -> Tensors:
    output, logsumexp = finished(_step(mistake, given))
    cut = _cut(mistake, keys_before=1)
    return _with_gradients(output, logsumexp, given, lambda do, dl: update_gradients(given, do, dl, cut))


def _attention_gradient(case: Case, given: Tensors, mistake: str | None) -> Tensors:
    block_size, keys = int(str(case.params["block_size"])), len(given["k"])
    output, logsumexp = _attend(given, block_size, mistake)
    cut = _cut(mistake, keys_before=keys - _widths(keys, block_size)[-1])
    return _with_gradients(output, logsumexp, given, lambda do, dl: attention_gradients(given, do, dl, cut))


def _cut(mistake: str | None, *, keys_before: int) -> Cut:
    """Either way of detaching leaves the last block's share alone; they differ in what happens to the maximum."""
    if mistake not in DETACHED:
        return Cut()
    return Cut(first_key=keys_before, maximum_left=mistake == "old_sums_detached")


def _with_gradients(
    output: Array, logsumexp: Array, given: Tensors, differentiate: Callable[[Array, Array], Tensors]
) -> Tensors:
    d_output, d_logsumexp = given["output_weight"], given["logsumexp_weight"]
    tensors = {"output": output, "logsumexp": logsumexp}
    for leaf, gradient in differentiate(d_output, np.zeros_like(d_logsumexp)).items():
        tensors[f"output_grad_{leaf}"] = gradient
    for leaf, gradient in differentiate(np.zeros_like(d_output), d_logsumexp).items():
        tensors[f"logsumexp_grad_{leaf}"] = gradient
    return tensors


REFERENCES: dict[str, Callable[[Case, Tensors, str | None], Tensors]] = {
    "update": _update,
    "reuse": _reuse,
    "trace": _trace,
    "attention": _attention,
    "sizes": _sizes,
    "update_gradient": _update_gradient,
    "attention_gradient": _attention_gradient,
}


def calls(case: Case, inputs: Inputs) -> int:
    """How often a case calls the update."""
    match str(case.params["kind"]):
        case "trace":
            return len(_listed(case, "blocks"))
        case "attention" | "attention_gradient" | "sizes" as kind:
            sizes = _listed(case, "block_sizes") if kind == "sizes" else [int(str(case.params["block_size"]))]
            return sum(-(-len(inputs["q"]) // size) * -(-len(inputs["k"]) // size) for size in sizes)
        case kind:
            return 3 if kind == "reuse" else 1


# The exported table ------------------------------------------------------------------------------------------------------


def experiment(cases: Mapping[str, CaseOutcome]) -> list[Table]:
    """One table per dtype of the block-size experiment that ran: errors against dense attention in float64."""
    return [
        Table(
            title=f"{len(outcome.inputs['q'])} tokens, {outcome.case.dtype}: online softmax against dense attention",
            columns=(
                "block size",
                "maximum output error",
                "maximum log-sum-exp error",
                "largest score tile (elements)",
            ),
            rows=tuple(_experiment_rows(outcome)),
        )
        for outcome in cases.values()
        if outcome.case.group == "T3"
    ]


def _experiment_rows(outcome: CaseOutcome) -> Iterator[tuple[int | float, ...]]:
    queries, keys = len(outcome.inputs["q"]), len(outcome.inputs["k"])
    errors = {name: np.abs(outcome.outputs[name].numbers() - want) for name, want in outcome.expected.items()}
    for index, size in enumerate(_listed(outcome.case, "block_sizes")):
        output, logsumexp = (float(errors[name][index].max()) for name in ("output_by_size", "logsumexp_by_size"))
        yield size, output, logsumexp, min(size, queries) * min(size, keys)
