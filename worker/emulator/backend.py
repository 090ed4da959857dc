"""The backend `emulator`: compile for the CPU, run every case plainly, and the short ones again in the checking passes.

The sandbox gets a case's inputs and nothing else; what comes back are the bytes of every array, compared and judged out here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from kernelgate.reasons import Reason
from kernelgate.stages import Case, Stage
from kernelgate.verdicts import Phase
from worker.emulator.build import Programs, Seam, build
from worker.emulator.findings import KINDS, VIOLATIONS, Finding
from worker.emulator.resources import kernel_resources
from worker.emulator.run import Call, Ran, cpu_allowance, run
from worker.emulator.toolchain import Pass, Toolchain, toolchain
from worker.judging.arrays import RawTensor
from worker.judging.device_faults import check_repeat, input_changed
from worker.judging.endings import end_failure
from worker.judging.failures import Failure
from worker.judging.frames import printable
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.recording.record import violated
from worker.recording.seam import DTYPES, Kind, parameters
from worker.recording.tape import Violation
from worker.sandbox import End

CHECKED_BYTES = 768 << 10
"""Cases whose arrays take more are not run in the checking passes, which are 10 to 100 times slower."""
CHECKED_CASES = 4
DECOY_BYTES = 1 << 20
OUTPUT_LIMIT = 16_000


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order; raises Failure for what the checks find afterwards."""
    yield from Emulation(job).run()


def check(job: Job, inputs: Callable[[], dict[str, Arrays]]) -> int:
    """The check build alone, at the short cases all at once, for a submission that another backend grades.

    inputs: called when the program is there, for the inputs of all cases by name. Returns how many cases ran. Raises Failure
    for what was found in the first of them, by size, in which anything was.
    """
    emulation = Emulation(job)
    emulation._build([Pass.CHECK])
    emulation.made = inputs()
    sizes = [(case, emulation._call(case).size()) for case in job.cases_without_gpu]
    watched = representative(sizes)
    with ThreadPoolExecutor(min(len(watched), os.cpu_count() or 1), thread_name_prefix="check-case") as pool:
        runs = [pool.submit(emulation._run, case, Pass.CHECK) for case in watched]
    for each in runs:
        each.result()
    return len(watched)


def facts(tools: Toolchain) -> dict[str, str]:
    """What a result says of where it was emulated, whichever way the submission went."""
    return {"emulator": tools.compiler.version, "speed": "emulated: speed not judged on this machine"}


class Emulation:
    """One submission in the emulator, by way of its source."""

    def __init__(self, job: Job) -> None:
        self.job = job
        spec = job.stage.spec
        self.seam = Seam(spec.seam.name, spec.seam.signature, spec.file)
        self.parameters = parameters(spec.seam.signature)
        self.made: dict[str, Arrays] = {}
        self.programs: dict[Pass, bytes] = {}

    def run(self) -> Iterator[CaseRun]:
        job = self.job
        cases = job.cases_without_gpu
        for case in sorted(cases, key=lambda case: -self._call(case).size()):
            job.grader.foresee(case, self._inputs(case))
        self._prepare()
        watched = representative([(case, self._call(case).size()) for case in cases])
        with job.phases.during(Phase.CASES):
            for case in cases:
                ran = self._run(case, Pass.PLAIN)
                if case in watched:
                    # Before its values are judged: a race explains wrong values, not the other way round.
                    self._watch(case, ran)
                yield self._judged(case, ran)
        if job.right and not job.resources:
            job.resources = kernel_resources(job)

    def _prepare(self) -> None:
        """Compiles the submission. Raises Failure for what cannot be compiled, or cannot be emulated."""
        with self.job.phases.during(Phase.COMPILE):
            self._check_source()
            self.job.log = self._build([Pass.PLAIN]).log
            _check_loaders(self.programs[Pass.PLAIN])

    def _watch(self, case: Case, ran: Ran) -> None:
        """The checking passes, and another order of threads. Raises Failure for what they find."""
        if Pass.CHECK not in self.programs:  # not before: much ends at a file's first run
            self._build([Pass.CHECK, Pass.ASAN])
        for checking in (Pass.CHECK, Pass.ASAN):
            self._run(case, checking)
        other = self._run(case, Pass.PLAIN, order="random")
        why = "The second run took the threads in another order; a sum by atomicAdd, say, depends on it"
        self._compare(case, ran.written, other.written, why)

    def _compare(self, case: Case, first: Mapping[str, bytes], second: Mapping[str, bytes], why: str) -> None:
        """Raises Failure with `not_repeatable` unless both runs wrote the same bits to every output."""
        shapes = self.job.grader.output_shapes(case)
        for part in self.parameters:
            if part.kind is Kind.OUTPUT:
                one, other = (
                    np.frombuffer(data[part.name], DTYPES[part.type]).reshape(shapes[part.name])
                    for data in (first, second)
                )
                check_repeat(case.name, part.name, one, other, why)

    def _check_source(self) -> None:
        if "__global__" not in self.job.source:
            message = f"{self.seam.file} has no __global__ function that is used."
            raise Failure(Reason.NO_KERNEL, message)

    def _build(self, passes: Sequence[Pass]) -> Programs:
        """Compiles the submission for `passes`; together they take less than twice the longest of them."""
        job = self.job
        tools = toolchain()
        job.machine = facts(tools)
        made = build(
            tools,
            self.seam,
            job.source,
            passes,
            sandbox=job.sandbox,
            provided=headers(job.stage),
            cancelled=job.cancelled,
        )
        self.programs.update(made.executables)
        return made

    def _inputs(self, case: Case) -> Arrays:
        if case.name not in self.made:
            self.made[case.name] = self.job.grader.inputs(case, self.job.seed)
        return self.made[case.name]

    def _call(self, case: Case) -> Call:
        inputs, shapes = self._inputs(case), self.job.grader.output_shapes(case)
        outputs = {
            part.name: int(np.prod(shapes[part.name])) * np.dtype(DTYPES[part.type]).itemsize
            for part in self.parameters
            if part.kind is Kind.OUTPUT
        }
        values = {
            part.name: float(case.params[part.name])  # type: ignore[arg-type]
            for part in self.parameters
            if part.kind in (Kind.INT, Kind.FLOAT)
        }
        limits = self.job.stage.spec.limits
        return Call(self._given(inputs), outputs, values, limits.workspace_kb << 10, limits.static_kb << 10)

    def _given(self, inputs: Arrays) -> Arrays:
        return {part.name: inputs[part.name] for part in self.parameters if part.kind is Kind.INPUT}

    def _run(self, case: Case, watched: Pass, *, order: str = "forward") -> Ran:
        """Runs a case in a pass. Raises Failure for everything but a seam that returned with its arrays."""
        job, call = self.job, self._call(case)
        if watched is Pass.PLAIN and call.size() <= DECOY_BYTES:
            other = job.grader.inputs(case, f"{job.seed}-decoy")
            call = replace(call, decoy=self._given(other))
        ran = run(
            job.sandbox,
            self.seam,
            watched,
            self.programs[watched],
            call,
            limits=job.stage.spec.limits,
            order=order,
            workers=min(os.cpu_count() or 1, 4) if watched is Pass.PLAIN else 1,
            cancelled=job.cancelled,
        )
        printed = (ran.finished.stdout + ran.finished.stderr).decode(errors="replace")
        if watched is Pass.PLAIN and order == "forward" and printed:
            job.output = printable(f"{job.output}{printed}", limit=OUTPUT_LIMIT)
        if ran.finding is not None:
            raise self._found(ran.finding, ran.lines, case)
        if not ran.returned:
            raise self._gone(ran, case)
        self._check_call(ran, case, call)
        return ran

    def _check_call(self, ran: Ran, case: Case, call: Call) -> None:
        for name, array in call.inputs.items():
            if ran.written[name] != array.tobytes():
                raise input_changed(case.name, name)
        if ran.again:
            why = "Both calls were made by one process: every call has to compute, whatever it was given before"
            self._compare(case, ran.written, ran.again, why)
        if ran.error and not ran.launches:
            message = f"Case {case.name}: no kernel was launched; the last CUDA error is {ran.error}."
            raise Failure(Reason.LAUNCH_REFUSED, message, case=case.name)

    def _judged(self, case: Case, ran: Ran) -> CaseRun:
        shapes = self.job.grader.output_shapes(case)
        written = {
            part.name: np.frombuffer(ran.written[part.name], DTYPES[part.type]).reshape(shapes[part.name])
            for part in self.parameters
            if part.kind is Kind.OUTPUT
        }
        judged = self.job.grader.finish(case, self._inputs(case), written)
        raw = {name: RawTensor(str(values.dtype), values.shape, values.tobytes()) for name, values in judged.items()}
        return CaseRun(case, self._inputs(case), raw, ran.ms)

    # ------------------------------------------------------------------------------------------- how a run can fail

    def _found(self, finding: Finding, lines: Mapping[str, int], case: Case) -> Failure:
        reason = KINDS[finding.kind]
        if finding.kind in VIOLATIONS:
            call, _, rest = finding.text.partition("|")
            detail, _, size = rest.partition("|")
            number = int(size) if size.isdecimal() and len(size) < 20 else 0
            return violated(self.job, Violation(finding.kind, call, detail, number), case.name)
        verdict = self.job.stage.spec.races if reason is Reason.RACE else None
        return Failure(reason, self._sentence(finding, lines, case), case=case.name, verdict=verdict)

    def _sentence(self, finding: Finding, lines: Mapping[str, int], case: Case) -> str:
        watched = Pass(finding.build) if finding.build in set(Pass) else Pass.PLAIN
        limits = self.job.stage.spec.limits
        match finding.kind:
            case "static_memory":
                allowed = f"a workspace of {limits.workspace_kb} KiB" if limits.workspace_kb else "no workspace"
                size = int(finding.text) if finding.text.isdecimal() and len(finding.text) < 20 else 0
                return (
                    f"The __device__ and __constant__ variables take {size:,} bytes; the stage allows "
                    f"{limits.static_kb << 10:,} in all and {allowed}. Keep the row's state in registers and shared memory."
                )
            case "stream_not_joined":
                told = printable(finding.text, limit=200)
                return (
                    f"Case {case.name}: work on {told} is never waited for: record an event there and let the given "
                    "stream wait for it."
                )
            case "exception":
                return f"Case {case.name}: the seam threw an exception: {printable(finding.text, limit=500)}."
            case "still_running":
                told = printable(finding.sentence(lines), limit=1500)
                seconds = cpu_allowance(limits, watched, self._call(case))
                return f"Case {case.name}: stopped after {seconds:.0f} s of processor time. {told}"
            case _:
                return f"Case {case.name}, {finding.build} pass: {printable(finding.sentence(lines), limit=1500)}"

    def _gone(self, ran: Ran, case: Case) -> Failure:
        """A run that neither returned nor said why."""
        if ran.finished.end is not End.EXITED:
            return end_failure(ran.finished, case.name, self.job.stage.spec.limits)
        message = f"Case {case.name}: the host code ended the process; return from {self.seam.name} instead."
        return Failure(Reason.ENDED_EARLY, message, case=case.name)


def headers(stage: Stage) -> dict[str, str]:
    """What a stage lets its CUDA submissions include."""
    return {name: text for name, text in stage.provided.items() if name.endswith((".h", ".cuh", ".hpp"))}


def _check_loaders(program: bytes) -> None:
    """Refuses a program that loads libraries itself: nothing of ours does, so the name can only be the submission's."""
    for name in (b"dlopen", b"dlmopen"):
        if b"\0" + name + b"\0" in program:
            message = (
                f"The submission calls {name.decode()}; launch kernels through the CUDA runtime, which is recorded."
            )
            raise Failure(Reason.FORBIDDEN_CALL, message)


def representative(sizes: Sequence[tuple[Case, int]]) -> list[Case]:
    """Which cases the checking passes run: of those that are small enough the smallest, the largest and some between."""
    small = sorted((item for item in sizes if item[1] <= CHECKED_BYTES), key=lambda item: item[1])
    if len(small) <= CHECKED_CASES:
        return [case for case, _ in small]
    step = (len(small) - 1) / (CHECKED_CASES - 1)
    return [small[round(at * step)][0] for at in range(CHECKED_CASES)]
