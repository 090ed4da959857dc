"""The backend `gpu` for Triton: host code recorded without data, cubins replayed and measured in players, judged out here.

Every case runs twice, at other addresses and with its memory against the other edge of its fence; both runs must agree bit
for bit. Speed is measured against the stage's baseline.py, which computes in torch, in a player of its own, for every case that
is marked.
"""

from __future__ import annotations

import atexit
import json
import math
import statistics
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial

from kernelgate.protocol import Timing
from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.gpu import lock
from worker.gpu.arena import Layout
from worker.gpu.baselines import BaselinePlayer, Facts, HeldBaseline, baselines
from worker.gpu.bench_client import Bench, BenchError, Spare
from worker.gpu.draws import Draws
from worker.gpu.grading import CardGrading, UserCalls
from worker.gpu.player import Player
from worker.gpu.protocol import Held, HoldTorch, Ready, TimeAlone, Timed, TimedCall
from worker.gpu.side import Side, timed_call
from worker.gpu.together import BESIDE, speeds, together
from worker.judging.arrays import ITEM_SIZE, RawTensor
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.recording.compile import architecture
from worker.recording.cubin import Cubin, MalformedCubinError, read_cubin
from worker.recording.entries import Copy, Fill, Upload
from worker.recording.memory_of_kernels import check_frames, check_variables
from worker.recording.native import BuildError
from worker.recording.placement import Edge, Slots, place
from worker.recording.tape import (
    MAX_DYNAMIC_SHARED,
    MalformedTapeError,
    UnjoinedError,
    read_tape,
)
from worker.triton.cases import Placed, arrays_of, check_repeats, checked, judged, order_for, runs_of
from worker.triton.check_pass import OrderCheck
from worker.triton.facts import resources, tables
from worker.triton.recording import Order, Recorder, Target
from worker.triton.tape import Entry, Kernel, Launch, Recording, Region, as_line, owner

WARP = 32
STATIC_SHARED = 48 << 10
FORMATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
TORCH_S = 120.0
"""Seconds that importing torch and capturing a graph may take."""
BESIDE_TIMES = 15
BASELINE = "baseline.py"
Played = tuple[Case, list[dict[str, RawTensor]], float | None]
"""A case that came to its end: what came back in each of its runs, and its milliseconds."""
spare = Spare()
atexit.register(spare.close)
_BASELINES = ThreadPoolExecutor(max_workers=1, thread_name_prefix="baseline")


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order, and then measures those that are marked."""
    bench = spare.take()
    try:
        yield from _Grading(job, bench, bench.ready()).run()
    finally:
        printed = bench.printed()
        job.output = "\n".join(text for text in (job.output, printed) if text)
        bench.close()
        spare.renew()


def target(card: Ready) -> Target:
    """The card that kernels are compiled for and host code may ask about."""
    attributes = card.attributes
    properties = {
        "name": card.name,
        "memory": card.memory,
        "max_shared_mem": int(attributes["97"]),  # CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        "multiprocessor_count": int(attributes["16"]),
        "max_num_regs": int(attributes["12"]),
        "warpSize": WARP,
        "sm_clock_rate": int(attributes.get("13", 0)),
        "mem_clock_rate": int(attributes.get("36", 0)),
        "mem_bus_width": int(attributes.get("37", 0)),
    }
    major, minor = card.capability
    return Target(10 * major + minor, properties, values_only=False)


class _Grading:
    """One submission on one card."""

    def __init__(self, job: Job, bench: Bench, card: Ready) -> None:
        self.job = job
        self.card = card
        self.on_card = CardGrading(job, bench, card)
        self.known: dict[tuple[bytes, str], str] = {}
        self.cubins: dict[bytes, Cubin] = {}
        self.target = architecture(*card.capability)
        self.attributes = {int(which): int(value) for which, value in card.attributes.items()}

    def run(self) -> Iterator[CaseRun]:
        inputs = {case.name: self.job.grader.inputs(case, self.job.seed) for case in self.job.cases}
        with OrderCheck(self.job, inputs) as checks:
            yield from self._graded(inputs, checks)

    def _graded(self, inputs: Mapping[str, Arrays], checks: OrderCheck) -> Iterator[CaseRun]:
        job = self.job
        for case in sorted(job.cases, key=lambda case: -sum(array.size for array in inputs[case.name].values())):
            job.grader.foresee(case, inputs[case.name])
        measured = [case for case in job.cases if case.measured]
        held = self._baselines(measured, inputs)
        timed = {name: each.calls for name, each in held.items()}
        among = Slots()
        orders = [
            order_for(
                case, given, job.grader.dtypes(case, given), (Edge.END, Edge.START), timed.get(case.name, 0), among
            )
            for case in job.cases
            for given in (inputs[case.name],)
        ]
        recorded = Recorder(job, target(self.card)).record(orders)
        calls: dict[str, list[Placed]] = {}
        kernels = {name: each.kernels for name, each in recorded.items() if isinstance(each, Recording)}
        played, failure = self._play(orders, recorded, calls, kernels, inputs)
        for case, outputs, ms in played:
            raw = judged(job, case, inputs[case.name], outputs) if outputs else {}
            yield CaseRun(case, inputs[case.name], raw, ms)
        if failure is not None:
            raise failure
        job.explain(lambda case, given: self._asked(calls[case.name][0], kernels[case.name], given))
        job.resources = resources(kernels)
        job.tables = tables([each[0] for each in calls.values()], kernels, self.on_card.peak)
        checks.conclude()
        timings = {}
        for case in measured:
            if job.right and case.name in held:
                timings[case.name] = self._measure(case, calls[case.name][2:], kernels, held[case.name])
        job.tables += speeds(timings)
        job.timing = together(timings, job.stage.spec.measured)

    def _baselines(self, measured: list[Case], inputs: Mapping[str, Arrays]) -> dict[str, HeldBaseline]:
        """The baseline's side of every measured case; none where the player has no torch, which the result then says."""
        made = {}
        for case in measured:
            try:
                made[case.name] = _BASELINES.submit(self._baseline, case, inputs[case.name]).result()
            except (BenchError, BuildError) as error:
                baselines.drop(self.job.stage)
                if "no_torch" not in str(error):
                    raise
                self.job.machine["speed"] = f"not measured: the bench has no torch ({str(error)[:200]})"
                return {}
        return made

    def _baseline(self, case: Case, inputs: Arrays) -> HeldBaseline:
        given = runs_of(inputs)[0]
        player = baselines.get(self.job.stage, partial(BaselinePlayer, self.target, "--torch"))
        draws = Draws(self.job.grader, case, tuple(given))
        return player.hold(case, partial(self._hold_torch, case, given), draws, self.job.stage.spec.limits.case_s)

    def _hold_torch(self, case: Case, given: Arrays, player: Player, name: str, count: int) -> tuple[Side, Facts]:
        stage, grader = self.job.stage, self.job.grader
        shapes = {input_: array.shape for input_, array in given.items()}
        sizes = {
            output: math.prod(shape) * ITEM_SIZE[stage.dtype(case, output)]
            for output, shape in grader.output_shapes(case).items()
        }
        layout = Layout()
        calls = tuple(_torch_call(layout, given, sizes, player.slots) for _ in range(count))
        order = HoldTorch(
            name,
            calls,
            stage.spec.seam.name,
            "",
            grader.dtypes(case, given),
            shapes,
            case.params,
            stage.spec.limits.case_s,
        )
        held, _ = player.ask(order, Held, stage.files[BASELINE], TORCH_S)
        facts = dict(held.facts)
        beside = [each for each in str(facts.pop("beside", "")).split(",") if each]
        facts |= {f"{BESIDE}{each}_ms": self._beside_ms(order, each, given, sizes, player) for each in beside}
        return Side(player, name, calls, sizes, case.name), facts

    def _beside_ms(
        self, order: HoldTorch, which: str, given: Arrays, sizes: Mapping[str, int], player: Player
    ) -> float:
        """Median milliseconds of another computation of the same: an algorithmic comparison, no rival."""
        call = _torch_call(Layout(), given, sizes, player.slots)
        other = replace(order, name=f"{order.name}, {which}", calls=(call,), which=which)
        player.ask(other, Held, self.job.stage.files[BASELINE], TORCH_S)
        with lock.exclusive():
            timed, _ = player.ask(TimeAlone(other.name, BESIDE_TIMES), Timed, within_s=TORCH_S)
        return round(statistics.median(timed.ms[3:]), 5)

    def _play(
        self,
        orders: list[Order],
        recorded: Mapping[str, Recording | Failure],
        calls: dict[str, list[Placed]],
        kernels: Mapping[str, Mapping[str, Kernel]],
        inputs: Mapping[str, Arrays],
    ) -> tuple[list[Played], Failure | None]:
        """Runs every case, up to one that fails. Nothing is judged meanwhile: others wait for the turn at the card."""
        played: list[Played] = []
        try:
            with lock.shared(), self.job.phases.during(Phase.CASES):
                for order in orders:
                    calls[order.case.name] = self._checked(order, recorded[order.case.name])
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

    def _asked(self, call: Placed, kernels: Mapping[str, Kernel], inputs: Arrays) -> dict[str, RawTensor]:
        """The judged tensors of a case on other inputs, played once. Raises Failure."""
        with lock.shared():
            tape = self._tape(call, kernels)
            outputs = [self._replay(call, tape, given)[0] for given in runs_of(inputs)]
        return judged(self.job, call.case, inputs, outputs)

    def _tape(self, call: Placed, kernels: Mapping[str, Kernel]) -> bytes:
        """The call in the player's own form; sends the cubins that the player does not have yet."""
        self._check_memory(call, kernels)
        prefixes = {key: self._loaded(kernel, call.case) for key, kernel in kernels.items()}
        return tape_of(call, kernels, prefixes)

    def _check_memory(self, call: Placed, kernels: Mapping[str, Kernel]) -> None:
        """Variables and stack frames of everything that was compiled so far, before the driver sees any of it."""
        for kernel in kernels.values():
            self.cubins.setdefault(kernel.image, checked_image(kernel, call.case, self.card.capability))
        check_variables(self.cubins.values(), self.job.stage.spec.limits, case=call.case.name)
        launches = []
        for launch in call.take.launches:
            kernel = kernels[launch.kernel]
            threads = math.prod(launch.grid) * launch.cluster * kernel.warps * WARP
            launches.append((self.cubins[kernel.image].kernels[kernel.name], threads))
        check_frames(launches, self.attributes, self.job.stage.spec.limits, case=call.case.name)

    def _loaded(self, kernel: Kernel, case: Case) -> str:
        identity = (kernel.image, kernel.name)
        if identity not in self.known:
            self.known[identity] = f"{len(self.known)}/"
            self.on_card.load(kernel.image, self.known[identity], case.name)
        return self.known[identity]

    def _replay(self, call: Placed, tape: bytes, given: Arrays) -> tuple[dict[str, RawTensor], float]:
        data = b"".join(given[name].tobytes() for name, buffer in call.buffers.items() if not buffer.written)
        result, payload = self.on_card.run(call.case.name, self.on_card.order(call.buffers, tape), tape + data)
        written = {}
        at = 0
        for name, buffer in call.buffers.items():
            if buffer.written:
                written[name] = payload[at : at + buffer.size]
                at += buffer.size
            else:
                written[name] = given[name].tobytes()
        return _results(call, written), result.ms

    def _measure(
        self, case: Case, calls: list[Placed], kernels: Mapping[str, Mapping[str, Kernel]], held: HeldBaseline
    ) -> Timing:
        tapes = [self._tape(call, kernels[case.name]) for call in calls]
        results = calls[0].take.results
        sizes = {region.name: region.size for region in results}
        layout = Layout()
        made = tuple(timed_call(layout, c.buffers, len(tape), sizes) for c, tape in zip(calls, tapes, strict=True))
        user = UserCalls(made, b"".join(tapes), sizes, {region.name: region.dtype for region in results})
        gate = self.job.stage.spec.gate
        return self.on_card.measure(case, held, user, gate.speedup if gate else None)


def _torch_call(layout: Layout, given: Arrays, sizes: Mapping[str, int], among: Slots) -> TimedCall:
    inputs = place({name: array.nbytes for name, array in given.items()}, frozenset(), Edge.END, among)
    return timed_call(layout, inputs, 0, sizes)


def _results(call: Placed, written: Mapping[str, bytes]) -> dict[str, RawTensor]:
    def part(region: Region) -> bytes:
        found = owner(region, call.buffers)
        assert found is not None  # noqa: S101 - checked() has seen to it
        at = region.address - found.address
        return written[found.name][at : at + region.size]

    return arrays_of(call.take.results, b"".join(part(region) for region in call.take.results))


def checked_image(kernel: Kernel, case: Case, capability: tuple[int, int]) -> Cubin:
    """A kernel's cubin, read before any driver sees it. Raises Failure for one that is none, or none for this card."""
    try:
        cubin = read_cubin(kernel.image)
    except MalformedCubinError as error:
        raise damaged(case, f"a kernel is no cubin ({error})") from error
    major, minor = capability
    if cubin.architecture // 10 != major or cubin.architecture % 10 > minor:
        raise damaged(
            case, f"a cubin for compute capability {cubin.architecture / 10:.1f} on a card of {major}.{minor}"
        )
    if kernel.name not in cubin.kernels:
        raise damaged(case, f"a cubin without the kernel {kernel.name[:80]}")
    return cubin


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
    entry: Entry, kernels: Mapping[str, Kernel], prefixes: Mapping[str, str], case: Case
) -> Iterator[dict[str, object]]:
    """One recorded entry as the lines of a tape (docs/tape.md), all on the given stream."""
    match entry:
        case Launch():
            yield from _launch(entry, kernels[entry.kernel], prefixes[entry.kernel], case)
        case Copy(to, source, size):
            yield {"op": "copy", "to": to, "from": source, "bytes": size, "stream": 1}
        case Fill() | Upload():
            yield {**as_line(entry), "stream": 1}


def _launch(launch: Launch, kernel: Kernel, prefix: str, case: Case) -> Iterator[dict[str, object]]:
    name = prefix + kernel.name
    if kernel.shared > STATIC_SHARED:
        yield {"op": "attribute", "kernel": name, "which": MAX_DYNAMIC_SHARED, "value": kernel.shared}
    x, y, z = launch.grid
    line: dict[str, object] = {
        "op": "launch",
        "kernel": name,
        "grid": [x * launch.cluster, y, z],
        "block": [kernel.warps * WARP, 1, 1],
        "shared": kernel.shared,
        "stream": 1,
        "arguments": arguments(launch, kernel, case).hex(),
    }
    if launch.cluster > 1:
        line["cluster"] = [launch.cluster, 1, 1]
    if launch.cooperative:
        line["cooperative"] = True
    yield line


def arguments(launch: Launch, kernel: Kernel, case: Case) -> bytes:
    """The parameter block of a launch: recorded arguments where the cubin says that they lie, then Triton's scratch memory.

    Raises Failure when they do not fit the cubin, which then is not the one that was launched.
    """
    try:
        sizes, given = _parameters(kernel.image, kernel.name), launch.args
        if not len(given) <= len(sizes) <= len(given) + 2:
            raise ValueError(f"{len(given)} arguments for {len(sizes)} parameters")
        block = bytearray(max((offset + size for offset, size in sizes), default=0))
        for (kind, value), (offset, size) in zip(given, sizes, strict=False):
            block[offset : offset + size] = _packed(kind, value, size)
        if len(sizes) > len(given):
            offset, size = sizes[len(given)]
            block[offset : offset + size] = launch.scratch.to_bytes(size, "little")
    except (MalformedCubinError, KeyError, ValueError, OverflowError, struct.error) as error:
        raise damaged(case, f"a launch does not fit its kernel ({type(error).__name__}: {str(error)[:200]})") from error
    return bytes(block)


@lru_cache(maxsize=64)
def _parameters(image: bytes, name: str) -> tuple[tuple[int, int], ...]:
    """Each parameter's (offset, bytes); a kernel is launched more often than it is compiled."""
    return tuple(read_cubin(image).kernels[name].parameters)


def _packed(kind: str, value: int | str, size: int) -> bytes:
    if size > 8:
        raise ValueError(f"a {kind} for a parameter of {size} bytes")
    if isinstance(value, int):
        return value.to_bytes(size, "little", signed=value < 0)
    number = float.fromhex(value)
    packed: bytes = struct.pack("<f", number)[2:] if kind == "bf16" else struct.pack(FORMATS[kind], number)
    if len(packed) != size:
        raise ValueError(f"a {kind} for a parameter of {size} bytes")
    return packed


__all__ = ["run_cases", "target"]
