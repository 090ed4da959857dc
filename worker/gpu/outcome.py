"""What a measurement comes to: the figures that a reader needs to judge a speedup."""

from __future__ import annotations

from dataclasses import dataclass

from worker.gpu.clock import ClockReading
from worker.gpu.measurement import Samples
from worker.gpu.statistics import middle

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


def conditions(samples: Samples) -> Facts:
    """Under which the samples were taken."""
    return {
        "pairs": samples.pairs,
        "calls_in_a_bracket": samples.calls,
        "dropped_pairs": samples.dropped,
        "sm_mhz_low": min(samples.sm_mhz),
        "sm_mhz_high": max(samples.sm_mhz),
        "celsius": samples.celsius,
    }


def clocks(samples: Samples, reading: ClockReading, alone_ms: float) -> Facts:
    """Both clocks. by_host_ms: a call by the host's clock, less what the same bracket takes the baseline besides its calls."""
    by_events = middle(samples.user)
    return {
        "by_host_ms": round(by_events + reading.moved_us / 1e3, 5),
        "host_less_events_us": round(reading.user_us, 2),
        "host_less_events_of_baseline_us": round(reading.baseline_us, 2),
        "clocks_may_differ_us": round(reading.allowed_us, 2),
        "baseline_alone_ms": round(alone_ms, 5),
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
