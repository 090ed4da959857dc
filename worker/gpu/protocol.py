"""What a worker and a player say to each other: an order is answered by one message of the kind named beside it.

A player (`python -m worker.bench`) is a process with a CUDA context and one side's device code: the submission's, or the
baseline's. It runs what it is ordered to run. It holds no expected value, no other side's code and no clock that counts:
what a submission's player says of time and values is checked by the worker (worker/gpu/measurement.py).

| order | answer | what is done |
|---|---|---|
| Examine | Well | looks at the card again |
| LoadModule | Loaded | loads a cubin |
| RunCase | CaseResult | runs a tape once on given inputs |
| Hold, HoldTorch | Held | maps what timed calls need and makes their graphs |
| Stage | Staged | refills everything that can be written and uploads the masked inputs of the next bracket |
| Attend | Attending | makes this context the one that the card last worked for, and waits for the start without sleeping |
| Start | Done | unmasks, sweeps and runs the calls of a bracket |
| Collect | Collected | compares what had to stay as it was, and hands the outputs over |
| TimeAlone | Timed | times a held comparison that is no side of a measurement |

Instead of its answer an order may get `Ended`: the process says why and serves no further order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from worker.recording.placement import Buffer

Buffers = Mapping[str, Buffer]


@dataclass(frozen=True)
class Examine:
    """Whether a test kernel computes what it should, and memory is free."""

    kind: ClassVar[str] = "examine"


@dataclass(frozen=True)
class LoadModule:
    """The payload is a cubin. prefix: stands before its kernels' names, where several are loaded. trusted: ours."""

    kind: ClassVar[str] = "load_module"
    prefix: str = ""
    trusted: bool = False


@dataclass(frozen=True)
class RunCase:
    """The payload is a tape of `tape` bytes and then the inputs, in the order of `buffers`. within_s: for the kernels."""

    kind: ClassVar[str] = "run_case"
    buffers: Buffers
    tape: int
    within_s: float


@dataclass(frozen=True)
class TimedCall:
    """One call of a bracket: its memory, the bytes of its tape, and where its inputs and outputs lie in the arena."""

    buffers: Buffers
    tape: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


@dataclass(frozen=True)
class Hold:
    """The payload is the tapes of all calls, in their order. name: of the bracket, for later orders."""

    kind: ClassVar[str] = "hold"
    name: str
    calls: tuple[TimedCall, ...]
    within_s: float


@dataclass(frozen=True)
class HoldTorch:
    """A stage's baseline.py as a side, whose text is the payload. which: a computation beside it in place of `function`.

    calls: as of Hold, without tapes; what is written has no buffer there. params: the case's; dtypes, shapes: of its inputs.
    """

    kind: ClassVar[str] = "hold_torch"
    name: str
    calls: tuple[TimedCall, ...]
    function: str
    which: str
    dtypes: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    params: Mapping[str, object]
    within_s: float


@dataclass(frozen=True)
class Stage:
    """The arena holds the masked inputs of every call of the next bracket."""

    kind: ClassVar[str] = "stage"
    name: str


@dataclass(frozen=True)
class Attend:
    """A start is about to come."""

    kind: ClassVar[str] = "attend"
    name: str


@dataclass(frozen=True)
class Start:
    """The payload is 16 bytes for each call: the key of its inputs' mask."""

    kind: ClassVar[str] = "start"
    name: str


@dataclass(frozen=True)
class Collect:
    """After a bracket."""

    kind: ClassVar[str] = "collect"
    name: str


@dataclass(frozen=True)
class TimeAlone:
    """Times the first call of a bracket `times` times by events, on what lies in its inputs; nothing is compared."""

    kind: ClassVar[str] = "time_alone"
    name: str
    times: int


@dataclass(frozen=True)
class Ready:
    """The first message: the card and this process. capability: (major, minor). attributes: CUDA's, by number.

    clock_hz: the highest SM clock. fp32_peak: operations, bandwidth_peak: bytes, both a second and at best.
    """

    kind: ClassVar[str] = "ready"
    name: str
    memory: int
    driver: int
    attributes: Mapping[str, int]
    capability: tuple[int, int]
    host_readable: bool
    clock_hz: float
    fp32_peak: float
    bandwidth_peak: float
    process: int
    strangers: tuple[str, ...]


@dataclass(frozen=True)
class Well:
    """strangers: programs of others that compute on the card."""

    kind: ClassVar[str] = "well"
    strangers: tuple[str, ...]


@dataclass(frozen=True)
class Loaded:
    """The module's kernels can be launched."""

    kind: ClassVar[str] = "loaded"


@dataclass(frozen=True)
class CaseResult:
    """The payload is what was written, in the order of the buffers. ms: by events. printed: bytes that device code printed.

    changed, strayed: inputs that are not what they were, and buffers beside which something was written. occupancy: by
    kernel, 0 to 1. peak: bytes of device memory that the call took.
    """

    kind: ClassVar[str] = "case_result"
    ms: float
    changed: tuple[str, ...]
    strayed: tuple[str, ...]
    occupancy: Mapping[str, float]
    peak: int
    printed: int


@dataclass(frozen=True)
class Held:
    """facts: what a side that is not a tape says of itself."""

    kind: ClassVar[str] = "held"
    facts: Mapping[str, str | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Staged:
    """The next bracket may start."""

    kind: ClassVar[str] = "staged"


@dataclass(frozen=True)
class Attending:
    """The player waits for the order to start."""

    kind: ClassVar[str] = "attending"


@dataclass(frozen=True)
class Done:
    """The payload is 8 bytes for each output of each call: the root of its hash tree. ns: the bracket by the player's clock."""

    kind: ClassVar[str] = "done"
    ns: int


@dataclass(frozen=True)
class Collected:
    """The outputs lie in the arena. ms: of each call, by events. changed, strayed: as in CaseResult, the first of any
    call.
    """

    kind: ClassVar[str] = "collected"
    ms: tuple[float, ...]
    changed: str
    strayed: str
    sm_mhz: int
    celsius: int
    slowed: str


@dataclass(frozen=True)
class Timed:
    """Milliseconds of each time."""

    kind: ClassVar[str] = "timed"
    ms: tuple[float, ...]


@dataclass(frozen=True)
class Ended:
    """why: `time_limit`, `fault` (name: CUDA's error), `refused`, `address_taken`, `no_torch`, or `broken` (ours)."""

    kind: ClassVar[str] = "ended"
    why: str
    what: str = ""
    name: str = ""


Order = Examine | LoadModule | RunCase | Hold | HoldTorch | Stage | Attend | Start | Collect | TimeAlone
Answer = Ready | Well | Loaded | CaseResult | Held | Staged | Attending | Done | Collected | Timed | Ended
_KINDS: dict[str, type[Any]] = {
    each.kind: each
    for each in (
        *(Examine, LoadModule, RunCase, Hold, HoldTorch, Stage, Attend, Start, Collect, TimeAlone),
        *(Ready, Well, Loaded, CaseResult, Held, Staged, Attending, Done, Collected, Timed, Ended),
    )
}


def header(message: Order | Answer) -> dict[str, object]:
    """A message as the header of a frame."""
    return {"kind": message.kind, **asdict(message)}


def message(header: Mapping[str, Any]) -> Any:
    """The message in a header. Raises ValueError, KeyError or TypeError for what is none."""
    fields = {name: value for name, value in header.items() if name not in ("kind", "bytes")}
    if "buffers" in fields:
        fields["buffers"] = _buffers(fields["buffers"])
    if "calls" in fields:
        fields["calls"] = tuple(TimedCall(**{**call, "buffers": _buffers(call["buffers"])}) for call in fields["calls"])
    for name in ("ms", "changed", "strayed", "capability", "strangers"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    return _KINDS[header["kind"]](**fields)


def _buffers(listed: Mapping[str, Mapping[str, Any]]) -> dict[str, Buffer]:
    return {name: Buffer(**fields) for name, fields in listed.items()}
