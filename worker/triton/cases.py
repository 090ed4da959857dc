"""The cases of a Triton stage: their inputs, the calls that are recorded for them, and the tensors that are judged.

A case's host code is recorded and its tape may be played on several inputs: an input named `v_changed` stands in for `v` in a
second run of the same tape, and what the seam returns then is judged as `out_changed`. Inputs of bfloat16 are arrays of their
bits, in uint16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernelgate.reasons import Reason
from kernelgate.seams import CHANGED
from kernelgate.stages import Case
from worker.judging.arrays import STORED, Array, RawTensor
from worker.judging.device_faults import check_repeat
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import Job
from worker.recording.entries import Copy, Fill, Upload
from worker.recording.placement import Buffer, Edge, Slots
from worker.triton.recording import Call, Order, call
from worker.triton.tape import Entry, Kernel, Launch, Recording, Region, Take, owner

ALIGNMENT = 16


def runs_of(inputs: Arrays) -> list[Arrays]:
    """The inputs of each run of a case's tape: as they are, and with what is `_changed`, if anything is."""
    first = {name: array for name, array in inputs.items() if not name.endswith(CHANGED)}
    if len(first) == len(inputs):
        return [first]
    other = {name: inputs.get(name + CHANGED, array) for name, array in first.items()}
    return [first, other]


def order_for(
    case: Case,
    inputs: Arrays,
    dtypes: Mapping[str, str],
    edges: tuple[Edge, ...],
    timed: int = 0,
    among: Slots | None = None,
) -> Order:
    """What to record for a case: one call for every edge that its memory is placed against, then `timed` calls.

    dtypes: of the inputs, as torch calls them.

    among: of the memory that is mapped together with that of the timed calls.
    """
    given = runs_of(inputs)[0]
    sizes = {name: array.nbytes for name, array in given.items()}
    shapes = {name: array.shape for name, array in given.items()}
    calls = [call(sizes, edge) for edge in edges] + [call(sizes, Edge.END, among) for _ in range(timed)]
    return Order(case, shapes, {name: dtypes[name] for name in given}, tuple(calls))


@dataclass(frozen=True)
class Placed:
    """A recorded call with all memory that it may touch: inputs and allocations, by name."""

    case: Case
    take: Take
    buffers: Mapping[str, Buffer]
    inputs: Mapping[str, Buffer]
    edge: Edge

    def workspace(self) -> int:
        """Bytes that were allocated besides the tensors that came back."""
        returned = {found.name for region in self.take.results if (found := owner(region, self.buffers))}
        return sum(b.size for name, b in self.buffers.items() if b.written and name not in returned)


def placed(case: Case, take: Take, asked: Call) -> Placed:
    """Joins a recording with its addresses. Allocations are named by their order; the one that came back by its result."""
    made = {
        f"allocation {index + 1}": Buffer.at(f"allocation {index + 1}", mapping, size, asked.edge, written=True)
        for index, (mapping, size) in enumerate(zip(asked.slots, take.sizes, strict=False))
    }
    for region in take.results:
        found = owner(region, made)
        if found is not None:
            del made[found.name]
            made[region.name] = Buffer.at(region.name, found.mapping, found.size, asked.edge, written=True)
    return Placed(case, take, {**asked.inputs, **made}, asked.inputs, asked.edge)


def checked(job: Job, order: Order, recording: Recording) -> list[Placed]:
    """The calls of one case, placed. Raises Failure where the recording shows that the contract is broken."""
    if len(recording.takes) != len(order.calls):
        raise Failure(
            Reason.TAPE_DAMAGED,
            f"Case {order.case.name}: calls are missing.",
            case=order.case.name,
        )
    _check_named(job, order, recording)
    found = [placed(order.case, take, asked) for take, asked in zip(recording.takes, order.calls, strict=True)]
    for each in found:
        if each.take.results:
            _check_launched(each)
            _check_workspace(job, each)
            _check_results(each)
    return found


def _violation(case: Case, reason: Reason, what: str) -> Failure:
    return Failure(reason, f"Case {case.name}: {what}", case=case.name)


def _check_named(job: Job, order: Order, recording: Recording) -> None:
    """All calls return the same tensors, each once, and none but judged ones: what is returned is no workspace."""
    forms = [[(each.name, each.dtype, each.shape) for each in take.results] for take in recording.takes]
    names = [name for name, _, _ in forms[0]]
    known = set(job.stage.spec.tensors) - set(order.shapes)
    if any(form != forms[0] for form in forms) or len(set(names)) != len(names) or not known.issuperset(names):
        what = f"the calls returned {[name for form in forms for name, _, _ in form]}; the same judged tensors are accepted."
        raise _violation(order.case, Reason.TAPE_DAMAGED, what)


def _check_launched(call_: Placed) -> None:
    if not call_.take.launches:
        what = "no Triton kernel was launched. The answer has to be computed by kernels that the function launches."
        raise _violation(call_.case, Reason.NO_LAUNCH, what)


def _check_workspace(job: Job, call_: Placed) -> None:
    allowed, asked = job.grader.workspace(call_.case), call_.workspace()
    if asked > allowed:
        largest = max(
            (b.size for name, b in call_.buffers.items() if b.written and name not in _named(call_)), default=0
        )
        what = (
            f"{asked:,} bytes of workspace were allocated besides the output, {largest:,} of them in one tensor"
            f"{_square(largest)}; the stage allows {allowed:,} here. Keep scores in registers, a tile at a time."
        )
        raise _violation(call_.case, Reason.WORKSPACE, what)


def _named(call_: Placed) -> set[str]:
    return {region.name for region in call_.take.results}


def _square(size: int) -> str:
    for width in (4, 2):
        side = round((size / width) ** 0.5)
        if side > 16 and abs(side * side * width - size) < 16:
            return f" (the size of a {side} × {side} matrix of {width}-byte values)"
    return ""


def _check_results(call_: Placed) -> None:
    for region in call_.take.results:
        found = owner(region, call_.buffers)
        if found is None:
            what = f"{region.name} lies in no memory of this call; return a tensor that the function allocated."
            raise _violation(call_.case, Reason.FOREIGN_TENSOR, what)
        beside = found.size - aligned(region.size)
        if found.written and beside:
            what = (
                f"{region.name} takes {region.size:,} bytes of an allocation of {found.size:,}; what lies beside it would be "
                "workspace that nobody counts. Return a tensor that was allocated by itself, as torch.empty_like does."
            )
            raise _violation(call_.case, Reason.SHARED_ALLOCATION, what)


def aligned(size: int) -> int:
    """Bytes that a tensor of `size` bytes is given when it is allocated by itself, as kernels/triton/device.py has it."""
    return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)


def same_work(first: Placed, second: Placed, kernels: Mapping[str, Kernel]) -> bool:
    """Whether two calls ask the same of the device: the same kernels on the same numbers and places of their memory."""
    return _relative(first, kernels) == _relative(second, kernels)


def _relative(call_: Placed, kernels: Mapping[str, Kernel]) -> list[object]:
    """A call's entries and results with kernels by their content and addresses by the buffer they lead into."""

    def place(address: int) -> tuple[str, int]:
        for name, buffer in call_.buffers.items():
            if buffer.address <= address <= buffer.address + buffer.size:
                return name, address - buffer.address
        return "", address

    def relative(entry: Entry) -> tuple[object, ...]:
        match entry:
            case Launch(key, grid, cluster, cooperative, scratch, args):
                values = [
                    (kind, place(value) if isinstance(value, int) and kind[0] == "*" else value) for kind, value in args
                ]
                return kernels[key].image, kernels[key].name, grid, cluster, cooperative, place(scratch), values
            case Fill(to, value, size):
                return place(to), value, size
            case Copy(to, source, size):
                return place(to), place(source), size
            case Upload(to, data):
                return place(to), data

    return [[relative(entry) for entry in call_.take.entries], [place(each.address) for each in call_.take.results]]


def check_repeats(case: Case, first: Mapping[str, RawTensor], second: Mapping[str, RawTensor]) -> None:
    """Raises Failure unless two calls on one input returned the same values; any NaN equals any other."""
    for name, raw in first.items():
        if raw.data != second[name].data:
            check_repeat(case.name, name, raw.numbers(), second[name].numbers())


def arrays_of(regions: tuple[Region, ...], data: bytes) -> dict[str, RawTensor]:
    """Returned tensors from their bytes, one after another."""
    found, at = {}, 0
    for region in regions:
        found[region.name] = RawTensor(region.dtype, region.shape, data[at : at + region.size])
        at += region.size
    return found


def bits(raw: RawTensor) -> Array:
    """A tensor's values as the stage's grader takes them: bfloat16 as its bits."""
    return np.frombuffer(raw.data, STORED[raw.dtype]).reshape(raw.shape)


def judged(job: Job, case: Case, inputs: Arrays, outputs: list[dict[str, RawTensor]]) -> dict[str, RawTensor]:
    """The tensors that are judged, from what came back in each run."""
    named = dict(outputs[0])
    for other in outputs[1:]:
        named |= {f"{name}{CHANGED}": raw for name, raw in other.items()}
    made = job.grader.derived(case, inputs, {name: bits(raw) for name, raw in named.items()})
    return {**named, **job.grader.raw(case, made)}
