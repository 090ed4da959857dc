"""The backend `gpu` for Triton: host code recorded without data, cubins replayed and measured in the bench, judged out here.

Every case runs twice, at other addresses and with its memory against the other edge of its fence; both runs must agree bit for
bit. Speed is measured against torch's `scaled_dot_product_attention` (bench/against_torch.py), for every case that is marked.
"""

from __future__ import annotations

import atexit
import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from kernelgate.protocol import Timing
from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.gpu import lock
from worker.gpu.backend import GRACE_S, MEASURE_S, awaited, timing_of
from worker.gpu.bench_client import Bench, Spare
from worker.judging.arrays import RawTensor
from worker.judging.device_faults import check_memory
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.recording.compile import HEAP
from worker.recording.cubin import MalformedCubinError, read_cubin
from worker.recording.placement import Buffer, Edge
from worker.recording.tape import MAX_DYNAMIC_SHARED, MalformedTapeError, UnjoinedError, read_tape
from worker.triton.cases import Placed, arrays_of, check_repeats, checked, judged, order_for, runs_of
from worker.triton.facts import resources, speeds, tables
from worker.triton.recording import Order, Recorder, Target
from worker.triton.tape import Kernel, Recording, Region, owner

WARP = 32
STATIC_SHARED = 48 << 10
FORMATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
Played = tuple[Case, list[dict[str, RawTensor]], float | None]
"""A case that came to its end: what came back in each of its runs, and its milliseconds."""
spare = Spare("--torch")
atexit.register(spare.close)


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order, and then measures those that are marked."""
    bench = spare.take()
    try:
        yield from _Grading(job, bench, bench.facts()).run()
    finally:
        printed = bench.printed()
        job.output = "\n".join(text for text in (job.output, printed) if text)
        bench.close()
        spare.renew()


def target(facts: Mapping[str, Any]) -> Target:
    """The card that kernels are compiled for and host code may ask about."""
    attributes = facts["attributes"]
    properties = {
        "name": str(facts["name"]),
        "memory": int(facts["memory"]),
        "max_shared_mem": int(attributes["97"]),  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        "multiprocessor_count": int(attributes["16"]),
        "max_num_regs": int(attributes["12"]),
        "warpSize": WARP,
        "sm_clock_rate": int(attributes.get("13", 0)),
        "mem_clock_rate": int(attributes.get("36", 0)),
        "mem_bus_width": int(attributes.get("37", 0)),
    }
    major, minor = facts["capability"]
    return Target(10 * major + minor, properties, values_only=False)


class _Grading:
    """One submission on one bench."""

    def __init__(self, job: Job, bench: Bench, facts: dict[str, Any]) -> None:
        self.job = job
        self.bench = bench
        self.facts = facts
        self.limits = job.stage.spec.limits
        self.known: dict[tuple[bytes, str], str] = {}
        self.peak: dict[str, int] = {}
        job.machine = {
            "gpu": str(facts["name"]),
            "driver": f"CUDA {facts['driver'] // 1000}.{facts['driver'] % 1000 // 10}",
        }

    def run(self) -> Iterator[CaseRun]:
        job = self.job
        cases = job.cases
        inputs = {case.name: job.grader.inputs(case, job.seed) for case in cases}
        for case in sorted(cases, key=lambda case: -sum(array.size for array in inputs[case.name].values())):
            job.grader.foresee(case, inputs[case.name])
        measured = [case for case in cases if case.measured]
        orders = [order_for(case, inputs[case.name], (Edge.END, Edge.START, *_bout(case))) for case in cases]
        found = Recorder(job, target(self.facts)).record(orders)
        calls: dict[str, list[Placed]] = {}
        kernels = {name: each.kernels for name, each in found.items() if isinstance(each, Recording)}
        played, failure = self._play(orders, found, calls, kernels, inputs)
        for case, outputs, ms in played:
            raw = judged(job, case, inputs[case.name], outputs) if outputs else {}
            yield CaseRun(case, inputs[case.name], raw, ms)
        if failure is not None:
            raise failure
        job.resources = resources(kernels)
        job.tables = tables([each[0] for each in calls.values()], kernels, self.peak)
        timings = {}
        for case in measured:
            if job.right and (timing := self._measure(case, calls[case.name][-1], kernels, inputs[case.name])):
                timings[case.name] = timing
        job.tables += speeds(timings)
        job.timing = together(timings)

    def _play(
        self,
        orders: list[Order],
        found: Mapping[str, Recording | Failure],
        calls: dict[str, list[Placed]],
        kernels: Mapping[str, Mapping[str, Kernel]],
        inputs: Mapping[str, Arrays],
    ) -> tuple[list[Played], Failure | None]:
        """Runs every case, up to one that fails. Nothing is judged meanwhile: others wait for the turn at the card."""
        played: list[Played] = []
        try:
            with lock.shared(), self.job.phases.during(Phase.CASES):
                for order in orders:
                    calls[order.case.name] = self._checked(order, found[order.case.name])
                    played.append(self._case(order.case, calls[order.case.name], kernels, inputs[order.case.name]))
        except Failure as failure:
            return played, failure
        return played, None

    def _checked(self, order: Order, recording: Recording | Failure) -> list[Placed]:
        if isinstance(recording, Failure):
            raise recording
        return checked(self.job, order, recording)

    def _case(
        self, case: Case, calls: list[Placed], kernels: Mapping[str, Mapping[str, Kernel]], inputs: Arrays
    ) -> Played:
        if not calls[0].take.results:
            return case, [], None
        tapes = [self._tape(call, kernels[case.name]) for call in calls[:2]]
        outputs, ms = [], 0.0
        for given in runs_of(inputs):
            (first, took), (second, _) = (
                self._replay(call, tape, given) for call, tape in zip(calls, tapes, strict=False)
            )
            check_repeats(case, first, second)
            outputs.append(first)
            ms += took
        return case, outputs, ms

    def _tape(self, call: Placed, kernels: Mapping[str, Kernel]) -> bytes:
        """The call in the bench's own form; sends the cubins that the bench does not have yet."""
        prefixes = {key: self._loaded(kernel, call.case) for key, kernel in kernels.items()}
        return tape_of(call, kernels, prefixes)

    def _loaded(self, kernel: Kernel, case: Case) -> str:
        identity = (kernel.image, kernel.name)
        if identity not in self.known:
            check_memory_of_its_own(self.job, kernel, case)
            self.known[identity] = f"{len(self.known)}/"
            self.bench.send({"kind": "module", "which": "user", "prefix": self.known[identity]}, kernel.image)
            self._answer("loaded", GRACE_S, case)
        return self.known[identity]

    def _replay(self, call: Placed, tape: bytes, given: Arrays) -> tuple[dict[str, RawTensor], float]:
        order = {
            "kind": "case",
            "buffers": {name: asdict(buffer) for name, buffer in call.buffers.items()},
            "tape": len(tape),
            "within_s": self.limits.case_s,
        }
        data = b"".join(given[name].tobytes() for name, buffer in call.buffers.items() if not buffer.written)
        self.bench.send(order, tape + data)
        answer, payload = self._answer("result", self.limits.case_s + GRACE_S, call.case)
        check_memory(call.case.name, answer)
        self.peak[call.case.name] = max(int(answer["peak"]), self.peak.get(call.case.name, 0))
        written = {}
        at = 0
        for name, buffer in call.buffers.items():
            if buffer.written:
                written[name] = payload[at : at + buffer.size]
                at += buffer.size
            else:
                written[name] = given[name].tobytes()
        return _results(call, written), float(answer["ms"])

    def _measure(
        self, case: Case, call: Placed, kernels: Mapping[str, Mapping[str, Kernel]], inputs: Arrays
    ) -> Timing | None:
        tape = self._tape(call, kernels[case.name])
        order = {
            "kind": "measure",
            "peer": "torch",
            "stage": str(self.job.stage.folder),
            "case": case.name,
            "tape": len(tape),
            "inputs": {name: asdict(b) for name, b in call.inputs.items()},
            "user": {name: asdict(b) for name, b in call.buffers.items() if b.written},
            "shapes": {name: list(inputs[name].shape) for name in call.inputs},
            "within_s": self.limits.case_s,
            "measure_s": MEASURE_S,
        }
        payload = tape + b"".join(inputs[name].tobytes() for name in call.inputs)
        with lock.exclusive(), self.job.phases.during(Phase.MEASURE):
            self.bench.send(order, payload)
            answer, _ = self._answer("measured", self.limits.wall_s, case, or_kind="no_peer")
        if answer["kind"] == "no_peer":
            self.job.machine["speed"] = f"not measured: the bench has no torch ({str(answer['what'])[:200]})"
            return None
        return timing_of(answer, None)

    def _answer(self, wanted: str, within_s: float, case: Case, *, or_kind: str = "") -> tuple[dict[str, Any], bytes]:
        return awaited(self.bench, self.job, {wanted, or_kind}, within_s, case.name)


def _bout(case: Case) -> tuple[Edge, ...]:
    """A measured case is recorded once more, for the timed call: its memory is its own."""
    return (Edge.END,) if case.measured else ()


def _results(call: Placed, written: Mapping[str, bytes]) -> dict[str, RawTensor]:
    def part(region: Region) -> bytes:
        found = owner(region, call.buffers)
        assert found is not None  # noqa: S101 - checked() has seen to it
        at = region.address - found.address
        return written[found.name][at : at + region.size]

    return arrays_of(call.take.results, b"".join(part(region) for region in call.take.results))


def check_memory_of_its_own(job: Job, kernel: Kernel, case: Case) -> None:
    """Raises Failure where a kernel has memory besides its arguments that outlives a call, which the stage does not count."""
    try:
        cubin = read_cubin(kernel.image)
    except MalformedCubinError as error:
        raise damaged(case, f"a kernel is no cubin ({error})") from error
    limit = job.stage.spec.limits.static_kb * 1024
    if cubin.imported & HEAP or cubin.static_bytes > limit:
        what = f"{cubin.static_bytes:,} bytes of variables" if cubin.static_bytes > limit else "the device's heap"
        message = (
            f"Case {case.name}: the kernel {kernel.name} uses {what}; the stage allows {limit:,} bytes of variables."
        )
        raise Failure(Reason.WORKSPACE, message, case=case.name)


def damaged(case: Case, what: str) -> Failure:
    """Only the submission can have changed what the recorder wrote."""
    return Failure(Reason.TAPE_DAMAGED, f"Case {case.name}: {what[:300]}.", case=case.name)


def tape_of(call: Placed, kernels: Mapping[str, Kernel], prefixes: Mapping[str, str]) -> bytes:
    """A call in the bench's own form, which the bench will accept. Raises Failure for a call that is in none.

    prefixes: what stands before each kernel's name in the bench, by key.
    """
    lines = [line for entry in call.take.entries for line in _lines(entry, kernels, prefixes, call.case)]
    raw = "\n".join(json.dumps(line) for line in [*lines, {"op": "end"}]).encode()
    try:
        read_tape(raw, dict(call.buffers))
    except (MalformedTapeError, UnjoinedError) as error:
        raise damaged(call.case, f"the recording cannot be replayed ({error})") from error
    return raw


def _lines(
    entry: dict[str, Any], kernels: Mapping[str, Kernel], prefixes: Mapping[str, str], case: Case
) -> Iterator[dict[str, Any]]:
    """One recorded entry as the lines of a tape (docs/tape.md), all on the given stream."""
    if entry["op"] == "copy":
        yield {"op": "copy", "to": entry["to"], "from": entry["source"], "bytes": entry["bytes"], "stream": 1}
        return
    if entry["op"] != "launch":
        yield {**entry, "stream": 1}
        return
    kernel = kernels[entry["kernel"]]
    name = prefixes[entry["kernel"]] + kernel.name
    if kernel.shared > STATIC_SHARED:
        yield {"op": "attribute", "kernel": name, "which": MAX_DYNAMIC_SHARED, "value": kernel.shared}
    x, y, z = entry["grid"]
    line = {
        "op": "launch",
        "kernel": name,
        "grid": [x * entry["cluster"], y, z],
        "block": [kernel.warps * WARP, 1, 1],
        "shared": kernel.shared,
        "stream": 1,
        "arguments": arguments(entry, kernel, case).hex(),
    }
    if entry["cluster"] > 1:
        line["cluster"] = [entry["cluster"], 1, 1]
    if entry["cooperative"]:
        line["cooperative"] = True
    yield line


def arguments(entry: dict[str, Any], kernel: Kernel, case: Case) -> bytes:
    """The parameter block of a launch: recorded arguments where the cubin says that they lie, then Triton's scratch memory.

    Raises Failure when they do not fit the cubin, which then is not the one that was launched.
    """
    try:
        sizes = _parameters(kernel.image, kernel.name)
        given = entry["args"]
        if not len(given) <= len(sizes) <= len(given) + 2:
            raise ValueError(f"{len(given)} arguments for {len(sizes)} parameters")
        block = bytearray(max((offset + size for offset, size in sizes), default=0))
        for (kind, value), (offset, size) in zip(given, sizes, strict=False):
            block[offset : offset + size] = _packed(kind, value, size)
        if len(sizes) > len(given):
            offset, size = sizes[len(given)]
            block[offset : offset + size] = int(entry["scratch"]).to_bytes(size, "little")
    except (MalformedCubinError, KeyError, ValueError, OverflowError, struct.error) as error:
        raise damaged(case, f"a launch does not fit its kernel ({type(error).__name__}: {str(error)[:200]})") from error
    return bytes(block)


@lru_cache(maxsize=64)
def _parameters(image: bytes, name: str) -> tuple[tuple[int, int], ...]:
    """Each parameter's (offset, bytes); a kernel is launched more often than it is compiled."""
    return tuple(read_cubin(image).kernels[name].parameters)


def _packed(kind: str, value: Any, size: int) -> bytes:
    if kind.startswith("*") or kind[0] in "iu":
        return int(value).to_bytes(size, "little", signed=int(value) < 0)
    number = float.fromhex(value)
    packed = struct.pack("<f", number)[2:] if kind == "bf16" else struct.pack(FORMATS[kind], number)
    if len(packed) != size:
        raise ValueError(f"a {kind} for a parameter of {size} bytes")
    return packed


def together(timings: Mapping[str, Timing]) -> Timing | None:
    """The timing that counts, the faster one's, with the figures of every measured case beside it."""
    if not timings:
        return None
    best = max(timings, key=lambda name: timings[name].speedup)
    facts: dict[str, float | str] = {"fastest_case": best, **timings[best].facts}
    for name, timing in timings.items():
        facts[f"{name}_ms"] = round(timing.user_ms, 5)
        facts[f"{name}_sdpa_ms"] = round(timing.baseline_ms, 5)
        facts[f"{name}_speedup_over_sdpa"] = round(timing.speedup, 4)
    return timings[best].model_copy(update={"facts": facts})


__all__ = ["Buffer", "run_cases", "target"]
