"""Which attack does each layer alone stop? Each held layer is left out in turn and every probe is run against the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from worker.sandbox import layers
from worker.sandbox.outcome import SandboxError
from worker.sandbox.sandbox import Sandbox

from .probes import PROBES, Probe, attack
from .targets import Targets


@dataclass(frozen=True)
class Row:
    """left_out: a layer, or None for the sandbox as it is. through: the probes that got through, with what they said.
    problem: why it could not be tried, or what the layer took along; else empty."""

    left_out: str | None
    through: dict[str, str]
    problem: str = ""
    tried: bool = True


def ablate(python: Path, uid: int, *, jobs: int = 1, probes: Sequence[Probe] = PROBES) -> Iterator[Row]:
    """First the whole sandbox (nothing should get through), then it without each of its layers. Minutes with one job.

    A layer that others lean on takes them along: its row says so in `problem`. The watchdog is never left out, for a memory
    bomb without it is the host's problem. jobs: how many sandboxes are attacked at once.
    """
    with Sandbox(python=python, uid=uid, minimum="none") as whole:
        held = whole.layers.held
        unstopped = _through(whole, probes)
    yield Row(None, unstopped)
    left_out = [name for name in held if name != layers.WATCHDOG]
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        yield from pool.map(lambda name: _without(name, held, unstopped, python, uid, probes), left_out)


def _without(
    name: str, held: list[str], unstopped: dict[str, str], python: Path, uid: int, probes: Sequence[Probe]
) -> Row:
    try:
        with Sandbox(python=python, uid=uid, minimum="none", without=[name]) as weaker:
            along = [other for other in held if other != name and other not in weaker.layers.held]
            through = {probe: said for probe, said in _through(weaker, probes).items() if probe not in unstopped}
    except SandboxError as error:
        return Row(name, {}, str(error), tried=False)
    return Row(name, through, f"takes along: {', '.join(along)}" if along else "")


def _through(sandbox: Sandbox, probes: Sequence[Probe]) -> dict[str, str]:
    found = {}
    with Targets() as targets:
        for probe in probes:
            outcome = attack(sandbox, probe, targets, warm=True)
            if not outcome.held:
                found[probe.name] = outcome.detail
    return found


def lines(rows: Iterable[Row]) -> Iterator[str]:
    """The table for a terminal, a line for each row as soon as it is known."""
    for row in rows:
        nothing = "nothing" if row.left_out is None else "nothing that another does not stop too"
        what = ", ".join(row.through) or (nothing if row.tried else "could not be tried")
        name = "the whole sandbox" if row.left_out is None else f"without {row.left_out}"
        yield f"{name:28} {what}" + (f" ({row.problem[:300]})" if row.problem else "")
