"""A measurement on its way: the interval after each look, narrowing until it is clear of the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

WIDTH, HEIGHT = 600, 110
_SHOWN = 80


class Look(NamedTuple):
    """What is known after `pairs` pairs: the speedup and its 95 % interval."""

    pairs: int
    speedup: float
    low: float
    high: float


class Drawing(NamedTuple):
    """Intervals as (x, top, bottom, middle) of a WIDTH × HEIGHT drawing, the gate's height, and the axis' ends as speedups."""

    marks: list[tuple[float, float, float, float]]
    gate_y: float | None
    gate: float | None
    low: float
    high: float
    last: Look

    @property
    def stands(self) -> str:
        """Where the interval stands against the gate, in words; "" without a gate."""
        if self.gate is None:
            return ""
        if self.last.low > self.gate:
            return "clear above the gate"
        return "clear below the gate" if self.last.high < self.gate else "the gate is still inside the interval"


def look(data: Mapping[str, Any]) -> Look | None:
    """A `measure` event's data; None when it is not one that can be drawn."""
    try:
        found = Look(int(data["pairs"]), float(data["speedup"]), float(data["low"]), float(data["high"]))
    except (KeyError, TypeError, ValueError):
        return None
    return found if 0 < found.low <= found.high < 1e6 else None


def drawing(looks: Sequence[Look], gate: float | None) -> Drawing | None:
    """The newest looks as one picture; None before the first."""
    if not looks:
        return None
    shown = looks[-_SHOWN:]
    ends = [each.low for each in shown] + [each.high for each in shown] + ([gate] if gate else [])
    margin = 0.06 * (max(ends) - min(ends)) or 0.05
    low, high = min(ends) - margin, max(ends) + margin
    right = max(30, shown[-1].pairs)

    def height(speedup: float) -> float:
        return round(HEIGHT * (high - speedup) / (high - low), 1)

    marks = [
        (round((WIDTH - 10) * each.pairs / right, 1), height(each.high), height(each.low), height(each.speedup))
        for each in shown
    ]
    return Drawing(marks, height(gate) if gate else None, gate, low, high, shown[-1])
