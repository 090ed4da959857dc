"""The health of each GPU for those who look after the service: what its worker last said, as meters and words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from api.schemas import WorkerView
from kernelgate.text import line

_ORDER = ("bad", "near", "good")
_HOT = 85
"""Degrees Celsius above which data-centre cards begin to hold their clocks down."""


class Meter(NamedTuple):
    """A gauge. share: of its full scale; high: the share from which it is worth a look."""

    title: str
    words: str
    share: float
    high: float


class Gpu(NamedTuple):
    """A card. why: why it takes no work, "" while it does; since: when that was found. facts: what has no scale."""

    name: str
    worker: str
    live: bool
    why: str
    since: datetime | None
    looked_at: datetime | None
    warning: str
    meters: list[Meter]
    facts: list[tuple[str, str]]

    @property
    def state(self) -> str:
        """good: it takes work; near: it does, and something is worth a look; bad: it takes none."""
        return "bad" if self.why or not self.live else "near" if self.warning else "good"


def gpus(workers: Iterable[WorkerView]) -> list[Gpu]:
    """Every card that a worker reports, what needs a hand first.

    A card of which only the model is known has no gauges; one whose worker is gone is shown as it was last.
    """
    found = []
    for worker in workers:
        reported = worker.health.get("cards") or ([{"name": worker.gpu_model}] if worker.gpu_model else [])
        found += [_gpu(worker, card) for card in reported if isinstance(card, dict)]
    return sorted(found, key=lambda each: (_ORDER.index(each.state), each.worker))


def _gpu(worker: WorkerView, card: dict[str, Any]) -> Gpu:
    why = str(card.get("why") or worker.health.get("card") or ("" if worker.healthy else "its worker is not well"))
    return Gpu(
        name=line(str(card.get("name") or worker.gpu_model or "a GPU"), 80),
        worker=line(worker.name, 80),
        live=worker.live,
        why=line(why, 300),
        since=_moment(card.get("since")),
        looked_at=_moment(card.get("looked_at")),
        warning=_warning(card),
        meters=list(_meters(card)),
        facts=list(_facts(card)),
    )


def _warning(card: dict[str, Any]) -> str:
    errors = _number(card, "uncorrected_errors")
    if errors:
        return f"{errors:,.0f} uncorrected memory error{'s' if errors > 1 else ''} since the driver was loaded"
    slowed = card.get("slowed")
    return f"clocks are held down: {line(str(slowed), 80)}" if slowed else ""


def _meters(card: dict[str, Any]) -> Iterable[Meter]:
    celsius = _number(card, "celsius")
    if celsius is not None:
        yield Meter("Temperature", f"{celsius:.0f} °C", min(celsius / 100, 1.0), _HOT / 100)
    used, memory = _number(card, "memory_used_mib"), _number(card, "memory_mib")
    if used is not None and memory:
        yield Meter("Memory", f"{used / 1024:.1f} of {memory / 1024:.0f} GiB", min(used / memory, 1.0), 0.9)
    clock, highest = _number(card, "sm_mhz"), _number(card, "highest_sm_mhz")
    if clock is not None and highest:
        yield Meter("SM clock", f"{clock:.0f} of {highest:.0f} MHz", min(clock / highest, 1.0), 1.0)


def _facts(card: dict[str, Any]) -> Iterable[tuple[str, str]]:
    watts, programs = _number(card, "watts"), _number(card, "programs")
    if watts is not None:
        yield "Power", f"{watts:.0f} W"
    if programs is not None:
        yield "Programs on it", f"{programs:.0f}"
    for name, title in (("driver", "Driver"), ("bus", "PCI address")):
        if card.get(name):
            yield title, line(str(card[name]), 40)


def _number(card: dict[str, Any], name: str) -> float | None:
    value = card.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
