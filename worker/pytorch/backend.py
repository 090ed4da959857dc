"""Grades a PyTorch submission on the CPU: one jailed process, one case at a time, raw arrays in and out.

The inputs of a case come to exist in the sandbox only when its turn has come, and no expected value ever does. The memory
file that carries them is sealed against resizing, so that what is read back has the size that was written; this process maps
nothing of it. It is opened twice: flags such as O_APPEND belong to an opening, and the sandbox may set them on its own.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from kernelgate.reasons import Reason
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.judging import frames
from worker.judging.arrays import RawTensor
from worker.judging.driver import driver
from worker.judging.endings import end_failure, failure_of, forged, mistake_of, sandbox_limits
from worker.judging.failures import Failure
from worker.judging.grader import Arrays
from worker.judging.job import CaseRun, Job
from worker.judging.way import Way, cannot_import
from worker.sandbox import Finished, Session, SessionEnded
from worker.sandbox.program import program

ALIGNMENT = 64
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
CALL_ROOM, MAX_ARGUMENTS = 32 << 20, 16
"""Bytes of the memory file for the arguments of one case's calls, and how many one call may have."""
MAX_PAYLOAD = 64 << 20
"""Bytes of one case's outputs at most: this process holds them, so a sandbox must not be able to ask for more."""


class Arena:
    """The memory file: inputs are written to it, read by the submission in place, and compared afterwards.

    So are the arguments of the calls that a driver makes: the sandbox writes them behind the inputs, each in a place of its
    own, and says before the call where, and what they are.
    """

    def __init__(self, size: int) -> None:
        self.kept: list[tuple[str, int, bytes]] = []
        self.calls = 0
        self.size = max(size, mmap.PAGESIZE)
        self.fd = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, SEALS)
        self.given = os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR | os.O_CLOEXEC)
        """The sandbox's own opening of the file; nothing here reads or writes through it."""

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.given)

    def write(self, inputs: Arrays, dtypes: Mapping[str, str]) -> list[dict[str, object]]:
        """Puts arrays into the file; returns what the runner needs to find them there: name, dtype, shape, offset."""
        self.kept, self.calls = [], 0
        listed, at = [], 0
        for name, array in inputs.items():
            os.pwrite(self.fd, array.tobytes(), at)
            listed.append({"name": name, "dtype": dtypes[name], "shape": list(array.shape), "offset": at})
            at += _aligned(array.nbytes)
        return listed

    def changed(self, inputs: Arrays) -> str | None:
        """The name of the first input whose bytes are not what was written, or None."""
        for name, offset, data in self.kept:
            if os.pread(self.fd, len(data), offset) != data:
                return name
        at = 0
        for name, array in inputs.items():
            if os.pread(self.fd, array.nbytes, at) != array.tobytes():
                return name
            at += _aligned(array.nbytes)
        return None

    def keep(self, inputs: Arrays, listed: object, held: bytes) -> None:
        """Notes a call's arguments, [name, offset, bytes] each, which `held` holds. Raises MalformedFrameError."""
        if not isinstance(listed, list) or len(listed) > MAX_ARGUMENTS:
            raise frames.MalformedFrameError(f"a call has a list of at most {MAX_ARGUMENTS} arguments")
        end = self.kept[-1][1] + len(self.kept[-1][2]) if self.kept else arena_size(inputs)
        self.calls += 1
        at = 0
        for item in listed:
            match item:
                case [str(name), int(offset), int(size)] if (
                    name.isidentifier() and end <= offset <= offset + size <= self.size
                ):
                    self.kept.append((name[:40], offset, held[at : at + size]))
                    end, at = offset + size, at + size
                case _:
                    raise frames.MalformedFrameError("an argument of a call is a name and a place behind all others")
        if at != len(held):
            raise frames.MalformedFrameError(f"the arguments of a call take {at} bytes; {len(held)} came")


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def arena_size(inputs: Arrays) -> int:
    return sum(_aligned(array.nbytes) for array in inputs.values())


@dataclass
class Execution:
    """The sandboxed side of one submission while it runs; `finished` is set once it is over."""

    job: Job
    session: Session
    arena: Arena
    finished: Finished | None = None

    def load(self) -> None:
        """Imports the submission. Raises Failure when its source or its import fails."""
        spec = self.job.stage.spec
        order = {
            "kind": "load",
            "module": spec.file.removesuffix(".py"),
            "source": self.job.source,
            "provided": {name.removesuffix(".py"): text for name, text in self.job.importable.items()},
            "driver": driver(self.job.stage),
            "seconds": spec.limits.case_s,
        }
        header, _ = self._exchange(frames.encode(order), None, time.monotonic() + spec.limits.case_s)
        if header.get("kind") != "loaded":
            raise self._failure(header, case=None)

    def run(self, case: Case, inputs: Arrays) -> CaseRun:
        """Runs one case. Raises Failure for what the submission did wrong."""
        order = {
            "kind": "case",
            "dtype": case.dtype,
            "params": case.given,
            "seconds": self.job.stage.spec.limits.case_s,
            "inputs": self.arena.write(inputs, self.job.grader.dtypes(case, inputs)),
        }
        start = time.perf_counter()
        deadline = time.monotonic() + self.job.stage.spec.limits.case_s
        header, payload = self._exchange(frames.encode(order), case.name, deadline)
        while header.get("kind") == "call":
            self._keep(header, payload, case, inputs)
            header, payload = self._exchange(b"", case.name, deadline)
        ms = (time.perf_counter() - start) * 1e3
        self._check_inputs(case, inputs)
        if header.get("kind") != "result":
            raise self._failure(header, case=case.name)
        if self.arena.calls < (least := self.job.grader.calls(case, inputs)):
            seen = frames.MalformedFrameError(
                f"{self.arena.calls} of {least} calls of the function were announced on it"
            )
            raise forged(seen, case.name)
        return CaseRun(case, inputs, self._tensors(header, payload, case), ms)

    def _keep(self, header: frames.Header, payload: bytes, case: Case, inputs: Arrays) -> None:
        try:
            self.arena.keep(inputs, header.get("arguments"), payload)
        except frames.MalformedFrameError as error:
            raise forged(error, case.name) from None

    def _check_inputs(self, case: Case, inputs: Arrays) -> None:
        changed = self.arena.changed(inputs)
        if changed is not None:
            raise Failure(
                Reason.INPUTS_CHANGED,
                f"Case {case.name}: the input {changed!r} was changed in place; return new tensors, leave inputs as they are.",
                case=case.name,
                mistake=mistake_of(self.job.stage, Reason.INPUTS_CHANGED),
            )

    def _tensors(self, header: frames.Header, payload: bytes, case: Case) -> dict[str, RawTensor]:
        try:
            return frames.tensors(header, payload)
        except frames.MalformedFrameError as error:
            raise forged(error, case.name) from None

    def _exchange(self, order: bytes, case: str | None, deadline: float) -> tuple[frames.Header, bytes]:
        """Sends a frame, if any, and waits for the next one until the deadline: the stage's seconds a case, or to load."""
        limits = self.job.stage.spec.limits

        def read(count: int) -> bytes:
            return self.session.read(count, within_s=max(0.0, deadline - time.monotonic()))

        try:
            if order:
                self.session.write(order, within_s=max(0.0, deadline - time.monotonic()))
            return frames.receive(read, max_payload=MAX_PAYLOAD)
        except SessionEnded as ended:
            self.finished = ended.finished
            files = [self.job.stage.spec.file, *self.job.beside]
            raise end_failure(ended.finished, case, limits, files) from None
        except frames.MalformedFrameError as error:
            raise forged(error, case) from None

    def _failure(self, header: frames.Header, case: str | None) -> Failure:
        return failure_of(self.job.stage, header, case)


@contextmanager
def executing(job: Job, first: Arrays) -> Iterator[Execution]:
    """A submission's process, from its start to its end. `first`: the largest case's inputs, for the memory file's size."""
    arena = Arena(arena_size(first) + CALL_ROOM)
    try:
        limits = sandbox_limits(job.stage.spec.limits)
        with job.sandbox.session(
            program("pytorch/runner", "session/devices"), limits=limits, fds=[arena.given], cancelled=job.cancelled
        ) as session:
            execution = Execution(job, session, arena)
            try:
                yield execution
            finally:
                finished = execution.finished or session.finish()
                job.output = frames.printable(
                    (finished.stdout + finished.stderr).decode(errors="replace"), limit=16_000
                )
    finally:
        arena.close()


def run_cases(job: Job) -> Iterator[CaseRun]:
    """The backend `torch`: yields each case as it has run, in the stage's order."""
    cases = job.cases_without_gpu
    inputs = {case.name: job.grader.inputs(case, job.seed) for case in cases}
    largest = max(inputs.values(), key=arena_size)
    with executing(job, largest) as execution:
        with job.phases.during(Phase.LOAD):
            execution.load()
        with job.phases.during(Phase.CASES):
            for case in cases:
                yield execution.run(case, inputs[case.name])
            job.explain(lambda case, given: execution.run(case, given).outputs)


WAYS = (Way("pytorch", run_cases, lambda: cannot_import("torch"), ("torch",)),)
