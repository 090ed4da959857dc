"""What a measurement says, drawn: the rungs from the baseline to the card's ceiling, and every raw sample."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kernelgate.calibration import Calibration, readable
from kernelgate.protocol import Timing
from kernelgate.stages import Stage

SAMPLES_SHOWN = 400
WIDTH, HEIGHT = 600, 56
_FACTS = {
    "pairs": "Pairs that count",
    "dropped_pairs": "Pairs dropped: the card was slowed down",
    "sm_mhz_low": "SM clock, lowest (MHz)",
    "sm_mhz_high": "SM clock, highest (MHz)",
    "celsius": "Temperature (°C)",
    "flops": "Operations of a call",
    "gflop_per_s": "GFLOP/s",
    "peak_gflop_per_s": "FP32 peak of the card (GFLOP/s)",
    "share_of_fp32_peak": "Share of the FP32 peak",
    "bytes": "Bytes a call must move at least",
    "gb_per_s": "GB/s at that least traffic",
    "peak_gbps": "Memory bandwidth of the card (GB/s)",
    "share_of_peak_bandwidth": "Share of the memory bandwidth",
    "host_readable": "Device code can read host memory",
}


class Rung(NamedTuple):
    """A row of the ladder. kind: a class of the style sheet (base, gate, shipped, user, ceiling). share: of the FP32 peak."""

    title: str
    kind: str
    speedup: float
    low: float | None
    high: float | None
    ms: float
    share: float | None


class Ladder(NamedTuple):
    """Rungs, slowest first. `top`: the speedup at the right end of the axis, which begins at 0."""

    rungs: list[Rung]
    top: float
    gate: float | None
    peak: float | None

    def place(self, speedup: float) -> float:
        """Where a speedup stands on an axis of length 200."""
        return round(200 * min(speedup / self.top, 1.0), 2)


def calibration_of(stage: Stage | None, gpu: str | None) -> Calibration | None:
    """What the stage's own files reach on a GPU model, where somebody has measured it."""
    return next((each for each in readable(stage) if each.gpu == gpu), None) if stage else None


def ladder(timing: Timing, known: Calibration | None = None) -> Ladder:
    """The submission between the baseline and the FP32 ceiling, among what the stage ships.

    The ceiling is where the same operations at the card's FP32 peak would end: user_ms times the share of the peak.
    """
    share = timing.facts.get("share_of_fp32_peak")
    share = float(share) if isinstance(share, int | float) and 0 < share <= 1 else None
    unit = share / timing.speedup if share else None  # the baseline's own share of the peak

    def rung(title: str, kind: str, speedup: float, low: float | None = None, high: float | None = None) -> Rung:
        return Rung(title, kind, speedup, low, high, timing.baseline_ms / speedup, unit * speedup if unit else None)

    found = [rung("Baseline", "base", 1.0), *shipped(known, rung)]
    found.append(rung("Yours", "user", timing.speedup, timing.speedup_low, timing.speedup_high))
    if timing.gate:
        found.append(rung("Gate", "gate", timing.gate))
    if unit:
        found.append(rung("FP32 peak of the card", "ceiling", 1 / unit))
    found.sort(key=lambda each: each.speedup)
    gflops = timing.facts.get("gflop_per_s")
    peak = float(gflops) / share if share and isinstance(gflops, int | float) else None
    return Ladder(found, 1.02 * max(each.speedup for each in found), timing.gate, peak)


def shipped(known: Calibration | None, rung: Callable[..., Rung]) -> Iterable[Rung]:
    """The starter and the solution as they were measured on the same model."""
    for row in known.rows if known else ():
        if row.role in ("starter", "solution"):
            yield rung(f"The stage’s {row.role}", "shipped", row.speedup, row.speedup_low, row.speedup_high)


class Strip(NamedTuple):
    """One series of raw samples on its own scale: points of a WIDTH × HEIGHT drawing; milliseconds at its edges."""

    title: str
    kind: str
    points: list[tuple[float, float]]
    low: float
    high: float
    median_y: float

    @property
    def spread(self) -> float:
        """Highest minus lowest, as a share of their mean."""
        return (self.high - self.low) / ((self.high + self.low) / 2)


def strips(timing: Timing) -> list[Strip]:
    """Baseline and submission in the order the samples were taken; empty where none were stored."""
    if not timing.baseline_samples_ms or not timing.user_samples_ms:
        return []
    return [
        _strip("Baseline", "base", timing.baseline_samples_ms, timing.baseline_ms),
        _strip("Yours", "user", timing.user_samples_ms, timing.user_ms),
    ]


def _strip(title: str, kind: str, values: tuple[float, ...], median: float) -> Strip:
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    kept = values[:: max(1, len(values) // SAMPLES_SHOWN)]
    step = WIDTH / len(kept)

    def height(value: float) -> float:
        return round(HEIGHT - 5 - (HEIGHT - 10) * (value - low) / span, 1)

    points = [(round((place + 0.5) * step, 1), height(value)) for place, value in enumerate(kept)]
    return Strip(title, kind, points, low, high, min(max(height(median), 0.0), HEIGHT))


def facts(timing: Timing) -> list[tuple[str, float | str]]:
    """Conditions of the measurement with words for their names; those nobody named keep their own."""
    order = [*_FACTS, *(name for name in timing.facts if name not in _FACTS)]
    return [(_FACTS.get(name) or _words(name), timing.facts[name]) for name in order if name in timing.facts]


def _words(name: str) -> str:
    return re.sub(r"_+", " ", name)
