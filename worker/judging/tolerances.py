"""Tolerances that a stage need not state: from its own reference, run in the working precision with sums in sequence.

Every honest kernel rounds, and adds up in some order; adding one term after the other is about the worst of them. So the
reference is run once in float64 and once in float32 with all sums in sequence, over several draws of the inputs, and what is
allowed is a stated multiple of the differences.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelgate.stages import Tolerance
from worker.judging.arrays import Array, Float64, numbers_of, stored_as

FACTOR = 4.0
LEAST = {"float64": 16.0, "float32": 16.0, "float16": 4.0, "bfloat16": 4.0}
"""Of a result's own unit, what is allowed at least: approximate functions are off by 2, and a formula has a few of them."""
DEEP = 1000.0
"""What is smaller than the largest by more than this is allowed what one so large is: fast exponentials are the less exact, the
smaller they get.
"""
ENOUGH_VALUES, MOST_DRAWS = 512, 32
"""Inputs are drawn until so many values were seen, at least twice and at most so often."""
WHY = (
    f"{FACTOR:g} times the error of the reference in the working precision with its sums in sequence, the middle one relative "
    "and the largest one above it absolute"
)
UNIT = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half the distance between 1 and the next number."""


class InSequence(np.ndarray[Any, Any]):
    """An array of floats whose sums, means and products of matrices add one term after the other, in its own dtype."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, out: Any = None, **options: Any) -> Any:
        plain = [np.asarray(each) if isinstance(each, InSequence) else each for each in given]
        if out is not None:
            options["out"] = tuple(np.asarray(each) if isinstance(each, InSequence) else each for each in out)
        if ufunc is np.add and method == "reduce" and out is None:
            made: Any = _summed(plain[0], **options)
        elif ufunc is np.matmul and method == "__call__" and out is None:
            made = _product(np.asarray(plain[0]), np.asarray(plain[1]))
        else:
            made = getattr(ufunc, method)(*plain, **options)
        return _again(made, self.dtype)


def _again(made: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(made, tuple):
        return tuple(_again(each, dtype) for each in made)
    array = np.asarray(made)
    return array.astype(dtype).view(InSequence) if array.dtype.kind == "f" else array


def _summed(array: Array, axis: Any = 0, dtype: Any = None, keepdims: bool = False, **_: Any) -> Array:
    """np.add.reduce, term after term. dtype: what numpy would add up in, which for 16 bits is more than the array's."""
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    for each in sorted({one % array.ndim for one in axes}, reverse=True) if array.ndim else ():
        total = (
            np.take(np.cumsum(array, axis=each, dtype=dtype or array.dtype), [-1], axis=each)
            if array.shape[each]
            else None
        )
        array = np.zeros_like(np.sum(array, axis=each, keepdims=True)) if total is None else total
        array = array if keepdims else np.squeeze(array, each)
    return array


def _product(a: Array, b: Array) -> Array:
    left, right = (a[None, :] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    shape = (*np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1])
    total = np.zeros(shape, a.dtype)
    for at in range(left.shape[-1]):
        total = total + left[..., :, at : at + 1] * right[..., at : at + 1, :]
    if a.ndim == 1:
        total = total[..., 0, :]
    return total[..., 0] if b.ndim == 1 else total


@dataclass
class Spread:
    """What was seen of one judged tensor: errors of the reference in its working precision, beside the float64 values."""

    dtype: str
    errors: list[Float64] = field(default_factory=list)
    wants: list[Float64] = field(default_factory=list)

    def add(self, got: Array, want: Float64) -> None:
        """got: in working precision; it is rounded to the result's dtype here. What is not finite in both says nothing."""
        with np.errstate(all="ignore"):
            error = np.abs(numbers_of(stored_as(np.asarray(got), self.dtype), self.dtype) - want)
        usable = np.isfinite(error) & np.isfinite(want)
        self.errors.append(error[usable])
        self.wants.append(np.abs(want[usable]))

    @property
    def count(self) -> int:
        return sum(part.size for part in self.errors)

    def allowed(self) -> Tolerance:
        """`FACTOR` times the middle relative error, and above it `FACTOR` times the largest absolute one.

        Relative alone would be wrong where sums cancel: there the error does not shrink with the value.
        """
        if self.dtype not in UNIT:
            return Tolerance(absolute=0.0, relative=0.0, why="whole numbers are exact")
        least = LEAST[self.dtype] * UNIT[self.dtype]
        error, want = (np.concatenate([*parts, np.empty(0)]) for parts in (self.errors, self.wants))
        shown = want > want.max(initial=0.0) / 100
        # Smaller values may be rounded to nothing: what they are off by is absolute.
        relative = max(least, FACTOR * float(np.median(error[shown] / want[shown]))) if shown.any() else least
        beyond = float(np.max(error - relative / FACTOR * want, initial=0.0))
        absolute = max(FACTOR * beyond, least * float(max(np.median(want), want.max() / DEEP)) if want.size else least)
        return Tolerance(absolute=_rounded(absolute), relative=_rounded(relative), why=WHY)


def _rounded(bound: float) -> float:
    return float(f"{bound:.2g}")
