"""When a measurement may stop, and what it says: the ratio of middle means over pairs, with a bootstrap interval.

A middle mean is the mean without the quarter of the samples at either end: as robust as is needed here, and steadier than a
median where samples lie around two levels, as the host's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NARROW = 0.005
RESAMPLES = 1000
CUT = 0.25


@dataclass(frozen=True)
class Ratio:
    """baseline / user with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def narrow(self) -> bool:
        """Whether the interval lies within ±0.5 % of the value."""
        return bool(self.high - self.value <= NARROW * self.value and self.value - self.low <= NARROW * self.value)

    def clear_of(self, gate: float | None) -> bool:
        return gate is not None and not self.low <= gate <= self.high


def ratio(baseline: NDArray[np.float64], user: NDArray[np.float64], rng: np.random.Generator) -> Ratio:
    """Milliseconds of paired samples, [pairs] each. Whole pairs are drawn again: what disturbed one half disturbed both."""
    value = middle(baseline) / middle(user)
    drawn = rng.integers(0, len(user), (RESAMPLES, len(user)))
    ratios = _middles(baseline[drawn]) / _middles(user[drawn])
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Ratio(value, float(low), float(high))


def middle(samples: NDArray[np.float64] | Sequence[float]) -> float:
    """The middle mean of samples [n], n at least 1."""
    return float(_middles(np.asarray(samples, np.float64)[None])[0])


def middle_error(samples: NDArray[np.float64] | Sequence[float]) -> float:
    """The standard error of the middle mean of samples [n], from the samples with their ends pulled in (Tukey and
    McLaughlin, 1963).
    """
    ordered = np.sort(np.asarray(samples, np.float64))
    cut = _cut(len(ordered))
    pulled = np.clip(ordered, ordered[cut], ordered[-1 - cut])
    kept = (len(ordered) - 2 * cut) / len(ordered)
    return float(np.std(pulled, ddof=1) / (kept * np.sqrt(len(ordered)))) if len(ordered) > 1 else 0.0


def _cut(count: int) -> int:
    return int(CUT * count)


def _middles(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row."""
    ordered = np.sort(samples, axis=1)
    cut = _cut(samples.shape[1])
    means: NDArray[np.float64] = ordered[:, cut : samples.shape[1] - cut].mean(axis=1)
    return means


def enough(found: Ratio, gate: float | None) -> bool:
    """As soon as the interval is narrow, or clear of the gate."""
    return found.narrow or found.clear_of(gate)
