"""One side of a measurement, as the process that holds the card runs it: a bracket of calls on inputs that were never there
before.

Every call of a bracket has memory of its own. Before a bracket everything that can be written is refilled: outputs and
workspace with poison, what lies beside buffers with canaries, variables with the bytes that they began with. Inputs come
masked; their keys come with the order to start. Who gives the orders keeps the time (worker/gpu/measurement.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from worker.bench.driver import CudaError, Handle, TimedOutError, check, settle
from worker.bench.guard import Guard, Launch, Release
from worker.bench.memory import CANARY, Mapped
from worker.bench.replay import Module
from worker.gpu.masking import KEY_BYTES, first_blocks
from worker.gpu.protocol import TimedCall

QUEUED_NODES = 256
"""Of graphs in a stream that is held. Where many more wait, the driver has the launching process wait as well, for ever."""
SPIN_S = 0.5
"""So long the end is waited for without sleeping."""
SWEEPS = 2
"""A sweep writes so many times the second-level cache."""


class Work(Protocol):
    """Something that a call launches: a replayed tape, or torch's kernels. nodes: of its graph."""

    nodes: int

    def launch(self, stream: Handle) -> None: ...


class Output(Protocol):
    """Memory that a call writes and that is compared."""

    def span(self) -> tuple[int, int]:
        """(address, bytes)"""
        ...

    def refill(self) -> None: ...

    def read_into(self, values: NDArray[np.uint8]) -> None: ...


@dataclass
class Call:
    """One call: what it launches, its inputs, everything else of its own, and the outputs that are compared."""

    work: Work
    inputs: dict[str, Mapped]
    written: list[Mapped]
    outputs: dict[str, Output]
    places: TimedCall

    @property
    def first_blocks(self) -> dict[str, int]:
        sizes = [mapped.buffer.size for mapped in self.inputs.values()]
        return dict(zip(self.inputs, first_blocks(sizes), strict=True))


class MappedOutput:
    """A mapped buffer as an output."""

    def __init__(self, mapped: Mapped) -> None:
        self.mapped = mapped

    def span(self) -> tuple[int, int]:
        return self.mapped.buffer.address, self.mapped.buffer.size

    def refill(self) -> None:
        """Refilled as everything that is mapped."""

    def read_into(self, values: NDArray[np.uint8]) -> None:
        self.mapped.read_into(values)


class Bracket:
    """The held calls of one measured case. They are held until the process ends."""

    def __init__(
        self, calls: list[Call], guard: Guard, arena: NDArray[np.uint8], stream: Handle, within_s: float
    ) -> None:
        self.calls, self.guard, self.arena, self.stream, self.within_s = calls, guard, arena, stream, within_s
        cache = int(check(cu.cuDeviceGetAttribute(cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0)))
        self.sweep_size = max(SWEEPS * cache, 64 << 20)
        self.sweep = int(check(cu.cuMemAlloc(self.sweep_size)))
        self.events = [(_event(), _event()) for _ in calls]
        self.release = Release(guard, len(calls))
        self.unmasks = [self._unmask(number, call, name) for number, call in enumerate(calls) for name in call.inputs]
        self.inputs = [(name, mapped) for call in calls for name, mapped in call.inputs.items()]
        self.output_roots = guard.roots([output.span() for call in calls for output in call.outputs.values()])
        self.input_roots = guard.roots([(each.buffer.address, each.buffer.size) for _, each in self.inputs])
        self.uploaded = self.input_roots.here
        self.queued = 0

    def stage(self, modules: list[Module]) -> None:
        """Refills everything that can be written, and uploads the masked inputs. modules: whose variables begin anew."""
        for module in modules:
            module.restore()
        for call in self.calls:
            for mapped in (*call.inputs.values(), *call.written):
                mapped.refill()
            for output in call.outputs.values():
                output.refill()
            for name, mapped in call.inputs.items():
                mapped.write(self._part(call.places.inputs[name], mapped.buffer.size))
        settle()
        self.input_roots.launch()
        settle()
        self.uploaded = self.input_roots.here.copy()

    def attend(self) -> None:
        """Queues the bracket, or as much of it as a stream takes, behind a kernel that waits for the start.

        No launch is timed then, and a start finds the card always alike: awake, and this process's context on it.
        """
        self._sweep()
        settle()
        self.release.hold()
        for unmask in self.unmasks:
            unmask()
        self.queued = self._queue(0, QUEUED_NODES)

    def _queue(self, first: int, nodes: float) -> int:
        """Launches the calls from `first` on until their graphs have more than `nodes` nodes, and the roots after the last one.

        The number of the first call that is left.
        """
        for number in range(first, len(self.calls)):
            call, (begin, end) = self.calls[number], self.events[number]
            nodes -= call.work.nodes
            if nodes < 0:
                return number
            self._sweep()
            check(cu.cuEventRecord(begin, self.stream))
            call.work.launch(self.stream)
            check(cu.cuEventRecord(end, self.stream), "launch")
        self.output_roots.launch()
        return len(self.calls)

    def _sweep(self) -> None:
        check(cu.cuMemsetD32Async(self.sweep, 0, self.sweep_size // 4, self.stream))

    def start(self, keys: bytes) -> tuple[int, bytes]:
        """Lets all calls go: (nanoseconds by this process's clock, the roots of their outputs).

        Inputs are unmasked together: whatever of a later call is done in an earlier one, is done within the bracket, whose
        calls count in sum. Raises TimedOutError, and CudaError for a fault.
        """
        begin_ns = time.perf_counter_ns()
        self.release.give(keys)
        if self.queued < len(self.calls):
            self._queue(self.queued, math.inf)
        self._wait()
        return time.perf_counter_ns() - begin_ns, self.output_roots.here.tobytes()

    def _wait(self) -> None:
        deadline = time.monotonic() + self.within_s * len(self.calls)
        spin = time.monotonic() + SPIN_S
        while True:
            (status,) = cu.cuStreamQuery(self.stream)
            if status == cu.CUresult.CUDA_SUCCESS:
                return
            if status != cu.CUresult.CUDA_ERROR_NOT_READY:
                raise CudaError(status.name, "kernel")
            now = time.monotonic()
            if now > deadline:
                raise TimedOutError(f"{self.within_s:g} s")
            if now > spin:
                time.sleep(0.0002)

    def collect(self) -> tuple[tuple[float, ...], str, str]:
        """(ms of each call by events, the first input that was changed, the first buffer beside which something was
        written).
        """
        settle()
        ms = tuple(float(check(cu.cuEventElapsedTime(begin, end))) for begin, end in self.events)
        for call in self.calls:
            for name, output in call.outputs.items():
                output.read_into(self._part(call.places.outputs[name], output.span()[1]))
        return ms, self._changed(), next(filter(None, map(self._strayed, self.calls)), "")

    def _part(self, at: int, size: int) -> NDArray[np.uint8]:
        return self.arena[at : at + size]

    def _unmask(self, number: int, call: Call, name: str) -> Launch:
        buffer, key = call.inputs[name].buffer, self.release.keys + number * KEY_BYTES
        return self.guard.unmask(buffer.address, buffer.size, call.first_blocks[name], key)

    def _changed(self) -> str:
        """Masked again, an input that was left alone has the root that it was uploaded with; one in place is an output."""
        self.release.again()
        for unmask in self.unmasks:
            unmask()
        self.input_roots.launch()
        check(cu.cuStreamSynchronize(self.stream), "kernel")
        differ = [self.inputs[int(at)] for at in np.flatnonzero(self.input_roots.here != self.uploaded)]
        return next((name for name, mapped in differ if not mapped.buffer.written), "")

    def _strayed(self, call: Call) -> str:
        for mapped in (*call.inputs.values(), *call.written):
            start, size = mapped.slack
            if size and self.guard.differing(start, size, CANARY):
                return mapped.buffer.name
        return ""

    def alone(self, times: int) -> tuple[float, ...]:
        """Milliseconds of the first call by events, on a swept cache, `times` times."""
        call, (begin, end) = self.calls[0], self.events[0]
        samples = []
        for _ in range(times):
            settle()
            self._sweep()
            check(cu.cuEventRecord(begin, self.stream))
            call.work.launch(self.stream)
            check(cu.cuEventRecord(end, self.stream), "launch")
            self._wait()
            samples.append(float(check(cu.cuEventElapsedTime(begin, end))))
        return tuple(samples)


def _event() -> Handle:
    return check(cu.cuEventCreate(0))


def mapped_call(
    stack: ExitStack, places: TimedCall, device: int
) -> tuple[dict[str, Mapped], list[Mapped], Mapping[str, Output]]:
    """A call's inputs, everything else, and its outputs, mapped for as long as the stack is open.

    What is changed in place is an input, which is given anew before every bracket, and an output.
    """
    held = {name: stack.enter_context(Mapped(buffer, device)) for name, buffer in places.buffers.items()}
    inputs = {name: mapped for name, mapped in held.items() if mapped.buffer.given}
    written = [mapped for mapped in held.values() if not mapped.buffer.given]
    judged = {name: MappedOutput(held[name]) for name in places.outputs if name in held}
    return inputs, written, judged
