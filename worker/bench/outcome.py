"""What a measurement comes to: the bench's `measured` answer, with what a reader needs to know to judge the number."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.bench.measure import Samples
    from worker.bench.statistics import Ratio

Facts = dict[str, float | str]


@dataclass(frozen=True)
class Call:
    """What one timed call takes at least.

    flops: floating-point operations; 0 where the stage does not count them. moved: bytes, for reading every input once and
    writing every output once.
    """

    flops: float
    moved: int


@dataclass(frozen=True)
class Peaks:
    """What the card does in a second at best: fp32 operations, and bytes to or from its memory. 0: not known."""

    flops: float = 0.0
    moved: float = 0.0


def measured(
    samples: Samples, found: Ratio | None, call: Call, peaks: Peaks, more: Mapping[str, float | str]
) -> dict[str, Any]:
    """The answer. more: facts besides those about clocks and throughput. Raises RuntimeError where no sample counts."""
    if found is None:
        raise RuntimeError(f"all {samples.dropped} samples were taken while the card was slowed down")
    facts = {**conditions(samples), **throughput(call, statistics.median(samples.user), peaks), **more}
    speed = {"speedup": found.value, "low": found.low, "high": found.high}
    return {"kind": "measured", "baseline": samples.baseline, "user": samples.user, **speed, "facts": facts}


def conditions(samples: Samples) -> Facts:
    """Under which the samples were taken."""
    clocks = [reading.sm_mhz for reading in samples.readings]
    return {
        "pairs": len(samples.user),
        "dropped_pairs": samples.dropped,
        "sm_mhz_low": min(clocks),
        "sm_mhz_high": max(clocks),
        "celsius": max(reading.celsius for reading in samples.readings),
    }


def throughput(call: Call, ms: float, peaks: Peaks) -> Facts:
    """What a roofline is drawn from, for a call of `ms`: GFLOP and GB are 10^9. What is not known is left out."""
    facts: Facts = {}
    if call.flops:
        facts |= {"flops": call.flops, "gflop_per_s": round(call.flops / ms / 1e6, 1)}
        if peaks.flops:
            facts["peak_gflop_per_s"] = round(peaks.flops / 1e9, 1)
            facts["share_of_fp32_peak"] = round(call.flops / (ms * 1e-3) / peaks.flops, 4)
    if call.moved:
        facts |= {"bytes": call.moved, "gb_per_s": round(call.moved / ms / 1e6, 2)}
        if peaks.moved:
            facts["peak_gbps"] = round(peaks.moved / 1e9, 1)
            facts["share_of_peak_bandwidth"] = round(call.moved / (ms * 1e-3) / peaks.moved, 5)
    return facts
