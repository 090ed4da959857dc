"""A check pass beside a GPU: the CPU looks for what the card may have survived, while the card grades the same submission.

A card that ran a race well says nothing about the next run. A pass has sandboxes of its own, works on a thread, and never holds
the card. It is over before anything is measured: no submitted code shares the machine with a measurement, and what races is not
measured at all. That is waited for, so no verdict depends on how busy the machine was. Whatever goes wrong with a pass, it is
an extra: the submission is graded without.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, replace
from threading import Event
from types import TracebackType
from typing import ClassVar, Self

from kernelgate.reasons import Reason
from worker.judging.failures import Cancelled, Failure
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.judging.traffic import Traffic

log = logging.getLogger(__name__)
DIAGNOSIS_S = 10.0
"""How long a verdict that stands already waits for its explanation."""
STOP_S = 2.0
THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="check-pass")


@dataclass(frozen=True)
class Checked:
    """What came of a pass. finding: the first in the order of the cases. not_made: why there is nothing to say, or "".

    traffic: how the kernels used memory, where it was counted.
    """

    cases: int = 0
    seconds: float = 0.0
    finding: Failure | None = None
    not_made: str = ""
    traffic: Traffic | None = None


class CheckPass(ABC):
    """One submission's pass: begun when the `with` block is entered, stopped when it is left.

    A kind of pass says when it is made, how, which failures are findings, and what a finding may do. survived: what a submitter
    is told of a finding that decides. looked_at: what its cases are called.
    """

    survived: ClassVar[str]
    looked_at: ClassVar[str] = "cases"
    decisive: ClassVar[frozenset[Reason]] = frozenset(Reason)
    """Findings that are the verdict though all values came out right."""
    reported: ClassVar[frozenset[Reason]] = frozenset()
    """Findings that are told beside a right submission's verdict. Beside a wrong one's all are, where any is reported."""
    explainable: ClassVar[frozenset[Reason]] = frozenset()
    """Failures on the card that a finding may explain."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._stop = Event()
        self._work: Future[Checked] | None = None

    @abstractmethod
    def offered(self) -> bool:
        """Whether this host makes the pass for this submission."""

    @abstractmethod
    def check(self, job: Job) -> int:
        """Makes the pass on a job of its own. Returns how many cases ran; raises Failure for the first finding."""

    @abstractmethod
    def is_finding(self, failure: Failure) -> bool:
        """Whether what ended the pass says something of the submission wherever it runs."""

    def __enter__(self) -> Self:
        if self.offered():
            self._work = THREADS.submit(self._checked, self.own_job())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._work is not None and not self._work.cancel():
            wait([self._work], timeout=STOP_S)  # the sandbox may be closed next

    def own_job(self) -> Job:
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
        if failure.case is not None and failure.reason in self.explainable:
            checked = self._wait(DIAGNOSIS_S)
            if checked is not None and checked.finding is not None:
                failure.message = f"{failure.message} {_beside(checked.finding)}"
        return failure

    def conclude(self) -> None:
        """Waits for the pass and notes what it found. Raises Failure for a finding that decides what is right so far."""
        start = time.perf_counter()
        checked = self._wait(None)
        if self.job.cancelled():
            raise Cancelled
        if checked is None:
            return
        self.job.machine["check pass"] = self._summary(checked, time.perf_counter() - start)
        self.job.traffic = checked.traffic
        finding = checked.finding
        if finding is not None and self.job.right and finding.reason in self.decisive:
            message = f"{finding.message} {self.survived}"
            raise Failure(finding.reason, message, case=finding.case, verdict=finding.verdict)
        if finding is not None and (finding.reason in self.reported or (self.reported and not self.job.right)):
            self.job.finding = _beside(finding)

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

    def _checked(self, job: Job) -> Checked:
        start = time.perf_counter()
        cases, finding, not_made = 0, None, ""
        try:
            cases = self.check(job)
        except Cancelled:
            not_made = "stopped"
        except Failure as failure:
            if self.is_finding(failure):
                finding = failure
            else:
                not_made = f"{failure.reason}: {failure.message}"
        except Exception as error:
            log.exception("the check pass broke down")
            not_made = f"it broke down ({type(error).__name__})"
        return Checked(cases, time.perf_counter() - start, finding, not_made, job.traffic)

    def _summary(self, checked: Checked, waited: float) -> str:
        if checked.not_made:
            return f"not made: {checked.not_made}"[:500]
        what = "nothing found" if checked.finding is None else checked.finding.reason
        took = f"{checked.seconds:.1f} s on the CPU beside the grading, {waited:.1f} s of them waited for"
        return f"{what} ({checked.cases} {self.looked_at}, {took})" if checked.cases else f"{what} ({took})"


def _beside(finding: Failure) -> str:
    return f"Found on the CPU: {finding.message}"
