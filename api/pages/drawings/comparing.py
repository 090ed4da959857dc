"""Two gradings of one stage side by side: how each ended, and what changed in its times and resources."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from kernelgate.protocol import Result, Timing
from kernelgate.text import line


class Graded(NamedTuple):
    """One of the two. `result` is None while there is none."""

    id: str
    created_at: datetime
    verdict: str | None
    result: Result | None


class Delta(NamedTuple):
    """A row: both values as text, and the change in words, "" for none. better: True, False, or None where neither is."""

    name: str
    before: str
    after: str
    change: str
    better: bool | None


class Compared(NamedTuple):
    before: Graded
    after: Graded
    rows: list[Delta]


def compared(before: Graded, after: Graded) -> Compared:
    rows = [*_right(before.result, after.result), *_times(before.result, after.result)]
    return Compared(before, after, [*rows, *_resources(before.result, after.result)])


def _right(before: Result | None, after: Result | None) -> Iterator[Delta]:
    """As a difference: of a count, a share says nothing."""
    for row in _delta("Cases right", _count(before), _count(after), "{:.0f}", more_is_better=True):
        yield row._replace(change=f"{int(row.after) - int(row.before):+d}".replace("-", "−")) if row.change else row


def _count(result: Result | None) -> int | None:
    return sum(case.state == "right" for case in result.cases) if result and result.cases else None


def _times(before: Result | None, after: Result | None) -> Iterator[Delta]:
    old, new = (each.timing if each else None for each in (before, after))
    pairs = [("Time", "user_ms", "{:.4f} ms", False), ("Baseline", "baseline_ms", "{:.4f} ms", None)]
    for title, name, form, more in [*pairs, ("Speedup", "speedup", "{:.3f}×", True)]:
        yield from _delta(title, getattr(old, name, None), getattr(new, name, None), form, more_is_better=more)
    yield from _delta("Share of the FP32 peak", _percent(old), _percent(new), "{:.1f} %", more_is_better=True)


def _percent(timing: Timing | None) -> float | None:
    share = timing.facts.get("share_of_fp32_peak") if timing else None
    return 100 * share if isinstance(share, int | float) else None


def _resources(before: Result | None, after: Result | None) -> Iterator[Delta]:
    """Kernel by kernel, by name; one that only one of the two has is compared with nothing."""
    old, new = ({kernel.kernel: kernel for kernel in each.resources} if each else {} for each in (before, after))
    for name in [*old, *(name for name in new if name not in old)][:20]:
        for title, field, form in (
            ("registers", "registers", "{:.0f}"),
            ("spilled bytes", "spill_bytes", "{:,.0f}"),
            ("shared bytes", "shared_bytes", "{:,.0f}"),
            ("occupancy", "occupancy", "{:.0%}"),
        ):
            values = getattr(old.get(name), field, None), getattr(new.get(name), field, None)
            better = False if field == "spill_bytes" else None
            yield from _delta(f"{line(name, 60)}: {title}", values[0], values[1], form, more_is_better=better)


def _delta(
    name: str, before: float | None, after: float | None, form: str, *, more_is_better: bool | None
) -> Iterator[Delta]:
    """One row, or none where neither has the value. `more_is_better` None: a change is neither."""
    if before is None and after is None:
        return
    old, new = ("–" if value is None else form.format(value) for value in (before, after))
    if before is None or after is None or old == new:
        yield Delta(name, old, new, "", None)
        return
    share = f"{100 * (after - before) / before:+.1f} %" if before else "from none"
    if share in ("+0.0 %", "-0.0 %"):
        share = "under 0.1 %"
    better = None if more_is_better is None else (after > before) == more_is_better
    yield Delta(name, old, new, share.replace("-", "−"), better)
