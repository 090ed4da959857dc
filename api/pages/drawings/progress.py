"""How far a submission is, from its events: what the page shows before the first live event arrives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from api.pages.drawings.converging import Look, look
from kernelgate.protocol import Event, EventKind
from kernelgate.stages import Backend
from kernelgate.verdicts import Phase

TITLES: dict[Phase, tuple[str, str]] = {
    Phase.COMPILE: ("Compile", "Compiling"),
    Phase.RECORD: ("Record", "Recording the launches"),
    Phase.LOAD: ("Load", "Loading your file"),
    Phase.CASES: ("Run cases", "Running the cases"),
    Phase.MEASURE: ("Measure", "Measuring against the baseline"),
    Phase.JUDGE: ("Judge", "Comparing with the reference"),
}
"""What a phase is called, and what is announced when it begins."""


@dataclass
class PhaseView:
    """A phase as it stands. `state` is a class of the style sheet: "" for not begun, now, past; `ms` once it ended."""

    name: Phase
    planned: bool
    state: str = ""
    ms: float | None = None

    @property
    def title(self) -> str:
        return TITLES[self.name][0]

    @property
    def says(self) -> str:
        return TITLES[self.name][1]


@dataclass
class Progress:
    """cases: name → right, wrong or failed. looks: the measurement so far. note: why it went back to the queue, if it did."""

    phases: list[PhaseView]
    cases: dict[str, str] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    note: str = ""

    @property
    def says(self) -> str:
        """What goes on, as it was announced when it began."""
        return next((phase.says for phase in reversed(self.phases) if phase.state == "now"), "Grading")

    @property
    def done(self) -> int:
        return len(self.cases)


def progress(events: Iterable[Event], backends: Sequence[Backend]) -> Progress:
    """The newest attempt's progress: an attempt that was given up leaves nothing behind but its note."""
    planned = backends[0].phases if backends else frozenset(Phase)
    found = _nothing_yet(planned)
    for event in events:
        data = event.data
        if event.kind is EventKind.STATE:
            found = _nothing_yet(planned)
            found.note = str(data.get("note", ""))
        elif event.kind is EventKind.PHASE:
            _enter(found, data)
        elif event.kind is EventKind.CASE:
            found.cases[str(data.get("name"))] = str(data.get("state"))
        elif event.kind is EventKind.MEASURE and (seen := look(data)) is not None:
            found.looks.append(seen)
    return found


def _nothing_yet(planned: Collection[Phase]) -> Progress:
    return Progress([PhaseView(phase, phase in planned) for phase in Phase])


def _enter(found: Progress, data: dict[str, object]) -> None:
    for phase in found.phases:
        if phase.name == data.get("phase"):
            ended = data.get("state") == "ended"
            phase.state = "past" if ended else "now"
            spent = data.get("ms")
            phase.ms = float(spent) if ended and isinstance(spent, int | float) else None
