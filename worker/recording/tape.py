"""The tape of one seam call, as the trusted side reads it: strict in form, bounded in size, and turned into a graph.

The recorder runs beside submitted code, so a tape may hold anything. Accepted are the entries of `docs/tape.md`, with every
number in its range and every address inside memory that the submission was given. What order the entries have to run in is
worked out here from their streams and events, as CUDA defines it: a stream keeps its order; the default stream waits for all
blocking streams and they for it; a waited-for event joins what came before its record; what the host waited for precedes
everything later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from worker.recording.entries import (
    MAX_TAPE,
    Copy,
    Entry,
    Fill,
    MemoryWork,
    Upload,
    memory_work,
    number,
    numbers,
    spans,
    text,
    triple,
)
from worker.recording.placement import Buffer

MAX_ENTRIES = 20_000
MAX_ARGUMENTS = 32 * 1024
MAX_DESCRIPTORS = 1000
MAX_RANK = 5
DESCRIPTOR_BYTES = 128
MAX_VARIABLES = 512
MAX_EDGES = 400_000
"""How often an entry may follow another, over a whole tape: without a bound, 20,000 entries could name 200 million."""
DEFAULT, GIVEN = 0, 1
SYMBOLS = range(0x5A00_0000_0000, 0x5B00_0000_0000)
UINT32 = range(1 << 32)


class MalformedTapeError(ValueError):
    """A tape that is not as the recorder writes it; the text says where."""


class UnjoinedError(ValueError):
    """Work on a stream that the given stream never waits for: the kernel's name, or "copy" and the like, and the stream."""

    def __init__(self, work: str, stream: int) -> None:
        super().__init__(f"{work} on stream {stream} is never waited for")
        self.work = work
        self.stream = stream


@dataclass(frozen=True)
class Launch:
    """One kernel launch. arguments: the whole parameter block. cluster: blocks a cluster, or None."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: bytes
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False


Work = Launch | Fill | Copy | Upload


@dataclass(frozen=True)
class Descriptor:
    """The arguments of one cuTensorMapEncodeTiled, in its own order; sizes, strides (bytes), box and steps innermost first."""

    type: int
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: int
    swizzle: int
    promotion: int
    fill: int


@dataclass(frozen=True)
class Node:
    """One piece of work and the nodes that must have ended before it starts."""

    work: Work
    after: tuple[int, ...]


@dataclass(frozen=True)
class Violation:
    """The recorder's word that the contract is broken: reason, call, detail, and bytes where the call asked for some."""

    reason: str
    call: str
    detail: str
    size: int


@dataclass
class Tape:
    """One recorded call. variables: name → (stand-in address, bytes). shared_limits: kernel → dynamic shared memory.

    descriptors: the 128 bytes that stand for a TMA descriptor in arguments and uploads → what it describes.
    """

    nodes: list[Node] = field(default_factory=list)
    variables: dict[str, tuple[int, int]] = field(default_factory=dict)
    descriptors: dict[bytes, Descriptor] = field(default_factory=dict)
    shared_limits: dict[str, int] = field(default_factory=dict)
    carveouts: dict[str, int] = field(default_factory=dict)
    last_error: str | None = None
    violation: Violation | None = None
    failure: tuple[str, str] | None = None
    raw: bytes = b""

    @property
    def launches(self) -> int:
        return sum(isinstance(node.work, Launch) for node in self.nodes)


MAX_DYNAMIC_SHARED, CARVEOUT = 8, 9


def read_tape(data: bytes, buffers: Mapping[str, Buffer]) -> Tape:
    """Parses one tape. Raises MalformedTapeError for its form and UnjoinedError for work that nothing waits for."""
    if len(data) > MAX_TAPE:
        raise MalformedTapeError(f"{len(data)} bytes; at most {MAX_TAPE}")
    lines = data.decode("ascii", errors="replace").splitlines()
    if len(lines) > MAX_ENTRIES:
        raise MalformedTapeError(f"{len(lines)} entries; at most {MAX_ENTRIES}")
    reader = _Reader(buffers)
    reader.tape.raw = data
    for at, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise TypeError("no object")
            if reader.take(entry):
                return reader.finish()
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            if isinstance(error, UnjoinedError):
                raise
            raise MalformedTapeError(f"entry {at}: {type(error).__name__}: {str(error)[:200]}") from error
    raise MalformedTapeError("it has no end")


class _Reader:
    """Takes entries one by one and keeps, for each stream, the nodes that its next piece of work has to follow."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self.tape = Tape()
        self.spans = [(buffer.address, buffer.address + buffer.size) for buffer in buffers.values()]
        self.streams: dict[int, frozenset[int]] = {DEFAULT: frozenset(), GIVEN: frozenset()}
        self.nonblocking: set[int] = set()
        self.events: dict[int, frozenset[int]] = {}
        self.host: frozenset[int] = frozenset()
        self.stream_of: list[int] = []
        self.edges = 0

    def take(self, entry: Entry) -> bool:
        """Reads one entry; True when it is the last one."""
        op = text(entry, "op", 40)
        if op in ("end", "violation", "failed"):
            self._ending(op, entry)
            return True
        if op in _WORK:
            self._add(_WORK[op](self, entry), number(entry, "stream", range(-1, 2000)))
        else:
            _ORDER[op](self, entry)
        return False

    def finish(self) -> Tape:
        if self.tape.violation is None and self.tape.failure is None:
            self._check_joined()
        return self.tape

    def _ending(self, op: str, entry: Entry) -> None:
        if op == "violation":
            reason, call, detail = (text(entry, key) for key in ("reason", "call", "detail"))
            self.tape.violation = Violation(reason, call, detail, number(entry, "bytes", range(1 << 63)))
        elif op == "failed":
            self.tape.failure = (text(entry, "kind"), text(entry, "what"))

    def _blocking(self) -> list[int]:
        return [stream for stream in self.streams if stream not in self.nonblocking]

    def _before(self, stream: int) -> frozenset[int]:
        own = self.streams.get(stream, frozenset())
        if stream == DEFAULT:
            own = own.union(*(self.streams[other] for other in self._blocking()))
        elif stream not in self.nonblocking:
            own |= self.streams[DEFAULT]
        before = own | self.host
        self.edges += len(before)
        if self.edges > MAX_EDGES:
            raise ValueError(f"streams and events tie the work together in more than {MAX_EDGES} ways")
        return before

    def _add(self, work: Work, stream: int) -> None:
        index = len(self.tape.nodes)
        self.tape.nodes.append(Node(work, tuple(sorted(self._before(stream)))))
        self.stream_of.append(stream)
        if stream == DEFAULT:  # it follows the blocking streams and they follow it: it stands for all they hold
            for other in self._blocking():
                del self.streams[other]
            self.streams[GIVEN] = frozenset()
        self.streams[stream] = frozenset({index})

    def _host_waited(self, nodes: frozenset[int]) -> None:
        """The host has waited for `nodes`; what these follow needs no mention any more."""
        followed = {earlier for node in nodes for earlier in self.tape.nodes[node].after}
        self.host = (nodes | self.host) - followed

    def _check_joined(self) -> None:
        reached: set[int] = set()
        waiting = [*self._before(GIVEN), *self.streams[DEFAULT]]
        while waiting:
            index = waiting.pop()
            if index not in reached:
                reached.add(index)
                waiting += self.tape.nodes[index].after
        for index, node in enumerate(self.tape.nodes):
            if index not in reached:
                what = node.work.kernel if isinstance(node.work, Launch) else type(node.work).__name__.lower()
                raise UnjoinedError(what, self.stream_of[index])

    def _launch(self, entry: Entry) -> Launch:
        arguments = bytes.fromhex(text(entry, "arguments", 2 * MAX_ARGUMENTS))
        cluster = triple(entry["cluster"], range(1, 65)) if "cluster" in entry else None
        return Launch(
            kernel=text(entry, "kernel", 4096),
            grid=triple(entry["grid"], range(1, 1 << 31)),
            block=triple(entry["block"], range(1, 1025)),
            shared=number(entry, "shared", range(1 << 20)),
            arguments=arguments,
            cluster=cluster,
            cooperative=entry.get("cooperative") is True,
        )

    def _memory(self, entry: Entry) -> MemoryWork:
        work = memory_work(entry)
        for address, size in spans(work):
            self._inside(address, size)
        return work

    def _inside(self, address: int, size: int) -> int:
        spans = self.spans + [(at, at + length) for at, length in self.tape.variables.values()]
        if not any(start <= address and address + size <= end for start, end in spans):
            raise ValueError(f"{size} bytes at {address:#x} lie in no buffer that the seam was given")
        return address

    def _variable(self, entry: Entry) -> None:
        if len(self.tape.variables) >= MAX_VARIABLES:
            raise ValueError(f"more than {MAX_VARIABLES} variables")
        address = number(entry, "address", SYMBOLS)
        self.tape.variables[text(entry, "name", 4096)] = (address, number(entry, "bytes", range(1 << 40)))

    def _descriptor(self, entry: Entry) -> None:
        token = bytes.fromhex(text(entry, "token", 2 * DESCRIPTOR_BYTES))
        sizes = numbers(entry, "sizes", range(1, (1 << 32) + 1))
        rank = len(sizes)
        if len(token) != DESCRIPTOR_BYTES or not 1 <= rank <= MAX_RANK or len(self.tape.descriptors) >= MAX_DESCRIPTORS:
            raise ValueError(f"{len(token)} bytes, rank {rank}, after {len(self.tape.descriptors)} others")
        strides = numbers(entry, "strides", range(1 << 40))
        box, steps = numbers(entry, "box", range(1, 257)), numbers(entry, "steps", range(1, 9))
        if (len(strides), len(box), len(steps)) != (rank - 1, rank, rank):
            raise ValueError(f"strides, box and steps do not fit rank {rank}")
        self.tape.descriptors[token] = Descriptor(
            type=number(entry, "type", range(32)),
            address=self._inside(number(entry, "address", range(1 << 63)), 1),
            sizes=sizes,
            strides=strides,
            box=box,
            steps=steps,
            interleave=number(entry, "interleave", range(8)),
            swizzle=number(entry, "swizzle", range(16)),
            promotion=number(entry, "promotion", range(8)),
            fill=number(entry, "fill", range(4)),
        )

    def _attribute(self, entry: Entry) -> None:
        kernel, value = text(entry, "kernel", 4096), number(entry, "value", range(-1, 1 << 20))
        which = number(entry, "which", range(64))
        if which == MAX_DYNAMIC_SHARED:
            self.tape.shared_limits[kernel] = max(0, value)
        elif which == CARVEOUT:
            self.tape.carveouts[kernel] = value

    def _nonblocking(self, entry: Entry) -> None:
        self.nonblocking.add(number(entry, "stream", range(2, 2000)))

    def _record(self, entry: Entry) -> None:
        self.events[number(entry, "event", UINT32)] = self._before(number(entry, "stream", range(2000)))

    def _wait(self, entry: Entry) -> None:
        stream = number(entry, "stream", range(2000))
        known = self.events.get(number(entry, "event", UINT32), frozenset())
        self.streams[stream] = self.streams.get(stream, frozenset()) | known

    def _synchronize(self, entry: Entry) -> None:
        stream = number(entry, "stream", range(-1, 2000))
        everything = frozenset[int]().union(*self.streams.values())
        self._host_waited(everything if stream < 0 else self._before(stream))

    def _synchronize_event(self, entry: Entry) -> None:
        self._host_waited(self.events.get(number(entry, "event", UINT32), frozenset()))

    def _last_error(self, entry: Entry) -> None:
        self.tape.last_error = text(entry, "name", 100)


_WORK: dict[str, Callable[[_Reader, Entry], Work]] = {
    "launch": _Reader._launch,
    "fill": _Reader._memory,
    "copy": _Reader._memory,
    "upload": _Reader._memory,
}
_ORDER: dict[str, Callable[[_Reader, Entry], None]] = {
    "variable": _Reader._variable,
    "descriptor": _Reader._descriptor,
    "attribute": _Reader._attribute,
    "nonblocking": _Reader._nonblocking,
    "record": _Reader._record,
    "wait": _Reader._wait,
    "synchronize": _Reader._synchronize,
    "synchronize_event": _Reader._synchronize_event,
    "last_error": _Reader._last_error,
}
