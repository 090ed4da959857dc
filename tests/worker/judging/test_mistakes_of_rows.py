"""Mistakes of the stages on rows and products, each written in two ways that are not the stage's variant, and all named.

A kernel is a numpy function of float32 arrays; `add` sums along the last axis in an order of its own, which is the first
difference between the two ways, and tiles and blocks of other sizes are the second.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from worker.judging.arrays import Float64, RawTensor, numbers_of, stored_as
from worker.judging.grader import Arrays, CaseOutcome, Grader
from worker.judging.mistakes import mistakes_of

SEED = "5eed"
MOST_VALUES = 40_000
Array = np.ndarray
Add = Callable[[Array], Array]


def in_sequence(values: Array) -> Array:
    """One term after the other, as one thread does it."""
    return np.add.accumulate(values, axis=-1, dtype=np.float32)[..., -1:]


def by_lanes(values: Array) -> Array:
    """A warp's lanes each by steps of 32, then by shuffles."""
    padded = np.zeros((*values.shape[:-1], -(-values.shape[-1] // 32) * 32), np.float32)
    padded[..., : values.shape[-1]] = values
    lanes = np.add.accumulate(padded.reshape(*values.shape[:-1], -1, 32), axis=-2, dtype=np.float32)[..., -1, :]
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes


def columns(x: Array, keep: Callable[[Array], Array]) -> Array:
    return np.where(keep(np.arange(x.shape[-1])), x, 0)


def exp(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.exp(x.astype(np.float32))


def top(x: Array) -> Array:
    return x.max(axis=-1, keepdims=True)


def tops_of_threads(x: Array, block: int) -> Array:
    return np.stack([x[:, at % block :: block].max(axis=1) for at in range(x.shape[1])], axis=1)


def softmax(x: Array, add: Add, m: Array | None = None) -> Array:
    weight = exp(x - (top(x) if m is None else m))
    with np.errstate(invalid="ignore", divide="ignore"):
        return weight / add(weight)


def silu(x: Array) -> Array:
    return x / (1 + exp(-x))


def halves(packed: Array) -> tuple[Array, Array]:
    width = packed.shape[1] // 2
    return packed[:, :width], packed[:, width:]


def rms(x: Array, add: Add, width: int = 0) -> Array:
    return add(x * x) / np.float32(width or x.shape[1])


def centred(x: Array, add: Add) -> Array:
    return x - add(x) / np.float32(x.shape[1])


def padding(width: int) -> int:
    return (1 << (width - 1).bit_length()) - width


def product(a: Array, b: Array, first: int = 0, last: int | None = None) -> Array:
    """Sums over part of the depth, in float32."""
    return (a[:, first:last].astype(np.float32) @ b[first:last].astype(np.float32)).astype(np.float32)


Kernel = Callable[..., Any]
WAYS: dict[str, Add] = {"in sequence": in_sequence, "by lanes": by_lanes}


def of_row_sum(add: Add, other: bool) -> dict[str, Kernel]:
    block = 128 if other else 512
    return {
        "lane_0_alone": lambda x: add(columns(x, lambda at: at % 32 == 0)),
        "first_warp_alone": lambda x: add(columns(x, lambda at: at % block < 32)),
        "tail_dropped": lambda x: add(columns(x, lambda at: at < x.shape[1] // (block // 2) * (block // 2))),
        "first_columns_alone": lambda x: add(columns(x, lambda at: at < block)),
        "mean": lambda x: add(x) * np.float32(1 / x.shape[1]),
        "squares": lambda x: add(x * x),
        "last_column_missing": lambda x: add(columns(x, lambda at: at < x.shape[1] - 1)),
        "step_16_missing": lambda x: add(columns(x, lambda at: at % 32 < 16)),
        "column_sums": lambda x: np.resize(add(x.T)[:, 0], len(x)),
    }


def of_rms_norm(add: Add, other: bool) -> dict[str, Kernel]:
    block = 128 if other else 1024
    return {
        "sum_not_mean": lambda x, w, eps: x * (1 / np.sqrt(add(x * x) + eps)) * w,
        "weight_forgotten": lambda x, eps: x / np.sqrt(rms(x, add) + eps),
        "eps_outside": lambda x, w, eps: w * x * (1 / (np.sqrt(rms(x, add)) + eps)),
        "eps_forgotten": lambda x, w: w * x / np.maximum(np.sqrt(rms(x, add)), np.float32(1e-30)),
        "no_root": lambda x, w, eps: w * (x / (rms(x, add) + eps)),
        "mean_subtracted": lambda x, w, eps: centred(x, add) / np.sqrt(rms(centred(x, add), add) + eps) * w,
        "first_warp_only": lambda x, w, eps: (
            x / np.sqrt(add(columns(x * x, lambda at: at % block < 32)) / np.float32(x.shape[1]) + eps) * w
        ),
        "padded_width": lambda x, w, eps: x / np.sqrt(rms(x, add, -(-x.shape[1] // 32) * 32) + eps) * w,
    }


def of_softmax(add: Add, other: bool) -> dict[str, Kernel]:
    block = 128 if other else 512
    return {
        "no_maximum": lambda x: softmax(x, add, np.zeros((1, 1), np.float32)),
        "maximum_starts_at_zero": lambda x: softmax(x, add, np.maximum(top(x), 0)),
        "maximum_of_a_thread": lambda x: softmax(x, add, tops_of_threads(x, block)),
        "not_normalised": lambda x: exp(x - top(x)),
        "by_column": lambda x: softmax(x.T, add).T,
        "powers_of_two": lambda x: np.exp2(x - top(x)) / add(np.exp2(x - top(x))),
        "logarithm": lambda x: x - (top(x) + np.log(add(exp(x - top(x))))),
        "first_warp_alone": lambda x: exp(x - top(x)) / add(columns(exp(x - top(x)), lambda at: at % block < 32)),
        "sign": lambda x: softmax(-x, add),
        "squares": lambda x: exp(x - top(x)) * (1 / np.sqrt(add(exp(x - top(x)) ** 2))),
    }


def of_swiglu(add: Add, other: bool) -> dict[str, Kernel]:  # noqa: ARG001 - nothing is summed
    def sigmoid(x: Array) -> Array:
        return np.float32(0.5) * (1 + np.tanh(x * np.float32(0.5))) if other else 1 / (1 + exp(-x))

    return {
        "gate_and_up_swapped": lambda packed: halves(packed)[0] * silu(halves(packed)[1]),
        "sigmoid_only": lambda packed: halves(packed)[1] * sigmoid(halves(packed)[0]),
        "gate_forgotten": lambda packed: halves(packed)[1] * halves(packed)[0],
        "relu": lambda packed: np.where(halves(packed)[0] > 0, halves(packed)[0], 0) * halves(packed)[1],
        "exponent_sign": lambda packed: halves(packed)[0] / (1 + exp(halves(packed)[0])) * halves(packed)[1],
        "up_through_silu_too": lambda packed: silu(halves(packed)[0]) * silu(halves(packed)[1]),
        "gelu": lambda packed: halves(packed)[1] * halves(packed)[0] * sigmoid(np.float32(1.702) * halves(packed)[0]),
        "interleaved": lambda packed: silu(packed[:, ::2]) * packed[:, 1::2],
    }


def of_layer_norm(add: Add, other: bool) -> dict[str, Kernel]:
    def normal(x: Array, eps: float, more: Array | float = 0, less: int = 0) -> Array:
        d = centred(x, add)
        squares = add(d * d) + more
        scale = 1 / np.sqrt(squares / np.float32(max(1, x.shape[1] - less)) + eps)
        return d * scale if other else d / (1 / scale)

    def padded(x: Array, w: Array, b: Array, eps: float) -> Array:
        mean = add(x) / np.float32(x.shape[1])
        return normal(x, eps, np.float32(padding(x.shape[1])) * mean * mean) * w + b

    return {
        "variance_missing": lambda x, w, b: centred(x, add) * w + b,
        "unbiased": lambda x, w, b, eps: normal(x, eps, less=1) * w + b,
        "padding_counts": padded,
        "mean_missing": lambda x, w, b, eps: x / np.sqrt(rms(x, add) + eps) * w + b,
        "bias_forgotten": lambda x, w, eps: w * normal(x, eps),
        "weight_forgotten": lambda x, b, eps: b + normal(x, eps),
        "bias_weighed": lambda x, w, b, eps: w * b + w * normal(x, eps),
        "eps_outside": lambda x, w, b, eps: centred(x, add) * (1 / (np.sqrt(rms(centred(x, add), add)) + eps)) * w + b,
        "no_root": lambda x, w, b, eps: centred(x, add) * (1 / (rms(centred(x, add), add) + eps)) * w + b,
    }


def of_row_softmax(add: Add, other: bool) -> dict[str, Kernel]:
    def padded(x: Array) -> Array:
        wide = np.pad(x, ((0, 0), (0, padding(x.shape[1]))))
        return softmax(wide, add)[:, : x.shape[1]]

    return {
        "no_maximum": lambda x: softmax(x, add, np.zeros((1, 1), np.float32)),
        "padding_counts": padded,
        "by_column": lambda x: softmax(x.T, add).T,
        "not_normalised": lambda x: exp(x) / exp(top(x)) if other and abs(x).max() < 40 else exp(x - top(x)),
        "powers_of_two": lambda x: np.exp2(x - top(x)) / add(np.exp2(x - top(x))),
        "logarithm": lambda x: x - (top(x) + np.log(add(exp(x - top(x))))),
        "nothing_done": lambda x: x * np.float32(1),
        "divided_by_count": lambda x: exp(x - top(x)) * np.float32(1 / x.shape[1]),
    }


def of_matmul(add: Add, other: bool) -> dict[str, Kernel]:  # noqa: ARG001 - what is summed is a part of the depth
    bk = 64 if other else 32

    def last(depth: int) -> int:
        return (depth - 1) // bk * bk

    return {
        "first_tile_only": lambda a, b: product(a, b, 0, bk),
        "tail_dropped": lambda a, b: product(a, b, 0, a.shape[1] // bk * bk),
        "last_tile_only": lambda a, b: product(a, b, last(a.shape[1])),
        "b_transposed": lambda a, b: product(a, b.reshape(b.shape[::-1]).T),
        "result_transposed": lambda a, b: product(a, b).T.reshape(len(a), b.shape[1]),
        "sign": lambda a, b: product(-a, b) if other else 0 - product(a, b),
    }


STAGES = {
    "row_sum": of_row_sum,
    "rms_norm": of_rms_norm,
    "softmax_three_pass": of_softmax,
    "swiglu": of_swiglu,
    "triton_layer_norm": of_layer_norm,
    "triton_row_softmax": of_row_softmax,
    "triton_matmul": of_matmul,
}
MATRIX = [
    (stage, name, way) for stage, kernels in STAGES.items() for name in kernels(in_sequence, False) for way in WAYS
]
UNNAMED = {("softmax_three_pass", "first_warp_alone", "in sequence")}
"""The sum of a first warp may be denormal in float32, and has few digits then: better no name than a wrong one."""
UNKNOWN = {
    "row_sum": lambda x: in_sequence(columns(x, lambda at: at % 7 != 3)),
    "rms_norm": lambda x, w, eps: x / np.sqrt(rms(x, in_sequence) * np.float32(1.03) + eps) * w,
    "softmax_three_pass": lambda x: softmax(x * np.float32(0.9), in_sequence),
    "swiglu": lambda packed: halves(packed)[0] * np.tanh(halves(packed)[0]) * halves(packed)[1],
    "triton_layer_norm": lambda x, w, b: np.tanh(centred(x, in_sequence)) * w + b,
    "triton_row_softmax": lambda x: softmax(x * np.float32(0.9), in_sequence),
    "triton_matmul": lambda a, b: product(a, b) * np.float32(1.05),
}


@cache
def grader(stage: str) -> Grader:
    return Grader(load_stage(ROOT / "graders" / stage))


def outcomes(stage: str, kernel: Kernel) -> list[CaseOutcome]:
    """What a kernel computes in the cases of a machine without a GPU, stored as a submission's outputs are."""
    return [_outcome(grader(stage), case, inputs, expected, kernel) for case, inputs, expected in _cases(stage)]


@cache
def _cases(stage: str) -> list[tuple[Case, Arrays, dict[str, Float64]]]:
    """With inputs and truth, which are the same for every kernel."""
    judge = grader(stage)
    every = [case for case in (*judge.stage.spec.cases, *judge.drawn(SEED)) if not case.needs_gpu]
    made = [(case, judge.inputs(case, SEED)) for case in every]
    small = [(case, each) for case, each in made if sum(array.size for array in each.values()) < MOST_VALUES]
    return [(case, each, judge.reference(case, each)) for case, each in small]


def _outcome(judge: Grader, case: Case, inputs: Arrays, expected: dict[str, Float64], kernel: Kernel) -> CaseOutcome:
    assert judge.stage.form is not None
    dtypes = judge.dtypes(case, inputs)
    arrays = {name: numbers_of(array, dtypes[name]).astype(np.float32) for name, array in inputs.items()}
    given = {**case.params, **arrays}
    asked = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    with np.errstate(all="ignore"):
        made = np.asarray(kernel(**{name: given[name] for name in asked}), np.float32)
    name = judge.stage.form.seams[case.seam].judged[0].judged
    dtype = judge.stage.dtype(case, name)
    stored = stored_as(made.astype(np.float64).reshape(expected[name].shape), dtype)
    return CaseOutcome(case, inputs, {name: RawTensor(dtype, stored.shape, stored.tobytes())}, expected)


@pytest.mark.parametrize(("stage", "name", "way"), MATRIX, ids=[" ".join(row) for row in MATRIX])
def test_it_is_named_rightly(stage: str, name: str, way: str) -> None:
    kernel = STAGES[stage](WAYS[way], way == "by lanes")[name]
    found = [each.name for each in mistakes_of(grader(stage), outcomes(stage, kernel))]
    assert found == ([] if (stage, name, way) in UNNAMED else [name])


def test_an_answer_says_the_numbers_of_a_family() -> None:
    found = mistakes_of(grader("row_sum"), outcomes("row_sum", of_row_sum(by_lanes, True)["first_columns_alone"]))
    assert [each.title for each in found] == ["Only the first 128 columns were added"]
    listed = grader("row_sum").stage.mistake("first_columns_alone").title
    assert listed == "Only the first 32, 64, 128, 256, 512 or 1024 columns were added"


@pytest.mark.parametrize("stage", UNKNOWN)
def test_what_is_wrong_otherwise_gets_no_name(stage: str) -> None:
    assert mistakes_of(grader(stage), outcomes(stage, UNKNOWN[stage])) == ()


def test_the_matrix_is_large() -> None:
    assert len(MATRIX) >= 100
    for stage, kernels in STAGES.items():
        known = {each.name for each in grader(stage).stage.spec.mistakes}
        assert known - set(kernels(in_sequence, False)) <= {"summed_in_bfloat16"}, stage
