"""The backend `interpreter`: host code recorded without data, kernels' IR interpreted in a second sandbox.

The second process holds a case's inputs and no submitted Python; the first holds Python and no data. So an answer can only have
been computed by what was launched. Speed is not judged.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.judging import frames
from worker.judging.arrays import RawTensor
from worker.judging.comparison import compare
from worker.judging.device_faults import check_repeat, input_changed
from worker.judging.endings import end_failure, sandbox_limits
from worker.judging.failures import Failure
from worker.judging.frames import printable
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.recording.placement import Edge
from worker.sandbox import Finished, Session, SessionEnded
from worker.sandbox.program import program
from worker.triton.cases import Placed, arrays_of, check_repeats, checked, judged, order_for, runs_of, same_work
from worker.triton.facts import tables
from worker.triton.recording import MAX_PAYLOAD, Recorder, Target
from worker.triton.tape import Kernel, Launch, Recording, as_line

NOMINAL = Target(
    capability=89,
    properties={
        "name": "no GPU: kernels are interpreted",
        "memory": 16 << 30,
        "max_shared_mem": 101_376,
        "multiprocessor_count": 128,
        "max_num_regs": 65_536,
        "warpSize": 32,
    },
    values_only=True,
)
"""What host code is told where there is no GPU. Below 9.0 Triton lowers tensor descriptors to plain pointers."""
MIXED_PARTS, MIXED_MS = 64, 2000.0
"""Batches into which a launch's programs are mixed in the second order, at most; and about what these may take in all."""
ANOTHER_ORDER = "The second run took the programs in another order; none may write what another one writes or reads"
FAULTS = {
    "illegal_address": Reason.ILLEGAL_ADDRESS,
    "misaligned_address": Reason.MISALIGNED_ADDRESS,
    "division_by_zero": Reason.DIVISION_BY_ZERO,
    "assertion": Reason.ASSERTION,
    "launch_refused": Reason.LAUNCH_REFUSED,
    "memory": Reason.MEMORY_LIMIT,
}
"""What a fault in the interpreter's words is called; any other word is what it cannot interpret."""


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case that is run without a GPU as it has run, in the stage's order."""
    job.machine = {"interpreter": "Triton IR on the CPU", "speed": "interpreted: speed not judged on this machine"}
    yield from interpreted(job, job.cases_without_gpu)


def interpreted(job: Job, cases: Sequence[Case]) -> Iterator[CaseRun]:
    """Yields some of a submission's cases as they have run. Raises Failure for what it did."""
    inputs = {case.name: job.grader.inputs(case, job.seed) for case in cases}
    for case in cases:
        job.grader.foresee(case, inputs[case.name])
    orders = [
        order_for(case, inputs[case.name], job.grader.dtypes(case, inputs[case.name]), (Edge.END, Edge.START))
        for case in cases
    ]
    found = Recorder(job, NOMINAL).record(orders)
    limits = replace(sandbox_limits(job.stage.spec.limits), processes=8)
    with (
        job.phases.during(Phase.CASES),
        job.sandbox.session(
            program("triton/interpreter", "triton/ir", "triton/writer", "triton/machine"),
            limits=limits,
            cancelled=job.cancelled,
        ) as session,
    ):
        interpreter = Interpreter(job, session)
        calls = {}
        for order in orders:
            recording = found[order.case.name]
            if isinstance(recording, Failure):
                raise recording
            first, second = checked(job, order, recording)
            calls[order.case.name] = first
            yield interpreter.run(first, second, recording, inputs[order.case.name])
        job.explain(lambda case, given: interpreter.ask(calls[case.name], found[case.name], given))
        kernels = {name: each.kernels for name, each in found.items() if isinstance(each, Recording)}
        job.tables = tables(list(calls.values()), kernels)


@dataclass(frozen=True)
class Played:
    """One run of a tape. unstated: the lines of masked loads that left lanes undefined."""

    outputs: dict[str, RawTensor]
    ms: float
    unstated: Sequence[int]


def _has_nan(raw: RawTensor) -> bool:
    return bool(np.isnan(raw.numbers()).any())


class Interpreter:
    """The sandboxed process that runs kernels, one case after another."""

    def __init__(self, job: Job, session: Session) -> None:
        self.job = job
        self.session = session
        self.known: dict[tuple[bytes, str], str] = {}

    def run(self, call: Placed, again: Placed, recording: Recording, inputs: Arrays) -> CaseRun:
        """Runs a case's tape on each of its inputs. Raises Failure for what its kernels did wrong.

        again: the second call that was recorded. What a file keeps of its first call shows there, and where it asks for other
        work than the first one, it is run too and has to agree.
        """
        if not call.take.results:  # a case about what the function refuses: it has said so while it was recorded
            return CaseRun(call.case, inputs, {}, None)
        entries = self._entries(call, recording)
        other = None if same_work(call, again, recording.kernels) else self._entries(again, recording)
        outputs, ms = [], 0.0
        for given in runs_of(inputs):
            played = self._play(call, entries, given)
            self._undefined(call, entries, given, played)
            self._mixed(call, entries, given, played)
            if other is not None:
                check_repeats(call.case, played.outputs, self._play(again, other, given).outputs)
            outputs.append(played.outputs)
            ms += played.ms
        return CaseRun(call.case, inputs, judged(self.job, call.case, inputs, outputs), ms)

    def ask(self, call: Placed, recording: Recording | Failure, inputs: Arrays) -> dict[str, RawTensor]:
        """The judged tensors of a case that has run, on other inputs. Raises Failure."""
        if isinstance(recording, Failure):
            raise recording
        outputs = [self._play(call, self._entries(call, recording), given).outputs for given in runs_of(inputs)]
        return judged(self.job, call.case, inputs, outputs)

    def _undefined(self, call: Placed, entries: list[dict[str, object]], given: Arrays, first: Played) -> None:
        """Raises Failure where values that masked loads leave undefined come out: other ones in their place change the results.

        Only where a result holds what they start as: NaN, or any whole number. What a mask discards changes nothing.
        """
        shown = [name for name, raw in first.outputs.items() if raw.dtype[0] not in "fb" or _has_nan(raw)]
        if not shown or not first.unstated:
            return
        stated = self._play(call, entries, given, others=first.unstated)
        for line in first.unstated:
            rest = [other for other in first.unstated if other != line]
            second = self._play(call, entries, given, others=rest) if rest else first
            for name in shown:
                one, other = stated.outputs[name].numbers().reshape(-1), second.outputs[name].numbers().reshape(-1)
                changed = np.flatnonzero(~((one == other) | (np.isnan(one) & np.isnan(other))))
                if changed.size:
                    raise self._unset(call.case, line, name, int(changed[0]))

    def _unset(self, case: Case, line: int, name: str, at: int) -> Failure:
        message = (
            f"Case {case.name}: line {line} of {self.job.stage.spec.file}: what a masked load leaves undefined comes out in "
            f"{name}, first in its element {at}: where the mask is false and `other` is not given, anything may stand. Give "
            "`other`, or keep those lanes out of what is computed."
        )
        return Failure(Reason.UNINITIALISED_READ, message, case=case.name)

    def _mixed(self, call: Placed, entries: list[dict[str, object]], given: Arrays, first: Played) -> None:
        """Plays the tape with every launch's programs in another order. Raises Failure where values depend on it.

        Values, not bits: numpy sums differently for other numbers of programs. Where the first order took long, programs are
        mixed into fewer batches.
        """
        parts = int(min(MIXED_PARTS, max(2, MIXED_MS / max(first.ms, 1.0))))
        seed = int(hashlib.sha256(f"{self.job.seed}/{call.case.name}/programs".encode()).hexdigest()[:8], 16)
        try:
            second = self._play(call, entries, given, {"seed": seed, "parts": parts}).outputs
        except Failure as failure:
            if failure.reason is Reason.CANNOT_INTERPRET:  # a wait that this order has no end for
                return
            raise
        for name, raw in first.outputs.items():
            one, other = raw.numbers(), second[name].numbers()
            if (
                compare(other, one, self.job.grader.loosest(call.case, name)).wrong & ~(np.isnan(one) & np.isnan(other))
            ).any():
                check_repeat(call.case.name, name, one, other, ANOTHER_ORDER)

    def _entries(self, call: Placed, recording: Recording) -> list[dict[str, object]]:
        """The tape with kernels by the names that the interpreter knows; sends those it does not know yet."""
        new: list[tuple[str, Kernel]] = []
        names = {}
        for key, kernel in recording.kernels.items():
            identity = (kernel.image, kernel.name)
            if identity not in self.known:
                self.known[identity] = f"i{len(self.known)}"
                new.append((self.known[identity], kernel))
            names[key] = self.known[identity]
        if new:
            listed = [{"key": key, "size": len(kernel.image)} for key, kernel in new]
            order = {"kind": "kernels", "file": self.job.stage.spec.file, "kernels": listed}
            self._send(frames.encode(order, b"".join(kernel.image for _, kernel in new)), call.case)
        return [
            as_line(replace(entry, kernel=names[entry.kernel]) if isinstance(entry, Launch) else entry)
            for entry in call.take.entries
        ]

    def _play(
        self,
        call: Placed,
        entries: list[dict[str, object]],
        given: Arrays,
        programs: dict[str, int] | None = None,
        others: Sequence[int] = (),
    ) -> Played:
        """programs: their order, if another than the usual. others: lines of masked loads that leave other undefined values."""
        tape = json.dumps(entries).encode()
        order = {
            "kind": "case",
            "file": self.job.stage.spec.file,
            "seconds": self.job.stage.spec.limits.case_s,
            "tape": len(tape),
            "programs": programs,
            "others": list(others),
            "buffers": [
                {"name": b.name, "address": b.address, "size": b.size, "given": name in given}
                for name, b in call.buffers.items()
            ],
            "results": [{"address": region.address, "size": region.size} for region in call.take.results],
        }
        data = b"".join(given[name].tobytes() for name in call.buffers if name in given)
        start = time.perf_counter()
        self._send(frames.encode(order, tape + data), call.case)
        header, payload = self._receive(call.case)
        if header.get("kind") != "result":
            raise self._fault(header, call.case)
        changed = header.get("changed")
        if isinstance(changed, list) and changed:
            raise input_changed(call.case.name, str(changed[0])[:40])
        expected = sum(region.size for region in call.take.results)
        if len(payload) != expected:
            raise RuntimeError(f"the interpreter sent {len(payload)} bytes; {expected} were asked for")
        lines = header.get("unstated")
        unstated = [line for line in lines if type(line) is int] if isinstance(lines, list) else []
        return Played(arrays_of(call.take.results, payload), (time.perf_counter() - start) * 1e3, unstated)

    def _send(self, message: bytes, case: Case) -> None:
        try:
            self.session.write(message, within_s=self.job.stage.spec.limits.case_s)
        except SessionEnded as ended:
            raise self._ended(ended.finished, case) from None

    def _receive(self, case: Case) -> tuple[frames.Header, bytes]:
        deadline = time.monotonic() + self.job.stage.spec.limits.case_s

        def read(count: int) -> bytes:
            return self.session.read(count, within_s=max(0.0, deadline - time.monotonic()))

        try:
            return frames.receive(read, max_payload=MAX_PAYLOAD)
        except SessionEnded as ended:
            raise self._ended(ended.finished, case) from None

    def _ended(self, finished: Finished, case: Case) -> Failure:
        spec = self.job.stage.spec
        return end_failure(finished, case.name, spec.limits, [spec.file])

    def _fault(self, header: frames.Header, case: Case) -> Failure:
        reason = frames.text(header, "reason", limit=40)
        line = header.get("line")
        where = f", line {line} of {self.job.stage.spec.file}" if type(line) is int and line > 0 else ""
        told = printable(frames.text(header, "message", limit=1000), limit=1000)
        if reason == "cannot_interpret":
            told = f"{told}: not interpreted on a machine without a GPU; a worker with a GPU runs it"
        return Failure(FAULTS.get(reason, Reason.CANNOT_INTERPRET), f"Case {case.name}: {told}{where}.", case=case.name)
