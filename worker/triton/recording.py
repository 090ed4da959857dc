"""Records a Triton submission's host code in the sandbox: what it launches and allocates, without a GPU and without data."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.judging import frames
from worker.judging.driver import driver
from worker.judging.endings import end_failure, failure_of, forged, sandbox_limits
from worker.judging.failures import Failure
from worker.judging.job import Job
from worker.recording.placement import Buffer, Edge, Slots
from worker.recording.record import shuffled
from worker.sandbox import Limits, Session, SessionEnded
from worker.sandbox.program import program
from worker.triton.tape import Kernel, Launch, MalformedRecordingError, Recording, read_recording
from worker.triton.tape import Take as RecordedTake

MAX_PAYLOAD = 64 << 20
ALLOCATIONS = 16
"""Tensors that one call may allocate: so many addresses are drawn for it."""
COMPILER_ERRORS = {"CompilationError", "UnsupportedLanguageConstruct", "CompileTimeAssertionFailure", "PTXASError"}


_KILLED = {-number: number.name for number in signal.Signals}


@dataclass(frozen=True)
class Target:
    """The GPU that kernels are compiled for. capability: 90 for sm_90. properties: what host code may ask about it.

    values_only: compile to Triton's own IR and no further, for interpreting.
    """

    capability: int
    properties: Mapping[str, object]
    values_only: bool


@dataclass(frozen=True)
class Call:
    """One call to be recorded: where its inputs lie, and the addresses of what it may allocate."""

    edge: Edge
    inputs: Mapping[str, Buffer]
    slots: tuple[int, ...]


def call(sizes: Mapping[str, int], edge: Edge, among: Slots | None = None) -> Call:
    """A call with its addresses drawn at random. sizes: bytes of each input. among: of what is mapped at the same time."""
    drawn = (among or Slots()).draw(len(sizes) + ALLOCATIONS)
    inputs = {
        name: Buffer.at(name, mapping, size, edge, written=False)
        for (name, size), mapping in zip(sizes.items(), drawn, strict=False)
    }
    return Call(edge, inputs, tuple(drawn[len(sizes) :]))


@dataclass(frozen=True)
class Order:
    """A case to be recorded, with one call for each place of its memory. shapes, dtypes: of the inputs."""

    case: Case
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Part:
    """Two calls of a case, recorded in a process of their own. Only the first of `calls` beyond a case's judged two is used.

    Every process makes two calls, at the end and at the start of a fence: what is recorded for the clock looks like the rest.
    """

    order: Order
    calls: tuple[Call, Call]

    @property
    def label(self) -> str:
        return f"{self.order.case.name}/{self.order.calls.index(self.calls[0])}"


def parts_of(order: Order) -> list[Part]:
    judged, further = order.calls[:2], order.calls[2:]
    sizes = {name: buffer.size for name, buffer in judged[0].inputs.items()}
    pairs = [(judged[0], judged[1]), *((each, call(sizes, judged[1].edge)) for each in further)]
    return [Part(order, pair) for pair in pairs]


def joined(parts: list[Recording | Failure]) -> Recording | Failure:
    """A case from its parts in order: the judged calls, and of each further part the first. Kernels keep apart by prefix."""
    takes: list[RecordedTake] = []
    kernels: dict[str, Kernel] = {}
    for number, part in enumerate(parts):
        if isinstance(part, Failure) or len(parts) == 1:
            return part
        kernels |= {f"{number}.{key}": replace(each, key=f"{number}.{key}") for key, each in part.kernels.items()}
        takes += [_prefixed(take, number) for take in (part.takes[:1] if number else part.takes)]
    return Recording(tuple(takes), kernels)


def _prefixed(take: RecordedTake, number: int) -> RecordedTake:
    entries = (
        replace(entry, kernel=f"{number}.{entry.kernel}") if isinstance(entry, Launch) else entry
        for entry in take.entries
    )
    return replace(take, entries=tuple(entries))


class Recorder:
    """The sandboxed process that records one submission."""

    def __init__(self, job: Job, target: Target) -> None:
        self.job = job
        self.target = target

    def record(self, orders: list[Order]) -> dict[str, Recording | Failure]:
        """Recordings, or what went wrong, by case: of all, or of those up to the first in order that went wrong.

        Raises Failure when the file does not load.
        """
        job = self.job
        with (
            job.phases.during(Phase.COMPILE),
            job.sandbox.session(
                program("triton/recorder", "triton/device", "triton/driver"),
                limits=self._limits(),
                cancelled=job.cancelled,
            ) as session,
        ):
            try:
                self._load(session)
                return self._collect(session, orders)
            finally:
                finished = session.finish()
                printed = (finished.stdout + finished.stderr).decode(errors="replace")
                job.output = frames.printable(printed, limit=16_000)

    def _limits(self) -> Limits:
        return sandbox_limits(self.job.stage.spec.limits)

    def _load(self, session: Session) -> None:
        spec, stage = self.job.stage.spec, self.job.stage
        order = {
            "kind": "load",
            "module": spec.file.removesuffix(".py"),
            "source": self.job.source,
            "provided": {name.removesuffix(".py"): text for name, text in self.job.importable.items()},
            "driver": driver(stage),
            "seconds": spec.limits.case_s,
            "capability": self.target.capability,
            "properties": dict(self.target.properties),
            "values_only": self.target.values_only,
        }
        header, _ = self._exchange(session, frames.encode(order), "while it was loaded")
        if header.get("kind") != "loaded":
            raise self._failure(header, None)

    def _collect(self, session: Session, orders: list[Order]) -> dict[str, Recording | Failure]:
        parts = [part for order in orders for part in parts_of(order)]
        numbers = shuffled([part.label for part in parts], self.job.seed)
        waiting = {numbers[part.label]: part for part in parts}
        listed = json.dumps([_asked(waiting[number], number) for number in sorted(waiting)]).encode()
        recorded: dict[str, Recording | Failure] = {}
        found: dict[str, Recording | Failure] = {}
        message = frames.encode({"kind": "record"}, listed)
        while waiting and not _decided(orders, found):
            try:
                header, payload = self._exchange(session, message, "while its host code ran")
            except Failure as failure:  # what ends the process takes the other cases along; those that came count
                return {**dict.fromkeys((part.order.case.name for part in waiting.values()), failure), **found}
            message = b""
            number = header.get("case")
            if type(number) is not int or number not in waiting:
                raise forged(ValueError("an answer for a case that is not waited for"), None)
            part = waiting.pop(number)
            recorded[part.label] = self._recorded(header, payload, part.order.case.name)
            own = [each.label for each in parts_of(part.order)]
            if recorded.keys() >= set(own):
                found[part.order.case.name] = joined([recorded[label] for label in own])
        return found

    def _recorded(self, header: frames.Header, payload: bytes, case: str) -> Recording | Failure:
        if header.get("kind") != "recorded":
            return self._failure(header, case)
        try:
            return read_recording(header, payload)
        except MalformedRecordingError as error:
            message = f"Case {case}: the recording is damaged ({error}); the submission wrote where it should not."
            return Failure(Reason.TAPE_DAMAGED, message, case=case)

    def _exchange(self, session: Session, message: bytes, doing: str) -> tuple[frames.Header, bytes]:
        limits = self.job.stage.spec.limits
        deadline = time.monotonic() + limits.case_s

        def read(count: int) -> bytes:
            return session.read(count, within_s=max(0.0, deadline - time.monotonic()))

        try:
            if message:
                session.write(message, within_s=limits.case_s)
            return frames.receive(read, max_payload=MAX_PAYLOAD)
        except SessionEnded as ended:
            files = [self.job.stage.spec.file, *self.job.beside]
            raise end_failure(ended.finished, None, limits, files, doing) from None
        except frames.MalformedFrameError as error:
            raise forged(error, None) from None

    def _failure(self, header: frames.Header, case: str | None) -> Failure:
        """What a case or the loading ended with, in the words that every backend uses."""
        where = f"Case {case}: " if case else ""
        status = header.get("status")
        if header.get("kind") == "gone" and isinstance(status, int) and status in _KILLED:
            message = f"{where}the process was ended by {_KILLED[status]} while it was recorded."
            return Failure(Reason.CRASHED, message, case=case)
        if header.get("kind") == "gone":
            message = f"{where}the process exited while it was recorded; return from the function instead."
            return Failure(Reason.ENDED_EARLY, message, case=case)
        kind = frames.text(header, "type", limit=100)
        told = frames.text(header, "message", limit=1000)
        if kind != "OutOfResources" and (kind in COMPILER_ERRORS or header.get("compiling") is True):
            log = frames.text(header, "text", limit=6000)
            return Failure(Reason.KERNEL_ERROR, f"{where}a kernel does not compile: {told}", case=case, log=log)
        if kind == "OutOfResources":
            return Failure(Reason.OUT_OF_RESOURCES, f"{where}{told}", case=case)
        return failure_of(self.job.stage, header, case)


def _decided(orders: list[Order], found: Mapping[str, Recording | Failure]) -> bool:
    """Whether a case has failed and all before it have come: cases are judged in order, so no later one will be asked for."""
    for order in orders:
        recording = found.get(order.case.name)
        if recording is None or isinstance(recording, Failure):
            return recording is not None
    return False


def _asked(part: Part, number: int) -> dict[str, object]:
    """What the sandbox is told: no name, no place in the stage, not how the data are made, nor whether a clock will run."""
    order = part.order
    return {
        "number": number,
        "dtype": order.case.dtype,
        "params": order.case.given,
        "takes": [
            {
                "at_end": each.edge is Edge.END,
                "slots": list(each.slots),
                "inputs": [
                    {
                        "name": name,
                        "address": buffer.address,
                        "shape": list(order.shapes[name]),
                        "dtype": order.dtypes[name],
                    }
                    for name, buffer in each.inputs.items()
                ],
            }
            for each in part.calls
        ],
    }
