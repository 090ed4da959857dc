"""When a measurement may stop, and what it says: the ratio of medians over pairs, with a bootstrap interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NARROW = 0.005
RESAMPLES = 1000


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
    value = float(np.median(baseline) / np.median(user))
    drawn = rng.integers(0, len(user), (RESAMPLES, len(user)))
    ratios = np.median(baseline[drawn], axis=1) / np.median(user[drawn], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Ratio(value, float(low), float(high))


def enough(found: Ratio, gate: float | None) -> bool:
    """As soon as the interval is narrow, or clear of the gate."""
    return found.narrow or found.clear_of(gate)
