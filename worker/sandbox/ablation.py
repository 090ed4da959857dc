"""Which attack does each layer alone stop? Each held layer is left out in turn and every probe is run against the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import layers
from .outcome import SandboxError
from .probes import PROBES, attack
from .sandbox import Sandbox
from .targets import Targets


@dataclass(frozen=True)
class Row:
    """left_out: a layer, or None for the sandbox as it is. through: the probes that got through, with what they said.
    problem: why it could not be tried, else empty."""

    left_out: str | None
    through: dict[str, str]
    problem: str = ""


def ablate(python: Path, uid: int) -> Iterator[Row]:
    """First the whole sandbox (nothing should get through), then it without each of its layers. Minutes.

    A layer that others lean on takes them along: its row says so in `problem`. The watchdog is never left out, for a memory
    bomb without it is the host's problem.
    """
    with Sandbox(python=python, uid=uid, minimum="none") as whole:
        held = whole.layers.held
        unstopped = _through(whole)
    yield Row(None, unstopped)
    for name in held:
        if name != layers.WATCHDOG:
            yield _without(name, held, unstopped, python, uid)


def _without(name: str, held: list[str], unstopped: dict[str, str], python: Path, uid: int) -> Row:
    try:
        with Sandbox(python=python, uid=uid, minimum="none", without=[name]) as weaker:
            along = [other for other in held if other != name and other not in weaker.layers.held]
            through = {probe: said for probe, said in _through(weaker).items() if probe not in unstopped}
    except SandboxError as error:
        return Row(name, {}, str(error))
    return Row(name, through, f"takes along: {', '.join(along)}" if along else "")


def _through(sandbox: Sandbox) -> dict[str, str]:
    found = {}
    with Targets() as targets:
        for probe in PROBES:
            outcome = attack(sandbox, probe, targets, warm=True)
            if not outcome.held:
                found[probe.name] = outcome.detail
    return found
