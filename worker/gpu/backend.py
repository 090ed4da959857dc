"""The backend `gpu`: compile, record without a GPU, replay and measure in the bench, judge out here.

A case runs twice, at other addresses and with its buffers against the other edge of their fence; both runs must agree bit for
bit. Expected values are computed in this process, which has no CUDA context, and never reach the one that has.
"""

from __future__ import annotations

import atexit
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.protocol import Timing
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker import emulator
from worker.emulator import CheckPass
from worker.gpu import health, lock
from worker.gpu.bench_client import Bench, BenchError, Spare, probe
from worker.gpu.sanitizer import explained
from worker.judging.arrays import RawTensor
from worker.judging.device_faults import check_memory, check_repeat, ending
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.recording.baseline import compiled_baseline
from worker.recording.compile import Compiled, architecture, compile_cuda, with_occupancy
from worker.recording.native import BuildError, recorder
from worker.recording.placement import WORKSPACE, Buffer, Edge, place
from worker.recording.record import Device, Take, record
from worker.recording.seam import Kind, parameters
from worker.recording.tape import Tape

GRACE_S = 20.0
"""What the bench may take beyond a kernel's own time: mapping, copies, instantiation."""
MEASURE_S = 6.0
DEVICE_NODES = ("/dev/nvidiactl", "/dev/dxg")
Played = tuple[Case, Arrays, float]
"""A case that ran: what it wrote, by the seam's names, and its milliseconds."""
spare = Spare()
atexit.register(spare.close)
_AHEAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="inputs")


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
        emulator.warm()


def fit() -> bool:
    """Whether the next submission may be claimed: the card is well, or this host grades without one."""
    return missing_gpu() is not None or health.fit(spare.examine)


def model() -> str | None:
    """The name of this host's GPU, e.g. "NVIDIA H200", or None where it has none to grade on."""
    found = probe() if missing_gpu() is None else ""
    return str(found["name"]) if isinstance(found, dict) else None


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order, and then measures, if the stage has a gate."""
    bench = spare.take()
    try:
        facts = probe()  # what the card is, known already; the bench may still be starting while the compiler runs
        if isinstance(facts, str):
            raise BenchError(facts)
        yield from _Grading(job, bench, facts).run()
    finally:
        printed = bench.printed()
        job.output = "\n".join(text for text in (job.output, printed) if text)
        bench.close()
        spare.renew()


class _Grading:
    """One submission on one bench."""

    def __init__(self, job: Job, bench: Bench, facts: dict[str, Any]) -> None:
        self.job = job
        self.bench = bench
        self.facts = facts
        self.limits = job.stage.spec.limits
        self.seam = parameters(job.stage.spec.seam.signature)
        self.made: dict[str, Arrays] = {}
        self.occupancy: dict[str, float] = {}
        self.orders: list[tuple[dict[str, Any], bytes]] = []
        job.machine = {
            "gpu": str(facts["name"]),
            "driver": f"CUDA {facts['driver'] // 1000}.{facts['driver'] % 1000 // 10}",
        }

    def run(self) -> Iterator[CaseRun]:
        prepared = _AHEAD.submit(self._prepare)
        with CheckPass(self.job, prepared.result) as checks:
            try:
                yield from self._graded(prepared, checks)
            except Failure as failure:
                raise checks.explained(failure) from None

    def _graded(self, prepared: Future[dict[str, Arrays]], checks: CheckPass) -> Iterator[CaseRun]:
        job = self.job
        target = architecture(*self.facts["capability"])
        cases = job.cases
        compiled = compile_cuda(job, target)
        prepared.result()
        takes = [Take(case, edge, self._place(case, edge)) for case in cases for edge in Edge]
        measured = [case for case in cases if case.measured] if job.stage.spec.gate else []
        bouts = {case.name: Take(_renamed(case), Edge.END, self._place(case, Edge.END)) for case in measured}
        tapes = record(job, compiled, self._device(), [*takes, *bouts.values()])
        self.bench.facts()
        played, failure = self._play(compiled, takes, tapes)
        for case, outputs, ms in played:
            yield self._finished(case, outputs, ms)
        if failure is not None:
            raise explained(failure, compiled.device, self.orders, job.cancelled)
        job.resources = with_occupancy(job.resources, compiled.cubin, self.occupancy)
        checks.conclude()
        for case in measured:
            if job.right:
                self._measure(case, bouts[case.name], tapes[bouts[case.name].label], target)

    def _play(
        self, compiled: Compiled, takes: list[Take], tapes: dict[str, Tape]
    ) -> tuple[list[Played], Failure | None]:
        """Runs every case, up to one that fails. Nothing is judged meanwhile: others wait for the turn at the card."""
        played: list[Played] = []
        try:
            with lock.shared():
                with self.job.phases.during(Phase.LOAD):
                    self._module("user", compiled.device)
                with self.job.phases.during(Phase.CASES):
                    for case in self.job.cases:
                        own = [take for take in takes if take.case.name == case.name]
                        played.append((case, *self._case(case, own, tapes)))
        except Failure as failure:
            return played, failure
        return played, None

    def _prepare(self) -> dict[str, Arrays]:
        """Makes all inputs, by case, and starts computing the references, the longest first, while the compiler runs."""
        cases = self.job.cases
        for case in sorted(cases, key=lambda case: -self._inputs(case)[self.seam[0].name].size):
            self.job.grader.foresee(case, self._inputs(case))
        return self.made

    def _device(self) -> Device:
        attributes = {int(which): int(value) for which, value in self.facts["attributes"].items()}
        return Device(str(self.facts["name"]), int(self.facts["memory"]), attributes)

    def _sizes(self, case: Case) -> dict[str, int]:
        inputs, shapes = self._inputs(case), self.job.grader.output_shapes(case)
        workspace = {WORKSPACE: self.limits.workspace_kb * 1024} if self.limits.workspace_kb else {}
        pointers = [part for part in self.seam if part.kind in (Kind.INPUT, Kind.OUTPUT)]
        return {
            part.name: inputs[part.name].nbytes if part.kind is Kind.INPUT else 4 * int(np.prod(shapes[part.name]))
            for part in pointers
        } | workspace

    def _inputs(self, case: Case) -> Arrays:
        if case.name not in self.made:
            self.made[case.name] = self.job.grader.inputs(case, self.job.seed)
        return self.made[case.name]

    def _outputs(self) -> frozenset[str]:
        return frozenset(part.name for part in self.seam if part.kind is Kind.OUTPUT) | {WORKSPACE}

    def _place(self, case: Case, edge: Edge) -> dict[str, Buffer]:
        return place(self._sizes(case), self._outputs(), edge)

    def _module(self, which: str, image: bytes) -> None:
        self.bench.send({"kind": "module", "which": which}, image)
        self._answer("loaded", GRACE_S, None)

    def _case(self, case: Case, takes: list[Take], tapes: dict[str, Tape]) -> tuple[Arrays, float]:
        """What a case wrote, and its milliseconds, from two runs that agree."""
        self.orders = [self._order(take, tapes[take.label]) for take in takes]
        (first, ms), (second, _) = (self._replay(case, order, data) for order, data in self.orders)
        for name, values in first.items():
            check_repeat(case.name, name, values, second[name])
        return first, ms

    def _finished(self, case: Case, outputs: Arrays, ms: float) -> CaseRun:
        inputs = self._inputs(case)
        judged = self.job.grader.finish(case, inputs, outputs)
        raw = {name: RawTensor("float32", values.shape, values.tobytes()) for name, values in judged.items()}
        return CaseRun(case, inputs, raw, ms)

    def _order(self, take: Take, tape: Tape) -> tuple[dict[str, Any], bytes]:
        """What the bench is asked for one run of a case, and the data that go with it."""
        inputs = self._inputs(take.case)
        given = b"".join(inputs[b.name].tobytes() for b in take.buffers.values() if not b.written)
        order = {
            "kind": "case",
            "buffers": {name: asdict(buffer) for name, buffer in take.buffers.items()},
            "tape": len(tape.raw),
            "within_s": self.limits.case_s,
        }
        return order, tape.raw + given

    def _replay(self, case: Case, order: dict[str, Any], data: bytes) -> tuple[Arrays, float]:
        self.bench.send(order, data)
        answer, payload = self._answer("result", self.limits.case_s + GRACE_S, case)
        check_memory(case.name, answer)
        self.occupancy.update(answer["occupancy"])
        outputs: Arrays = {}
        at = 0
        for name, shape in self.job.grader.output_shapes(case).items():
            size = 4 * int(np.prod(shape))
            outputs[name] = np.frombuffer(payload[at : at + size], np.float32).reshape(shape)
            at += size
        return outputs, float(answer["ms"])

    def _measure(self, case: Case, take: Take, tape: Tape, target: str) -> None:
        inputs = self._inputs(case)
        user = {name: b for name, b in take.buffers.items() if b.written}
        given = {name: b for name, b in take.buffers.items() if not b.written}
        baseline = place({name: b.size for name, b in user.items()}, self._outputs(), Edge.END)
        compiled = compiled_baseline(self.job.stage, target)
        other = replace(self.job, source=self.job.stage.text("baseline.cu"))
        base_take = Take(case, Edge.START, {**given, **baseline})
        base_tape = record(other, compiled, self._device(), [base_take])[base_take.label]
        order = {
            "kind": "measure",
            "stage": str(self.job.stage.folder),
            "case": case.name,
            "tapes": [len(tape.raw), len(base_tape.raw)],
            "inputs": {name: asdict(b) for name, b in given.items()},
            "user": {name: asdict(b) for name, b in user.items()},
            "baseline": {name: asdict(b) for name, b in baseline.items()},
            "shapes": {name: list(inputs[name].shape) for name in given},
            "gate": self.job.stage.spec.gate.speedup if self.job.stage.spec.gate else None,
            "within_s": self.limits.case_s,
            "measure_s": MEASURE_S,
        }
        payload = tape.raw + base_tape.raw + b"".join(inputs[name].tobytes() for name in given)
        with lock.exclusive(), self.job.phases.during(Phase.MEASURE):
            self._module("baseline", compiled.device)
            self.bench.send(order, payload)
            answer, _ = self._answer("measured", self.limits.wall_s, case)
        gate = self.job.stage.spec.gate
        self.job.timing = timing_of(answer, gate.speedup if gate else None)

    def _answer(self, wanted: str, within_s: float, case: Case | None) -> tuple[dict[str, Any], bytes]:
        return awaited(self.bench, self.job, {wanted}, within_s, case.name if case else None)


def timing_of(answer: dict[str, Any], gate: float | None) -> Timing:
    """What the bench measured, in milliseconds. gate: the speedup that passes, if there is one."""
    return Timing(
        baseline_ms=float(np.median(answer["baseline"])),
        user_ms=float(np.median(answer["user"])),
        speedup=answer["speedup"],
        speedup_low=answer["low"],
        speedup_high=answer["high"],
        gate=gate,
        baseline_samples_ms=tuple(answer["baseline"]),
        user_samples_ms=tuple(answer["user"]),
        facts=answer["facts"],
    )


def awaited(
    bench: Bench, job: Job, wanted: Collection[str], within_s: float, name: str | None
) -> tuple[dict[str, Any], bytes]:
    """The next answer of a kind that is wanted. Raises Failure for what the device code did, BenchError for us.

    name: the case's. What a measurement says on its way becomes progress.
    """
    while True:
        answer, payload = bench.receive(within_s, job.cancelled)
        if answer["kind"] in wanted:
            return answer, payload
        if answer["kind"] != "progress":
            raise ending(answer, name, job.stage.spec.limits) or _ours(answer)
        job.phases.progress.measured(answer["pairs"], answer["speedup"], answer["low"], answer["high"])


def _ours(answer: dict[str, Any]) -> BenchError:
    return BenchError(f"{answer['kind']}: {answer.get('what', '')}")


def _renamed(case: Case) -> Case:
    """The same case under another label: the timed call is recorded apart from the judged ones."""
    return case.model_copy(update={"name": f"{case.name}_timed"[:63]})
