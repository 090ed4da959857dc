"""The backend `emulator`: the CPU plays the submission's tapes, every case plainly, and some again in the check build.

A sandboxed program gets a case's inputs and nothing else; what comes back are the bytes of every array, compared and judged
out here.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from kernelgate.case_lines import HIDDEN
from kernelgate.stages import Case, Limits
from kernelgate.verdicts import Phase
from worker.emulator import counts
from worker.emulator.outcome import failure_of, found_in
from worker.emulator.run import Call, Ran, Slice, addr2line, run
from worker.emulator.script import Machine
from worker.emulator.submission import Submission
from worker.emulator.toolchain import Pass, toolchain
from worker.judging.arrays import RawTensor
from worker.judging.device_faults import check_repeat, input_changed
from worker.judging.frames import printable
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.judging.traffic import Traffic
from worker.recording.seam import Kind

CHECKED_BYTES = 768 << 10
"""Cases whose arrays take more are watched in a slice: the check build is 10 to 100 times slower."""
CHECKED_CASES = 4
SLOW_MS = 600.0
"""A file one of whose short cases takes longer is compiled once more, to be fast, before the long ones are played."""
SLICED_CASES = 2
SLICE_BLOCKS = 6
UNDECIDED = frozenset({"deadlock", "still_running", "out_of_time", "out_of_memory"})
"""Findings that say nothing of a slice: its blocks may wait for others, and its limits are ours."""
DECOY_BYTES = 1 << 20
OUTPUT_LIMIT = 16_000
ANOTHER_ORDER = (
    "The second run took the threads in another order. A sum by atomicAdd depends on it, and so do lanes of a warp that expect "
    "one another to run in step, volatile or not, without __syncwarp()"
)
ANOTHER_CALL = "Both calls were made by one process: every call has to compute, whatever it was given before"


@dataclass(frozen=True)
class Watched:
    """Which cases the check build sees: as a whole, and in a slice of their blocks."""

    whole: Sequence[Case]
    sliced: Sequence[Case]

    def __len__(self) -> int:
        return len(self.whole) + len(self.sliced)


def watched(sizes: Sequence[tuple[Case, int]], seed: str) -> Watched:
    """Of the small cases the smallest, the largest and some between; of the others the largest, and one that the seed draws."""
    by_size = sorted(sizes, key=lambda item: item[1])
    small = [case for case, size in by_size if size <= CHECKED_BYTES]
    if len(small) > CHECKED_CASES:
        step = (len(small) - 1) / (CHECKED_CASES - 1)
        small = [small[round(at * step)] for at in range(CHECKED_CASES)]
    large = [case for case, size in by_size if size > CHECKED_BYTES]
    drawn = random.Random(f"{seed}/slices").sample(large[:-1], min(SLICED_CASES - 1, max(0, len(large) - 1)))  # noqa: S311
    return Watched(small, [*large[-1:], *drawn])


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order; raises Failure for what the submission did."""
    job.machine = facts()
    with Submission(job) as submission:
        cases = job.cases_without_gpu
        prepared = submission.prepare(cases, lambda case: submission.size(case) <= CHECKED_BYTES)
        compiled = submission.compile(tuple(Pass))
        prepared.result()
        submission.record(compiled, cases)
        with job.phases.during(Phase.COMPILE):
            submission.program(Pass.PLAIN)
        with job.phases.during(Phase.CASES):
            yield from Player(submission, job.stage.spec.limits).play()


def check(job: Job, machine: Machine, limits: Limits, inputs: Callable[[], dict[str, Arrays]]) -> int:
    """The check build alone, for a submission that another backend grades. Returns how many cases ran.

    machine: the one that grades. limits: of a case. inputs: called when the compiler has done, for the inputs of all cases by
    name. Raises Failure for what was found in the first case, by size, in which anything was.
    """
    with Submission(job, machine) as submission:
        compiled = submission.compile((Pass.CHECK,))
        submission.made = inputs()
        submission.record(compiled, job.cases_without_gpu)
        return Player(submission, limits).check()


def facts() -> dict[str, str]:
    """What a result says of where it was emulated."""
    return {"emulator": toolchain().compiler.version, "speed": "emulated: speed not judged on this machine"}


class Player:
    """Runs the cases of one submission, each within the limits of a case."""

    def __init__(self, submission: Submission, limits: Limits) -> None:
        self.submission = submission
        self.limits = limits
        self.job = submission.job
        self.cases = self.job.cases_without_gpu
        self.watched = watched([(case, submission.size(case)) for case in self.cases], self.job.seed)
        self.counted = self.watched.whole[-1] if self.watched.whole else None
        self.counts = b""
        self.cores = os.cpu_count() or 1

    def play(self) -> Iterator[CaseRun]:
        """The short cases, then the long ones if all of those were right: whoever is wrong hears of it when it shows.

        In the stage's order, several at once, for most of a short case is the way in and out.
        """
        short = [case for case in self.cases if self.submission.size(case) <= CHECKED_BYTES]
        long = [case for case in self.cases if case not in short]
        slowest = 0.0
        with ThreadPoolExecutor(self.cores, thread_name_prefix="case") as pool:
            try:
                for run in self._played(short, pool):
                    slowest = max(slowest, run.ms or 0.0)
                    yield run
                if self.job.right and long:
                    self.submission.foresee(long)
                    if slowest > SLOW_MS:
                        self.submission.hasten()
                    yield from self._played(long, pool)
                self.job.explain(self.ask)
                self._count()
            finally:
                self.submission.stop()
                pool.shutdown(wait=True, cancel_futures=True)

    def ask(self, case: Case, inputs: Arrays) -> Mapping[str, RawTensor]:
        """The judged tensors of a case on other inputs, played plainly. Raises Failure."""
        call = self.submission.call(case, inputs)
        ran = self._play(Pass.PLAIN, call, workers=1)
        failure = failure_of(self.job, self.limits, case.name, call, ran)
        if failure is not None:
            raise failure
        return self._tensors(case, inputs, ran)

    def _played(self, cases: Sequence[Case], pool: ThreadPoolExecutor) -> Iterator[CaseRun]:
        sliced = {case.name: pool.submit(self._slice, case) for case in self.watched.sliced if case in cases}
        played = [(case, pool.submit(self._case, case)) for case in cases]
        for case, ran in played:
            if case.name in sliced:
                sliced[case.name].result()
            yield self._judged(case, ran.result())

    def check(self) -> int:
        """The watched cases in the check build, all at once. Returns how many; raises Failure for the first finding."""
        cases = [*self.watched.whole, *self.watched.sliced]
        with ThreadPoolExecutor(min(len(cases), self.cores), thread_name_prefix="check-case") as pool:
            whole = [pool.submit(self._run, case, Pass.CHECK) for case in self.watched.whole]
            sliced = [pool.submit(self._slice, case) for case in self.watched.sliced]
        for ran in whole:
            ran.result()
        for part in sliced:
            part.result()
        self._count()
        return len(cases)

    def _case(self, case: Case) -> Ran:
        """Before its values are judged a short case is watched: a race explains wrong values, not the other way round."""
        ran = self._run(case, Pass.PLAIN)
        if case in self.watched.whole:
            self._run(case, Pass.CHECK)
            other = self._run(case, Pass.PLAIN, order="random")
            self._compare(case, ran.written, other.written, ANOTHER_ORDER)
        return ran

    def _count(self) -> None:
        """Leaves how the longest case that is watched as a whole uses memory, of a submission that is right."""
        case, places = self.counted, counts.read(self.counts)
        if case is None or not places or not self.job.right:
            return
        asked = addr2line(self.job.sandbox, self.submission.program(Pass.CHECK))
        call = self.submission.call(case)
        arrays = {name: array.nbytes for name, array in call.inputs.items()} | dict(call.outputs)
        shown = HIDDEN if case.title == HIDDEN else f"case {case.name}"
        self.job.traffic = Traffic(shown, counts.accesses(places, self.submission.file, asked), arrays)

    def _slice(self, case: Case) -> None:
        """Some blocks of a long case in the check build. Raises Failure for what is wrong there."""
        seed = random.Random(f"{self.job.seed}/{case.name}/blocks").getrandbits(32)  # noqa: S311
        call = replace(self.submission.call(case), slice=Slice(SLICE_BLOCKS, seed))
        ran = self._play(Pass.CHECK, call, workers=1)
        if ran.finding is not None and ran.finding.kind not in UNDECIDED:
            raise found_in(self.job, self.limits, case.name, call, ran.finding, ran.lines)

    def _run(self, case: Case, which: Pass, *, order: str = "forward") -> Ran:
        """Plays a case. Raises Failure for everything but a tape that was played to its end and left its inputs alone."""
        call = self.submission.call(case)
        if which is Pass.PLAIN and call.size() <= DECOY_BYTES:
            call = replace(call, decoy=self.submission.decoy(case))
        if which is Pass.CHECK and case is self.counted:
            call = replace(call, count=True)
        workers = min(self.cores, 4) if which is Pass.PLAIN and call.size() > DECOY_BYTES else 1
        ran = self._play(which, call, workers=workers, order=order)
        failure = failure_of(self.job, self.limits, case.name, call, ran)
        if failure is not None:
            if which is Pass.PLAIN:
                self._print(ran)
            raise failure
        self.counts = ran.counted or self.counts
        for part in self.submission.seam(case):
            if part.kind is Kind.INPUT and ran.written[part.name] != call.inputs[part.name].tobytes():
                raise input_changed(case.name, part.name)
        if ran.again:
            self._compare(case, ran.written, ran.again, ANOTHER_CALL)
        return ran

    def _play(self, which: Pass, call: Call, *, workers: int, order: str = "forward") -> Ran:
        return run(
            self.job.sandbox,
            self.submission.file,
            which,
            self.submission.program(which),
            call,
            limits=self.limits,
            order=order,
            workers=workers,
            cancelled=self.submission.stopped,
        )

    def _compare(self, case: Case, first: Mapping[str, bytes], second: Mapping[str, bytes], why: str) -> None:
        """Raises Failure with `not_repeatable` unless both runs agree in every output as the stage asks."""
        one, other = (self.submission.written(case, data) for data in (first, second))
        for name, values in other.items():
            tolerance = self.job.grader.repeat_tolerance(case, name)
            check_repeat(case.name, name, one[name], values, why, tolerance=tolerance)

    def _judged(self, case: Case, ran: Ran) -> CaseRun:
        self._print(ran)
        inputs = self.submission.inputs(case)
        return CaseRun(case, inputs, self._tensors(case, inputs, ran), ran.ms)

    def _tensors(self, case: Case, inputs: Arrays, ran: Ran) -> dict[str, RawTensor]:
        judged = self.job.grader.finish(case, inputs, self.submission.written(case, ran.written))
        return self.job.grader.raw(case, judged)

    def _print(self, ran: Ran) -> None:
        printed = (ran.finished.stdout + ran.finished.stderr).decode(errors="replace")
        if printed:
            self.job.output = printable(f"{self.job.output}{printed}", limit=OUTPUT_LIMIT)
