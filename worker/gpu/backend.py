"""The backend `gpu`: compile, record without a GPU, replay and measure in players, judge out here.

A case runs twice, at other addresses and with its buffers against the other edge of their fence; both runs must agree.
Expected values are computed in this process, which has no CUDA context, and never reach one that has.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from math import prod
from pathlib import Path

import numpy as np

from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.emulator import AccessCheck, Machine
from worker.gpu import health, lock
from worker.gpu.arena import Layout
from worker.gpu.baselines import BaselinePlayer, Facts, HeldBaseline, baselines
from worker.gpu.bench_client import Bench, BenchError, Spare, probe
from worker.gpu.draws import Draws
from worker.gpu.grading import CardGrading, UserCalls
from worker.gpu.player import GRACE_S, Player
from worker.gpu.protocol import Held, Hold, Loaded, LoadModule, Ready, RunCase
from worker.gpu.sanitizer import explained
from worker.gpu.side import Side, timed_call
from worker.gpu.together import speeds, together
from worker.judging.arrays import ITEM_SIZE, STORED, RawTensor
from worker.judging.device_faults import check_repeat
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.judging.phases import Phases, Unwatched
from worker.judging.way import Way
from worker.recording.baseline import compiled_baseline
from worker.recording.compile import Compiled, architecture, compile_cuda, with_occupancy
from worker.recording.memory_of_kernels import check_frames
from worker.recording.native import BuildError, recorder
from worker.recording.placement import WORKSPACE, Buffer, Edge, Slots, place
from worker.recording.record import Device, Take, record
from worker.recording.seam import DTYPES, Kind, Parameter, seam_of
from worker.recording.tape import Launch, Tape

GIVEN = (Kind.INPUT, Kind.INOUT)
"""Arrays in which a call finds values."""
DEVICE_NODES = ("/dev/nvidiactl", "/dev/dxg")
Played = tuple[Case, Arrays, float]
"""A case that ran: what it wrote, by the seam's names, and its milliseconds."""
spare = Spare()
atexit.register(spare.close)
_AHEAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inputs")
_BASELINES = ThreadPoolExecutor(max_workers=1, thread_name_prefix="baseline")


@cache
def missing_gpu() -> str | None:
    """Why this host cannot grade on a GPU, or None."""
    if not any(Path(node).exists() for node in DEVICE_NODES):
        return f"no NVIDIA GPU: none of {', '.join(DEVICE_NODES)} is here"
    found = probe()
    if isinstance(found, str):
        return found
    try:
        recorder()
    except BuildError as error:
        return str(error)
    return None


def warm() -> None:
    """Starts the first bench before the first submission asks for one, where this host has a GPU."""
    if missing_gpu() is None:
        spare.renew()


def fit() -> bool:
    """Whether the next submission may be claimed: the card is well, or this host grades without one."""
    return missing_gpu() is not None or health.fit(spare.examine)


def model() -> str | None:
    """The name of this host's GPU, e.g. "NVIDIA H200", or None where it has none to grade on."""
    found = probe() if missing_gpu() is None else ""
    return found.name if isinstance(found, Ready) else None


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order, and then measures those that are marked."""
    bench = spare.take()
    try:
        card = probe()  # what the card is, known already; the player may still be starting while the compiler runs
        if isinstance(card, str):
            raise BenchError(card)
        yield from _Grading(job, bench, card).run()
    finally:
        printed = bench.printed()
        job.output = "\n".join(text for text in (job.output, printed) if text)
        bench.close()
        spare.renew()


class _Grading:
    """One submission on one card."""

    def __init__(self, job: Job, bench: Bench, card: Ready) -> None:
        self.job = job
        self.on_card = CardGrading(job, bench, card)
        self.card = card
        self.target = architecture(*card.capability)
        attributes = {int(which): int(value) for which, value in card.attributes.items()}
        self.device = Device(card.name, card.memory, attributes)
        self.limits = job.stage.spec.limits
        self.made: dict[str, Arrays] = {}
        self.orders: list[tuple[RunCase, bytes]] = []
        gate = job.stage.spec.gate
        self.gate = gate.speedup if gate else None
        self.measured = [case for case in job.cases if case.measured]

    def run(self) -> Iterator[CaseRun]:
        held = {case.name: _BASELINES.submit(self._baseline, case) for case in self.measured}
        prepared = _AHEAD.submit(self._prepare)
        machine = Machine(self.target, self.device)
        with AccessCheck(self.job, prepared.result, machine) as checks:
            try:
                yield from self._graded(prepared, held, checks)
            except Failure as failure:
                raise checks.explained(failure) from None

    def _graded(
        self, prepared: Future[dict[str, Arrays]], held: dict[str, Future[HeldBaseline]], checks: AccessCheck
    ) -> Iterator[CaseRun]:
        job = self.job
        compiled = compile_cuda(job, self.target)
        prepared.result()
        takes = [Take(case, edge, self._place(case, edge)) for case in job.cases for edge in Edge]
        among = self.on_card.player.slots
        timed = {case.name: self._timed_takes(case, held[case.name].result().calls, among) for case in self.measured}
        tapes = record(job, compiled, self.device, [*takes, *(take for some in timed.values() for take in some)])
        for take in takes:
            self._check_frames(compiled, take.case, tapes[take.label])
        self.on_card.bench.ready()
        played, failure = self._play(compiled, takes, tapes)
        for case, outputs, ms in played:
            yield self._finished(case, outputs, ms)
        if failure is not None:
            raise explained(failure, compiled.device, self.orders, job.cancelled)
        job.explain(partial(self._asked, {take.case.name: (take, tapes[take.label]) for take in takes}))
        job.resources = with_occupancy(job.resources, compiled.cubin, self.on_card.occupancy)
        checks.conclude()
        timings = {}
        for case in self.measured:
            if job.right:
                calls = self._user_calls(case, [(take, tapes[take.label]) for take in timed[case.name]])
                timings[case.name] = self.on_card.measure(case, held[case.name].result(), calls, self.gate)
        job.tables += speeds(timings) if len(timings) > 1 else ()
        job.timing = together(timings, job.stage.spec.measured)

    def _check_frames(self, compiled: Compiled, case: Case, tape: Tape) -> None:
        launches = [
            (compiled.cubin.kernels[work.kernel], prod(work.grid) * prod(work.block))
            for node in tape.nodes
            if isinstance(work := node.work, Launch) and work.kernel in compiled.cubin.kernels
        ]
        check_frames(launches, self.device.attributes, self.limits, case=case.name)

    def _play(
        self, compiled: Compiled, takes: list[Take], tapes: dict[str, Tape]
    ) -> tuple[list[Played], Failure | None]:
        """Runs every case, up to one that fails. Nothing is judged meanwhile: others wait for the turn at the card."""
        played: list[Played] = []
        try:
            with lock.shared():
                with self.job.phases.during(Phase.LOAD):
                    self.on_card.load(compiled.device)
                with self.job.phases.during(Phase.CASES):
                    for case in self.job.cases:
                        own = [take for take in takes if take.case.name == case.name]
                        played.append((case, *self._case(case, own, tapes)))
        except Failure as failure:
            return played, failure
        return played, None

    def _prepare(self) -> dict[str, Arrays]:
        """Makes all inputs, by case, and starts computing the references, the longest first, while the compiler runs."""
        for case in sorted(self.job.cases, key=lambda case: -sum(array.size for array in self._inputs(case).values())):
            self.job.grader.foresee(case, self._inputs(case))
        return self.made

    def _sizes(self, case: Case) -> dict[str, int]:
        inputs, shapes = self._inputs(case), self.job.grader.output_shapes(case)
        workspace = {WORKSPACE: self.limits.workspace_kb * 1024} if self.limits.workspace_kb else {}
        pointers = [part for part in self._seam(case) if part.kind in (*GIVEN, Kind.OUTPUT)]
        return {
            part.name: inputs[part.name].nbytes
            if part.kind in GIVEN
            else part.itemsize * int(np.prod(shapes[part.name]))
            for part in pointers
        } | workspace

    def _inputs(self, case: Case) -> Arrays:
        if case.name not in self.made:
            self.made[case.name] = self.job.grader.inputs(case, self.job.seed)
        return self.made[case.name]

    def _seam(self, case: Case) -> tuple[Parameter, ...]:
        return seam_of(self.job.stage, case)

    def _dtypes(self, case: Case) -> dict[str, str]:
        """Of each array that the seam writes."""
        written = (Kind.OUTPUT, Kind.INOUT)
        return {part.name: DTYPES[part.type] for part in self._seam(case) if part.kind in written}

    def _shapes(self, case: Case) -> dict[str, tuple[int, ...]]:
        """Of each array that the seam takes."""
        given = {name: array.shape for name, array in self._inputs(case).items()}
        return {**given, **self.job.grader.output_shapes(case)}

    def _outputs(self, case: Case) -> frozenset[str]:
        return frozenset(self._dtypes(case)) | {WORKSPACE}

    def _place(self, case: Case, edge: Edge, among: Slots | None = None) -> dict[str, Buffer]:
        in_place = frozenset(part.name for part in self._seam(case) if part.kind is Kind.INOUT)
        return place(self._sizes(case), self._outputs(case), edge, among, in_place)

    def _timed_takes(self, case: Case, count: int, among: Slots) -> list[Take]:
        return [Take(case, Edge.END, self._place(case, Edge.END, among), number) for number in range(1, count + 1)]

    def _case(self, case: Case, takes: list[Take], tapes: dict[str, Tape]) -> tuple[Arrays, float]:
        """What a case wrote, and its milliseconds, from two runs that agree."""
        self.orders = [self._order(take, tapes[take.label], self._inputs(case)) for take in takes]
        (first, ms), (second, _) = (self._replay(case, order, data) for order, data in self.orders)
        for name, values in first.items():
            tolerance = self.job.grader.repeat_tolerance(case, name)
            check_repeat(case.name, name, values, second[name], tolerance=tolerance)
        return first, ms

    def _asked(self, recorded: Mapping[str, tuple[Take, Tape]], case: Case, inputs: Arrays) -> Mapping[str, RawTensor]:
        """The judged tensors of a case on other inputs, played once. Raises Failure."""
        with lock.shared():
            outputs, _ = self._replay(case, *self._order(*recorded[case.name], inputs))
        return self._raw(case, inputs, outputs)

    def _finished(self, case: Case, outputs: Arrays, ms: float) -> CaseRun:
        inputs = self._inputs(case)
        return CaseRun(case, inputs, self._raw(case, inputs, outputs), ms)

    def _raw(self, case: Case, inputs: Arrays, outputs: Arrays) -> Mapping[str, RawTensor]:
        return self.job.grader.raw(case, self.job.grader.finish(case, inputs, outputs))

    def _order(self, take: Take, tape: Tape, inputs: Arrays) -> tuple[RunCase, bytes]:
        """What the player is asked for one run of a case on `inputs`, and the data that go with it."""
        given = b"".join(inputs[b.name].tobytes() for b in take.buffers.values() if b.given)
        return self.on_card.order(take.buffers, tape.raw), tape.raw + given

    def _replay(self, case: Case, order: RunCase, data: bytes) -> tuple[Arrays, float]:
        result, payload = self.on_card.run(case.name, order, data)
        outputs: Arrays = {}
        at = 0
        shapes = self._shapes(case)
        for name, dtype in self._dtypes(case).items():
            size = ITEM_SIZE[dtype] * int(np.prod(shapes[name]))
            outputs[name] = np.frombuffer(payload[at : at + size], STORED[dtype]).reshape(shapes[name])
            at += size
        return outputs, result.ms

    def _user_calls(self, case: Case, takes: list[tuple[Take, Tape]]) -> UserCalls:
        sizes = {name: size for name, size in self._sizes(case).items() if name in self._dtypes(case)}
        layout = Layout()
        calls = tuple(timed_call(layout, take.buffers, len(tape.raw), sizes) for take, tape in takes)
        return UserCalls(calls, b"".join(tape.raw for _, tape in takes), sizes, self._dtypes(case))

    def _baseline(self, case: Case) -> HeldBaseline:
        """The stage's baseline for a case, in a player of its own, which is made and timed alone the first time."""
        stage = self.job.stage
        names = tuple(part.name for part in self._seam(case) if part.kind in GIVEN)
        try:
            player = baselines.get(stage, self._baseline_player)
            return player.hold(
                case, partial(self._hold_baseline, case), Draws(self.job.grader, case, names), self.limits.case_s
            )
        except (BenchError, BuildError):
            baselines.drop(stage)
            raise

    def _baseline_player(self) -> BaselinePlayer:
        made = BaselinePlayer(self.target)
        made.player.ask(LoadModule(), Loaded, compiled_baseline(self.job.stage, self.target).device)
        return made

    def _hold_baseline(self, case: Case, player: Player, name: str, count: int) -> tuple[Side, Facts]:
        text = self.job.stage.text("baseline.cu")
        other = replace(self.job, source=text, phases=Phases(Unwatched()))
        takes = self._timed_takes(case, count, player.slots)
        recorded = record(other, compiled_baseline(self.job.stage, self.target), self.device, takes)
        user = self._user_calls(case, [(take, recorded[take.label]) for take in takes])
        player.ask(Hold(name, user.calls, self.limits.case_s), Held, user.tapes, GRACE_S)
        return Side(player, name, user.calls, user.sizes, case.name), {}


__all__ = ["fit", "missing_gpu", "model", "run_cases", "spare", "warm"]


WAYS = (Way("cuda", run_cases, missing_gpu),)
