"""One CUDA submission as the CPU plays it: compiled by nvcc, translated from PTX, compiled again for the CPU, recorded.

The host code runs in the sandbox without any array and leaves a tape for each case, as for a GPU (docs/tape.md). The tapes
are played by a program of ours around the translated kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from threading import Event
from types import TracebackType

import numpy as np

from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.emulator.build import build
from worker.emulator.ptx import PtxError, translate
from worker.emulator.run import Call
from worker.emulator.script import VIRTUAL, Machine, placed, plain_name, script
from worker.emulator.toolchain import Pass, toolchain
from worker.judging.arrays import STORED
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import Job
from worker.recording.compile import Compiled, compile_cuda
from worker.recording.placement import WORKSPACE, Buffer, Edge
from worker.recording.record import Take, record
from worker.recording.seam import DTYPES, Kind, Parameter, seam_of
from worker.recording.tape import Tape


class Submission:
    """Programs and calls of one submission. Its programs are compiled on threads; leaving the `with` block stops that."""

    def __init__(self, job: Job, machine: Machine = VIRTUAL) -> None:
        self.job = job
        self.machine = machine
        self.file = job.stage.spec.file
        self.made: dict[str, Arrays] = {}
        self._tapes: dict[str, Tape] = {}
        self._text = ""
        self._programs: Future[dict[Pass, bytes]] | None = None
        self._fast: Future[dict[Pass, bytes]] | None = None
        self._stop = Event()
        self._threads = ThreadPoolExecutor(max_workers=3, thread_name_prefix="submission")

    def __enter__(self) -> Submission:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def stop(self) -> None:
        """Ends what still runs for it: nobody waits for that any more."""
        self._stop.set()

    def stopped(self) -> bool:
        return self._stop.is_set() or self.job.cancelled()

    # ------------------------------------------------------------------------------------------- what is compiled

    def compile(self, passes: Sequence[Pass]) -> Compiled:
        """Compiles and translates; the programs of `passes` follow on a thread. Raises Failure."""
        compiled = compile_cuda(self.job, self.machine.target)
        with self.job.phases.during(Phase.COMPILE):
            self._text = self._translated(compiled)
        self._programs = self._built(Pass.CHECK, passes)
        return compiled

    def hasten(self) -> None:
        """Compiles once more, without the checks' hooks, what takes long to play."""
        self._fast = self._built(Pass.PLAIN, [Pass.PLAIN])

    def program(self, which: Pass) -> bytes:
        """The program of a pass, waited for; the fast one where that was asked for. Raises Failure."""
        made = self._fast if self._fast is not None and which is Pass.PLAIN else self._programs
        if made is None:
            raise RuntimeError("nothing was compiled")
        return made.result()[which]

    def _built(self, code: Pass, passes: Sequence[Pass]) -> Future[dict[Pass, bytes]]:
        job = self.job
        return self._threads.submit(build, toolchain(), self._text, code, passes, job.sandbox, self.stopped)

    def _translated(self, compiled: Compiled) -> str:
        # What was shown of the kernels' resources names the first of them; a file with more has their own names for the rest.
        shown = tuple(zip(compiled.cubin.kernels, (each.kernel for each in self.job.resources), strict=False))
        text = translation(compiled.ptx.decode(errors="replace"), self.file, shown)
        if isinstance(text, Failure):
            raise Failure(text.reason, text.message, log=self.job.log)
        return text

    def record(self, compiled: Compiled, cases: Sequence[Case]) -> None:
        """Runs the host code once for each case. Raises Failure for what it did."""
        takes = [Take(case, Edge.END, self._buffers(case)) for case in cases]
        tapes = record(self.job, compiled, self.machine.device, takes)
        self._tapes = {take.case.name: tapes[take.label] for take in takes}

    # --------------------------------------------------------------------------------------------- what is played

    def inputs(self, case: Case) -> Arrays:
        if case.name not in self.made:
            self.made[case.name] = self.job.grader.inputs(case, self.job.seed)
        return self.made[case.name]

    def prepare(self, cases: Sequence[Case], at_once: Callable[[Case], bool]) -> Future[None]:
        """Makes all inputs while a compiler runs, and starts computing the references of those cases that come first."""

        def prepare() -> None:
            for case in cases:
                self.inputs(case)
            self.foresee([case for case in cases if at_once(case)])

        return self._threads.submit(prepare)

    def foresee(self, cases: Sequence[Case]) -> None:
        """Starts computing references, the longest first."""
        for case in sorted(cases, key=lambda case: -self.size(case)):
            self.job.grader.foresee(case, self.inputs(case))

    def decoy(self, case: Case) -> Arrays:
        """Other inputs for the same case."""
        return self._given(case, self.job.grader.inputs(case, f"{self.job.seed}-decoy"))

    def size(self, case: Case) -> int:
        """Bytes of a case's arrays."""
        return sum(array.nbytes for array in self._given(case, self.inputs(case)).values()) + sum(
            self._sizes(case).values()
        )

    def call(self, case: Case, others: Arrays | None = None) -> Call:
        """What a program plays a case with: its inputs, or others."""
        buffers, inputs = self._buffers(case), self._given(case, others or self.inputs(case))
        scratch = {plain_name(name): it.size for name, it in buffers.items() if name == WORKSPACE}
        addresses = {plain_name(name): it.address for name, it in buffers.items()}
        return Call(inputs, self._sizes(case), scratch, addresses, script(self._tapes[case.name]))

    def written(self, case: Case, data: Mapping[str, bytes]) -> Arrays:
        """What the seam wrote, as arrays of the case's shapes."""
        given = {name: array.shape for name, array in self.inputs(case).items()}
        shapes = given | self.job.grader.output_shapes(case)
        return {
            part.name: np.frombuffer(data[part.name], STORED[DTYPES[part.type]]).reshape(shapes[part.name])
            for part in self.seam(case)
            if part.kind in (Kind.OUTPUT, Kind.INOUT) and part.name in data
        }

    def seam(self, case: Case) -> tuple[Parameter, ...]:
        return seam_of(self.job.stage, case)

    def _given(self, case: Case, inputs: Arrays) -> Arrays:
        return {part.name: inputs[part.name] for part in self.seam(case) if part.kind in (Kind.INPUT, Kind.INOUT)}

    def _sizes(self, case: Case) -> dict[str, int]:
        shapes = self.job.grader.output_shapes(case)
        return {
            part.name: int(np.prod(shapes[part.name])) * part.itemsize
            for part in self.seam(case)
            if part.kind is Kind.OUTPUT
        }

    def _buffers(self, case: Case) -> dict[str, Buffer]:
        inputs = {name: array.nbytes for name, array in self._given(case, self.inputs(case)).items()}
        return placed(inputs, self._sizes(case), self.job.stage.spec.limits.workspace_kb << 10)


@lru_cache(maxsize=8)
def translation(ptx: str, file: str, shown: tuple[tuple[str, str], ...]) -> str | Failure:
    """A module as C++, or why it cannot be emulated. shown: kernels' names for people. Kept, for files that come again."""
    try:
        return translate(ptx, file, dict(shown)).text
    except PtxError as error:
        where = f", line {error.line}" if error.line else ""
        kernel = f", kernel {error.kernel[:200]}" if error.kernel else ""
        message = f"{file}{where}{kernel}: {error.message}; docs/emulator.md says what is."
        return Failure(Reason.CANNOT_EMULATE, message)
