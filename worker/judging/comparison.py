"""When a value is right: `|got - want| <= absolute + relative * |want|`.

The comparison is written so that NaN is wrong, and an infinity is right only where the reference has the same one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelgate.stages import Tolerance
from worker.judging.arrays import Float64


@dataclass(frozen=True)
class Comparison:
    """One tensor compared. All arrays have the tensor's shape; `excess` is the error in units of its tolerance."""

    got: Float64
    want: Float64
    error: Float64
    allowed: Float64
    wrong: NDArray[np.bool_]

    @property
    def excess(self) -> Float64:
        with np.errstate(all="ignore"):
            return np.where(self.wrong, self.error / np.maximum(self.allowed, np.finfo(np.float64).tiny), 0.0)


def compare(
    got: Float64, want: Float64, tolerance: Tolerance, *, widened: float = 1.0, bound: Float64 | None = None
) -> Comparison:
    """Compares two arrays of one shape, element by element. bound: what is allowed of each, in place of the tolerance's."""
    with np.errstate(all="ignore"):
        same = got == want
        error = np.where(same, 0.0, np.abs(got - want))
        of_all = tolerance.absolute + tolerance.relative * np.where(np.isfinite(want), np.abs(want), 0.0)
        allowed = widened * (of_all if bound is None else np.broadcast_to(bound, want.shape))
        wrong = ~(same | (error <= allowed))
        far = ~(same | (error <= tolerance.cap * allowed))
    few = np.count_nonzero(wrong) <= (1 - tolerance.share) * wrong.size
    return Comparison(got, want, error, allowed, far if few else wrong)
