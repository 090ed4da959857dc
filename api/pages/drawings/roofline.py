"""A roofline: how many operations a second the card allows at an arithmetic intensity, and what a submission reaches of it.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures" (2009).
The intensity counts the least bytes that the call must move, every input read once and every output written once, so the
submission and the baseline stand above each other; what they move in fact is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from kernelgate.protocol import Timing

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 74, 24, 16, 44
_LABEL_GAP = 15.0
_UNITS = ((1e6, "PFLOP/s"), (1e3, "TFLOP/s"), (1.0, "GFLOP/s"))


class Point(NamedTuple):
    """A measured speed in the drawing. kind: a class of the style sheet. label_y: where its words stand, clear of others."""

    title: str
    kind: str
    x: float
    y: float
    label_y: float
    words: str


class Tick(NamedTuple):
    """A power of ten on an axis: its place in the drawing and its label."""

    at: float
    label: str


class Roofline(NamedTuple):
    """roof: corners of the line nobody gets above. ridge: the intensity where the two roofs meet, with its place, where both
    are known. words: what the drawing says."""

    roof: list[tuple[float, float]]
    memory: str | None
    peak: str | None
    ridge: tuple[float, str] | None
    points: list[Point]
    across: list[Tick]
    up: list[Tick]
    words: str


class _Facts(NamedTuple):
    """intensity: FLOP per byte. reached: GFLOP/s of the submission. peak: GFLOP/s of the card. bandwidth: its GB/s."""

    intensity: float
    reached: float
    peak: float | None
    bandwidth: float | None

    @property
    def ridge(self) -> float | None:
        return self.peak / self.bandwidth if self.peak and self.bandwidth else None

    def roof(self, intensity: float) -> float:
        return min(self.peak or math.inf, intensity * self.bandwidth if self.bandwidth else math.inf)


class _Axes(NamedTuple):
    """Powers of ten at the edges of the drawing."""

    left: float
    right: float
    low: float
    high: float

    def x(self, intensity: float) -> float:
        share = (math.log10(intensity) - self.left) / (self.right - self.left)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, speed: float) -> float:
        share = (math.log10(speed) - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def roofline(timing: Timing) -> Roofline | None:
    """The drawing, or None where the operations, the bytes or every roof is unknown."""
    known = _facts_of(timing)
    if known is None:
        return None
    speeds = [("Baseline", "base", known.reached / timing.speedup), ("Yours", "user", known.reached)]
    if timing.gate:
        speeds.append(("Gate", "gate", known.reached / timing.speedup * timing.gate))
    axes = _axes(known, [speed for _, _, speed in speeds])
    corners = [known.ridge] if known.ridge else []
    edges = [10**axes.left, *corners, 10**axes.right]
    low, high = 10**axes.low, 10**axes.high
    if known.bandwidth:  # where the slope enters and leaves the drawing
        edges[0] = max(edges[0], low / known.bandwidth)
        edges[-1] = edges[-1] if known.peak else min(edges[-1], high / known.bandwidth)
    return Roofline(
        roof=[(axes.x(each), axes.y(known.roof(each))) for each in edges],
        memory=f"memory {_bandwidth(known.bandwidth)}" if known.bandwidth else None,
        peak=f"FP32 {_speed(known.peak)}" if known.peak else None,
        ridge=(axes.x(known.ridge), f"{known.ridge:.3g}") if known.ridge else None,
        points=_points(known, axes, speeds),
        across=[Tick(axes.x(10**power), _power(power)) for power in range(int(axes.left), int(axes.right) + 1)],
        up=[Tick(axes.y(10**power), _speed(10**power)) for power in range(int(axes.low), int(axes.high) + 1)],
        words=_words(known, timing),
    )


def _facts_of(timing: Timing) -> _Facts | None:
    flops, moved, reached, peak, bandwidth = (
        _positive(timing.facts.get(name)) for name in ("flops", "bytes", "gflop_per_s", "peak_gflop_per_s", "peak_gbps")
    )
    if flops is None or moved is None or reached is None or (peak is None and bandwidth is None):
        return None
    return _Facts(flops / moved, reached, peak, bandwidth)


def _positive(value: object) -> float | None:
    good = isinstance(value, int | float) and math.isfinite(value) and value > 0
    return float(value) if good and isinstance(value, int | float) else None


def _axes(known: _Facts, speeds: Iterable[float]) -> _Axes:
    """At least a power of ten around everything that is drawn, from one power of ten to another."""
    across = [known.intensity, *([known.ridge] if known.ridge else [])]
    top = max(known.peak or 0.0, known.roof(known.intensity), *speeds)
    low = math.floor(math.log10(min(speeds)) - 0.2)
    return _Axes(
        math.floor(math.log10(min(across)) - 0.5), math.ceil(math.log10(max(across)) + 0.5),
        low, max(math.ceil(math.log10(top) + 0.1), low + 1),
    )  # fmt: skip


def _points(known: _Facts, axes: _Axes, speeds: list[tuple[str, str, float]]) -> list[Point]:
    """From the top down; a label is moved down as far as the one above it needs."""
    found: list[Point] = []
    for title, kind, speed in sorted(speeds, key=lambda each: -each[2]):
        y = axes.y(speed)
        label = max(y, found[-1].label_y + _LABEL_GAP) if found else y
        found.append(Point(title, kind, axes.x(known.intensity), y, round(label, 1), f"{title} {_speed(speed)}"))
    return found


def _words(known: _Facts, timing: Timing) -> str:
    roof = known.roof(known.intensity)
    share, base = known.reached / roof, known.reached / timing.speedup / roof
    by_memory = known.peak is None or (known.ridge is not None and known.intensity < known.ridge)
    bound = "memory’s" if by_memory else "FP32"
    side = f", {'left' if by_memory else 'right'} of the ridge at {known.ridge:.3g}" if known.ridge else ""
    return (
        f"{known.intensity:.3g} operations for each byte that must be moved{side}: the {bound} roof counts, "
        f"{_speed(roof)}. Yours reaches {100 * share:.1f} % of it, the baseline {100 * base:.1f} %."
    )


def _speed(gflops: float | None) -> str:
    size, unit = next((each for each in _UNITS if (gflops or 0.0) >= each[0]), _UNITS[-1])
    return f"{(gflops or 0.0) / size:.3g} {unit}"


def _bandwidth(gbps: float) -> str:
    return f"{gbps / 1000:.3g} TB/s" if gbps >= 1000 else f"{gbps:.3g} GB/s"


def _power(power: int) -> str:
    return f"{10.0**power:,.{max(-power, 0)}f}"
