"""The comparison decides every verdict, so each way a value can be wrong has its case here."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from kernelgate.stages import Tolerance
from worker.judging.arrays import MalformedTensorError, RawTensor
from worker.judging.comparison import compare
from worker.judging.pattern import describe, error_map

TIGHT = Tolerance(absolute=1e-6, relative=1e-6)


@pytest.mark.parametrize(
    ("got", "want", "wrong"),
    [
        (1.0, 1.0, False),
        (1.0 + 1e-6, 1.0, False),
        (1.0 + 3e-6, 1.0, True),
        (np.nan, 1.0, True),
        (1.0, np.nan, True),
        (np.nan, np.nan, True),
        (np.inf, 1e300, True),
        (np.inf, np.inf, False),
        (-np.inf, np.inf, True),
        (1.0, np.inf, True),
        (-0.0, 0.0, False),
        (1e-7, 0.0, False),
        (2e-6, 0.0, True),
    ],
)
def test_one_value(got: float, want: float, wrong: bool) -> None:
    compared = compare(np.array([got]), np.array([want]), TIGHT)
    assert compared.wrong.tolist() == [wrong]


def test_relative_tolerance_follows_the_reference_and_not_the_answer() -> None:
    compared = compare(np.array([1e9]), np.array([1.0]), Tolerance(absolute=0, relative=0.5))
    assert compared.wrong.all()


def _described(rows: int, columns: int, *places: tuple[slice | int, slice | int]) -> str:
    wrong = np.zeros((rows, columns), dtype=bool)
    for place in places:
        wrong[place] = True
    want = np.arange(1.0, rows * columns + 1).reshape(rows, columns)
    rng = np.random.default_rng(1)
    got = np.where(wrong, want * rng.uniform(2, 9, want.shape), want)
    return describe(wrong, got, want, ("row", "dim"))


def test_patterns_say_where() -> None:
    every = slice(None)
    assert _described(40, 8, (slice(32, None), every)) == "every row from 32 on"
    assert _described(40, 8, (slice(0, 5), every)) == "every row up to 4"
    assert _described(40, 8, (slice(4, 9), every)) == "every row 4 to 8"
    assert _described(40, 8, (every, 3)) == "every dim 3"
    assert _described(40, 8, (every, every)) == "every element"
    assert _described(40, 8, (7, 7)) == "a single element"
    assert _described(40, 8, (1, 1), (7, 3), (20, 5)) == "3 of 320 elements, scattered"
    assert _described(40, 8, (30, 1), (31, 4), (32, 2)) == "3 of 320 elements, all in row 30 to 32"
    assert _described(40, 8, (slice(2, 4), slice(6, None))) == "row 2 to 3 at dim from 6 on"


def test_patterns_say_how() -> None:
    want = np.full((4, 4), 2.0)
    wrong = np.ones((4, 4), dtype=bool)
    assert describe(wrong, want * 0.5, want, ("row", "dim")) == "every element; got is 0.5 × want in all of them"
    assert describe(wrong, want * 0, want, ("row", "dim")) == "every element; all wrong values are 0"
    holed = np.where(np.eye(4) > 0, np.nan, 5.0)
    assert describe(wrong, holed, want, ("row", "dim")) == "every element; 4 of the 16 wrong values are NaN or infinite"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_was_never_written_is_told_from_what_was_computed(dtype: type[np.generic]) -> None:
    want, wrong = np.ones((4, 4)), np.ones((4, 4), dtype=bool)
    filled = np.full((4, 4), 0xFF, dtype=np.uint8).repeat(np.dtype(dtype).itemsize, axis=1).view(dtype)
    said = "16 of the 16 wrong values were never written: they hold what outputs are filled with"
    assert describe(wrong, filled.astype(np.float64), want, ("row", "dim")) == f"every element; {said}"
    with np.errstate(all="ignore"):
        computed = np.full((4, 4), np.inf, dtype) - np.full((4, 4), np.inf, dtype)
    gpus = np.full((4, 4), 0x7FFFFFFF, np.uint32).view(np.float32)
    for other in (computed, -computed, gpus, np.full((4, 4), np.nan, dtype)):
        assert "never written" not in describe(wrong, other.astype(np.float64), want, ("row", "dim"))


def test_a_scalar_and_a_vector_have_patterns_too() -> None:
    one = np.ones((), dtype=bool)
    assert describe(one, np.array(3.0), np.array(1.0), ()) == "every element"
    vector = np.array([False, False, True, True])
    assert describe(vector, np.array([0, 0, 5.0, 9.0]), np.ones(4), ("query",)) == "every query from 2 on"


def test_error_map_keeps_the_worst_of_each_cell() -> None:
    excess = np.zeros((200, 3))
    excess[199, 2] = 1e9
    excess[0, 0] = np.nan
    excess[5, 1] = 1.0
    picture = error_map(excess, ("row", "dim"))
    cells = np.frombuffer(base64.b64decode(picture.cells), np.uint8).reshape(picture.rows, picture.columns)
    assert (picture.rows, picture.columns, picture.row_step) == (67, 3, 3)
    assert cells[0, 0] == 255
    assert cells[66, 2] == 254
    assert cells.sum() == 255 + 254


def test_half_types_are_read_exactly() -> None:
    brain = RawTensor("bfloat16", (2,), np.array([0x3F80, 0xC000], "<u2").tobytes())
    assert brain.numbers().tolist() == [1.0, -2.0]
    half = RawTensor("float16", (2, 1), np.array([0.5, np.inf], "<f2").tobytes())
    assert half.numbers().tolist() == [[0.5], [np.inf]]


@pytest.mark.parametrize(
    ("dtype", "shape", "size", "said"),
    [
        ("object", (1,), 8, "dtype 'object'"),
        ("float32", (2,), 4, "takes 8 bytes; 4 came"),
        ("float32", (-1,), 0, "none negative"),
        ("float32", (1,) * 9, 4, "at most 8 sizes"),
    ],
)
def test_tensors_that_do_not_fit_their_bytes(dtype: str, shape: tuple[int, ...], size: int, said: str) -> None:
    with pytest.raises(MalformedTensorError, match=said):
        RawTensor(dtype, shape, b"\0" * size)
