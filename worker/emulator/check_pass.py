"""The check pass beside a GPU: the card's code, played in the check build on the CPU while the card runs the same submission.

A card that ran a race well says nothing about the next run. The pass has sandboxes of its own, works on a thread while the
submission is compiled, recorded and replayed, and never holds the card. It is over before anything is measured: no submitted
code shares the machine with a measurement, and what races is not measured at all. That is waited for, so no verdict depends on
how busy the machine was; what bounds the pass is processor time.

What it may do to a verdict is little, for it ran its own translation of the card's PTX: a race decides where all values came
out right, as it does where nothing but the emulator grades; another finding explains a failure or is told beside the verdict;
a submission that cannot be emulated has no finding.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from threading import Event
from types import TracebackType

from kernelgate.reasons import Reason
from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage
from worker.emulator.backend import check
from worker.emulator.compilers import ToolchainError
from worker.emulator.script import VIRTUAL, Machine
from worker.emulator.toolchain import missing, toolchain
from worker.judging.failures import Cancelled, Failure
from worker.judging.grader import Arrays
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched

log = logging.getLogger(__name__)
CASE_S = 1.0
"""A case's limit here, at most, before what the emulator grants on top (`run.cpu_allowance`): honest ones take a tenth."""
DIAGNOSIS_S = 10.0
"""How long a verdict that stands already waits for its explanation."""
STOP_S = 2.0
TOLD = frozenset(
    {
        Reason.RACE,
        Reason.ILLEGAL_ADDRESS,
        Reason.MISALIGNED_ADDRESS,
        Reason.UNINITIALISED_READ,
        Reason.WARP_MASK,
        Reason.WARP_DIVERGENCE,
        Reason.BARRIER_MISUSED,
    }
)
"""Findings that are the program's own wherever it runs. Others may be the emulator's: its limits, or what it cannot do."""
EXPLAINS = TOLD | {Reason.DEADLOCK}
"""A barrier that not all threads reach may open on a card: only where the card hung as well is it worth a word."""
EXPLAINED = TOLD - {Reason.RACE} | {
    Reason.KERNEL_FAILED,
    Reason.ILLEGAL_INSTRUCTION,
    Reason.ASSERTION,
    Reason.STACK_OVERFLOW,
    Reason.NOT_REPEATABLE,
    Reason.WRONG_WHEN_TIMED,
    Reason.TIME_LIMIT,
}
"""Failures on the card that a finding may explain."""
SURVIVED = "On the GPU the values came out right this time; threads that race may give others in the next run."
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="check-pass")


@dataclass(frozen=True)
class Checked:
    """What came of a pass. found: the first finding in the order of the cases. not_made: why there is nothing to say, or ""."""

    cases: int = 0
    seconds: float = 0.0
    found: Failure | None = None
    not_made: str = ""


def offered(stage: Stage) -> bool:
    """Whether this host makes the pass for submissions of a stage: the stage is also emulated, and the host can."""
    wanted = settings().check_pass and settings().emulator
    return wanted and Backend.EMULATOR in stage.spec.backends and missing() is None


def warm() -> None:
    """Builds what the first submission would wait half a minute for, in the background."""

    def prepare() -> None:
        try:
            toolchain()
        except ToolchainError as error:
            log.warning("nothing can be emulated: %s", error)

    if settings().emulator and missing() is None:
        _THREADS.submit(prepare)


class CheckPass:
    """One submission's pass: begun when the `with` block is entered, stopped when it is left.

    inputs: gives the inputs of all cases by name; called on the pass's thread, and may wait until they are made. machine: the
    one that grades: its code is checked.
    """

    def __init__(self, job: Job, inputs: Callable[[], dict[str, Arrays]], machine: Machine = VIRTUAL) -> None:
        self.job = job
        self.machine = machine
        self._inputs = inputs
        self._stop = Event()
        self._work: Future[Checked] | None = None

    def __enter__(self) -> CheckPass:
        if offered(self.job.stage):
            self._work = _THREADS.submit(_checked, self._own_job(), self.machine, self._inputs)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._work is not None and not self._work.cancel():
            wait([self._work], timeout=STOP_S)  # the sandbox may be closed next

    def _own_job(self) -> Job:
        """The same submission with nothing to leave where the grading looks."""
        cancelled = self.job.cancelled
        return replace(
            self.job,
            phases=Phases(Unwatched()),
            cancelled=lambda: self._stop.is_set() or cancelled(),
            machine={},
        )

    def explained(self, failure: Failure) -> Failure:
        """A failure on the card, with what the pass found where that may be its reason."""
        if failure.case is not None and failure.reason in EXPLAINED:
            checked = self._wait(DIAGNOSIS_S)
            if checked is not None and checked.found is not None:
                failure.message = f"{failure.message} {_beside(checked.found)}"
        return failure

    def conclude(self) -> None:
        """Waits for the pass and notes what it found. Raises Failure for a race in a submission that is right so far."""
        start = time.perf_counter()
        checked = self._wait(None)
        if self.job.cancelled():
            raise Cancelled
        if checked is None:
            return
        waited = time.perf_counter() - start
        self.job.machine["check pass"] = _summary(checked, waited)
        found = checked.found
        if found is not None and found.reason is Reason.RACE and self.job.right:
            raise Failure(Reason.RACE, f"{found.message} {SURVIVED}", case=found.case, verdict=found.verdict)
        if found is not None and (found.reason in TOLD or not self.job.right):
            self.job.finding = _beside(found)

    def _wait(self, within_s: float | None) -> Checked | None:
        """What came of the pass; None when there is none, or when it takes longer. Raises Cancelled."""
        deadline = None if within_s is None else time.monotonic() + within_s
        while self._work is not None and (deadline is None or time.monotonic() < deadline):
            try:
                return self._work.result(timeout=0.05)
            except NotYet:
                if self.job.cancelled():
                    raise Cancelled from None
        return None


def _checked(job: Job, machine: Machine, inputs: Callable[[], dict[str, Arrays]]) -> Checked:
    """Runs the pass. Whatever goes wrong with it, it is an extra: the submission is graded without."""
    start = time.perf_counter()
    cases, found, not_made = 0, None, ""
    try:
        toolchain()  # the first time it is built, which takes long and cannot be stopped
        if job.cancelled():
            raise Cancelled
        limits = job.stage.spec.limits
        limits = limits.model_copy(update={"case_s": min(limits.case_s, CASE_S)})
        cases = check(job, machine, limits, inputs)
    except Cancelled:
        not_made = "stopped"
    except Failure as failure:
        found, not_made = (failure, "") if _tells(failure) else (None, f"{failure.reason}: {failure.message}")
    except Exception as error:
        log.exception("the check pass broke down")
        not_made = f"it broke down ({type(error).__name__})"
    return Checked(cases, time.perf_counter() - start, found, not_made)


def _tells(failure: Failure) -> bool:
    return failure.case is not None and failure.reason in EXPLAINS


def _beside(found: Failure) -> str:
    return f"Found on the CPU: {found.message}"


def _summary(checked: Checked, waited: float) -> str:
    if checked.not_made:
        return f"not made: {checked.not_made}"[:500]
    what = "nothing found" if checked.found is None else checked.found.reason
    took = f"{checked.seconds:.1f} s on the CPU beside the grading, {waited:.1f} s of them waited for"
    return f"{what} ({checked.cases} cases, {took})" if checked.cases else f"{what} ({took})"
