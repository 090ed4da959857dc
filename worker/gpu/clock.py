"""Whether the card's events and the host's clock tell the same of a submission.

Events lie in memory that device code can reach; the host's clock does not. Around a bracket the host sees what the events
see and besides it what every bracket takes: orders, unmasking, the sweep, the hash tree. That rest is the same for both
sides, for they run the same orders over the same sizes, so the two sides' rests must agree within their noise. A start that
was moved forward or an end that was moved back makes the submission's rest longer; a lengthened call makes it shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worker.gpu.statistics import middle, middle_error

LEAST_ALLOWED_US, EACH_ALLOWED_US = 10.0, 0.5
"""Two processes differ by so much for a while, whatever the host does, and so much more for each call: what it left in the
second-level cache is written back in the sweep.
"""
SHARP_US, SHARE = 12.0, 0.05
"""A measurement goes on until noise hides no more of a call than the larger of these: microseconds, or a share of it."""
LEAST_SHARE = 0.005
"""Or by so much of what they play: who waits for a long bracket looks less often."""
ERRORS = 4.0
"""How many standard errors the two means may lie apart before they disagree."""
LOUDER = 10.0
"""So much noisier than the baseline's a submission's side may be by chance. Who makes more of it, makes it by forging."""


@dataclass(frozen=True)
class ClockReading:
    """Middle means over brackets, in microseconds: what the host saw besides the events, on either side, and how far they may
    differ.

    quiet_us: how far they might differ if both sides were as noisy as the baseline's. calls: of a bracket. call_ms: of the
    submission's, by events.
    """

    user_us: float
    baseline_us: float
    allowed_us: float
    quiet_us: float
    calls: int
    call_ms: float

    @property
    def moved_us(self) -> float:
        """By how much each call's events tell less than the host saw; negative for more."""
        return (self.user_us - self.baseline_us) / self.calls

    @property
    def sharp(self) -> bool:
        """Whether what the clocks may differ by is little beside a call."""
        return self._little(self.allowed_us)

    @property
    def blurred(self) -> bool:
        """Whether it is not, and by the noise of the submission's side alone: the host is as noisy on the other side."""
        return not self.sharp and self._little(self.quiet_us)

    def _little(self, difference_us: float) -> bool:
        return difference_us / self.calls <= max(SHARP_US, SHARE * 1e3 * self.call_ms)

    @property
    def agree(self) -> bool:
        return abs(self.user_us - self.baseline_us) <= self.allowed_us


def read(user_ms: Sequence[float], baseline_ms: Sequence[float], calls: int, call_ms: float) -> ClockReading:
    """user_ms, baseline_ms: of each bracket, milliseconds by the host less the sum of its events. call_ms: of the
    submission's, by events.
    """
    user, baseline = 1e3 * np.asarray(user_ms), 1e3 * np.asarray(baseline_ms)
    noise = float(np.hypot(middle_error(user), middle_error(baseline)))
    quiet = float(np.hypot(LOUDER, 1.0)) * middle_error(baseline)
    least = max(LEAST_ALLOWED_US + EACH_ALLOWED_US * calls, LEAST_SHARE * calls * 1e3 * call_ms)
    return ClockReading(
        user_us=middle(user),
        baseline_us=middle(baseline),
        allowed_us=max(least, ERRORS * noise),
        quiet_us=max(least, ERRORS * quiet),
        calls=calls,
        call_ms=call_ms,
    )
