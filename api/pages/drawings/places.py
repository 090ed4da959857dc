"""What a board shows beside its rows: marks to compare with, the axis of its intervals, and how the places are spread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakKeyDictionary

from api.leaderboard import Places
from api.pages.drawings.speed import calibration_of
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
    rows: Sequence[LeaderboardRow], marks: Sequence[Mark], places: Places, offset: int
) -> list[LeaderboardRow | Mark]:
    """The page's rows with the marks that belong between them: each before the first place of the board that is slower."""
    shown: dict[int, list[Mark]] = {}
    for mark in marks:
        at = places.first_slower(mark.speedup)
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


class Spread(NamedTuple):
    """A histogram before anybody looks at it.

    columns: the column of each place, None for one without a speedup. counts: how many places each column has.
    """

    title: str
    columns: tuple[int | None, ...]
    counts: tuple[int, ...]
    labels: tuple[str, ...]
    gate_x: float | None
    ends: tuple[str, str]
    words: str

    def seen_by(self, own: Sequence[int]) -> Histogram:
        """The drawing for the one whose places these are."""
        mine = {self.columns[place] for place in own}
        most, width = max(self.counts), 100 / len(self.counts)
        bars = [
            Bar(round(at * width, 3), round(width * 0.86, 3), round(100 * count / most, 2), count, label, at in mine)
            for at, (count, label) in enumerate(zip(self.counts, self.labels, strict=True))
            if count
        ]
        return Histogram(self.title, bars, self.gate_x, self.ends, self.words)


# A board is the same object until anything on it changes, and its spread with it.
_KEPT: WeakKeyDictionary[Places, dict[tuple[bool, float | None], Spread | None]] = WeakKeyDictionary()


def spread(places: Places, *, timed: bool, gate: float | None) -> Spread | None:
    """How the board's places are spread, by speedup or by attempts; None for fewer than three, which need no picture."""
    kept = _KEPT.setdefault(places, {})
    if (timed, gate) not in kept:
        kept[timed, gate] = _by_speedup(places, gate) if timed else _by_attempts(places)
    return kept[timed, gate]


def _by_speedup(places: Places, gate: float | None) -> Spread | None:
    """Counts of speedups in BINS columns of equal width."""
    speedups = [each.speedup for each in places.entries]
    values = sorted(each for each in speedups if each is not None)
    if len(values) < 3:
        return None
    low, high = min(values[0], gate or values[0]), values[-1]
    span = (high - low) or 1.0
    columns = tuple(None if each is None else min(int((each - low) / span * BINS), BINS - 1) for each in speedups)
    edges = [low + span * place / BINS for place in range(BINS + 1)]
    labels = tuple(f"{edges[place]:.2f}× to {edges[place + 1]:.2f}×" for place in range(BINS))
    words = f"median {values[len(values) // 2]:.2f}×, fastest {high:.2f}×"
    at = None if gate is None else round(100 * (gate - low) / span, 2)
    ends = (f"{low:.2f}×", f"{high:.2f}×")
    return Spread("How fast everyone is", columns, _counts(columns, BINS), labels, at, ends, words)


def _by_attempts(places: Places) -> Spread | None:
    """Counts of graded submissions up to the first accepted one; the last column holds everything beyond."""
    if len(places) < 3:
        return None
    attempts = [max(each.attempts, 1) for each in places.entries]
    most = max(attempts)
    count = min(max(most, 6), _ATTEMPTS_SHOWN)
    columns = tuple(min(each, count) - 1 for each in attempts)
    beyond = " and more" if most > count else ""
    labels = [f"{place} attempt{'s' if place > 1 else ''}" for place in range(1, count)]
    labels.append(f"{count} attempts{beyond}")
    words = f"{columns.count(0)} of {len(places)} with the first attempt"
    ends = ("1 attempt", f"{count}{beyond}")
    return Spread("How many attempts it took", columns, _counts(columns, count), tuple(labels), None, ends, words)


def _counts(columns: Sequence[int | None], count: int) -> tuple[int, ...]:
    found = Counter(columns)
    return tuple(found[column] for column in range(count))
