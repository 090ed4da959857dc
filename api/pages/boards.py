"""What a board shows beside its rows: marks to compare with, the axis of its intervals, and how the places are spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from api.leaderboard import Entry
from api.pages.speed import calibration_of
from api.schemas import LeaderboardRow
from kernelgate.stages import Stage

BINS = 40
_ATTEMPTS_SHOWN = 12


class Mark(NamedTuple):
    """A row that is nobody's: baseline, gate, what the stage ships, FP32 ceiling. `kind`: a class of the style sheet."""

    title: str
    kind: str
    speedup: float
    speedup_low: float | None = None
    speedup_high: float | None = None
    user_ms: float | None = None


def marks_of(stage: Stage, gpu: str | None) -> list[Mark]:
    """The marks of a speedup board, the fastest first; without a calibration of the model only the baseline and the gate."""
    found = [Mark("Baseline", "base", 1.0)]
    if stage.spec.gate:
        found.append(Mark("Gate", "gate", stage.spec.gate.speedup))
    known = calibration_of(stage, gpu)
    for row in known.rows if known else ():
        if row.role in ("starter", "solution"):
            title = f"The stage’s {row.role}"
            found.append(Mark(title, "shipped", row.speedup, row.speedup_low, row.speedup_high, row.user_ms))
    best = known.best if known else None
    if best is not None and best.share_of_fp32_peak:
        ceiling = best.speedup / best.share_of_fp32_peak
        found.append(Mark("FP32 peak of the card", "ceiling", ceiling, user_ms=best.user_ms * best.share_of_fp32_peak))
    return sorted(found, key=lambda mark: -mark.speedup)


def placed(
    rows: Sequence[LeaderboardRow], marks: Sequence[Mark], places: Sequence[Entry], offset: int
) -> list[LeaderboardRow | Mark]:
    """The page's rows with the marks that belong between them: each before the first place of the board that is slower."""
    shown: dict[int, list[Mark]] = {}
    for mark in marks:
        at = next((place for place, entry in enumerate(places) if (entry.speedup or 0.0) < mark.speedup), len(places))
        last = offset + len(rows) == len(places) and at == len(places)
        if offset <= at < offset + len(rows) or last:
            shown.setdefault(at - offset, []).append(mark)
    found: list[LeaderboardRow | Mark] = []
    for place, row in enumerate(rows):
        found += [*shown.get(place, ()), row]
    return found + shown.get(len(rows), [])


class Scale(NamedTuple):
    """The axis of the drawn intervals: speedups at its left and right edge."""

    low: float
    high: float

    def place(self, speedup: float) -> float:
        """Where a speedup stands on an axis of length 200; what lies beyond stands at its end."""
        return round(min(max(200 * (speedup - self.low) / (self.high - self.low), 0.0), 200.0), 1)


def scale_of(rows: Sequence[LeaderboardRow], marks: Sequence[Mark]) -> Scale:
    """From a little below the slowest row of the page or the gate to a little above the fastest row."""
    ends = [end for row in rows for end in (row.speedup_low, row.speedup, row.speedup_high) if end is not None]
    ends += [mark.speedup for mark in marks if mark.kind == "gate"]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    margin = 0.04 * (high - low) or 0.05 * high or 1.0
    return Scale(low - margin, high + margin)


class Bar(NamedTuple):
    """A column of a histogram, in percent of the drawing; `mine`: the viewer is in it."""

    x: float
    width: float
    height: float
    places: int
    label: str
    mine: bool


class Histogram(NamedTuple):
    """How places are spread. gate_x: where the gate stands, in percent. ends: what stands at the axis' ends."""

    title: str
    bars: list[Bar]
    gate_x: float | None
    ends: tuple[str, str]
    words: str


def by_speedup(places: Sequence[Entry], handle: str, gate: float | None) -> Histogram | None:
    """Counts of speedups in BINS columns of equal width; None for fewer than three places, which need no picture."""
    values = [each.speedup for each in places if each.speedup is not None]
    if len(values) < 3:
        return None
    low, high = min([*values, gate or values[0]]), max(values)
    span = (high - low) or 1.0
    bins: list[list[Entry]] = [[] for _ in range(BINS)]
    for each in places:
        if each.speedup is not None:
            bins[min(int((each.speedup - low) / span * BINS), BINS - 1)].append(each)
    edges = [low + span * place / BINS for place in range(BINS + 1)]
    labels = [f"{edges[place]:.2f}× to {edges[place + 1]:.2f}×" for place in range(BINS)]
    middle = sorted(values)[len(values) // 2]
    words = f"median {middle:.2f}×, fastest {high:.2f}×"
    at = None if gate is None else round(100 * (gate - low) / span, 2)
    return Histogram("How fast everyone is", _bars(bins, labels, handle), at, (f"{low:.2f}×", f"{high:.2f}×"), words)


def by_attempts(places: Sequence[Entry], handle: str) -> Histogram | None:
    """Counts of graded submissions up to the first accepted one; the last column holds everything beyond."""
    if len(places) < 3:
        return None
    most = max(each.attempts for each in places)
    columns = min(max(most, 6), _ATTEMPTS_SHOWN)
    bins: list[list[Entry]] = [[] for _ in range(columns)]
    for each in places:
        bins[min(max(each.attempts, 1), columns) - 1].append(each)
    beyond = " and more" if most > columns else ""
    labels = [f"{place} attempt{'s' if place > 1 else ''}" for place in range(1, columns)]
    labels.append(f"{columns} attempts{beyond}")
    words = f"{len(bins[0])} of {len(places)} with the first attempt"
    ends = ("1 attempt", f"{columns}{beyond}")
    return Histogram("How many attempts it took", _bars(bins, labels, handle), None, ends, words)


def _bars(bins: Sequence[Sequence[Entry]], labels: Sequence[str], handle: str) -> list[Bar]:
    most, width = max(len(found) for found in bins), 100 / len(bins)
    return [
        Bar(round(place * width, 3), round(width * 0.86, 3), round(100 * len(found) / most, 2), len(found), label,
            bool(handle) and any(each.user == handle for each in found))
        for place, (found, label) in enumerate(zip(bins, labels, strict=True))
        if found
    ]  # fmt: skip
