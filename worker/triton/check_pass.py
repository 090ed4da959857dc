"""The check pass of a Triton file beside a GPU: short cases interpreted on the CPU, with each launch's programs in two
orders.

A card runs programs in an order of its own, nearly always the same; that values came out right there says nothing of the next
run. The pass has a sandbox session of its own, works on a thread while the card grades the same submission, never holds the
card, and is over before anything is measured. What cannot be interpreted has no finding.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from threading import Event
from types import TracebackType

from kernelgate.reasons import Reason
from kernelgate.settings import settings
from kernelgate.stages import Case
from worker.judging.failures import Cancelled, Failure
from worker.judging.grader import Arrays, Grader
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.triton.interpret import ANOTHER_ORDER, interpreted

log = logging.getLogger(__name__)
CASES, MOST_BYTES = 4, 96 << 10
"""So many cases are interpreted, the largest of those whose inputs have so few bytes."""
STOP_S = 2.0
SURVIVED = "On the GPU the values came out right this time; programs that race may give others in the next run."
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="check-pass")


class ProgramsCheck:
    """One submission's pass: begun when the `with` block is entered, stopped when it is left. inputs: of all cases, by
    name.
    """

    def __init__(self, job: Job, inputs: dict[str, Arrays]) -> None:
        self.job = job
        self._inputs = inputs
        self._stop = Event()
        self._work: Future[tuple[Failure | None, str]] | None = None

    def __enter__(self) -> ProgramsCheck:
        if settings().check_pass:
            self._work = _THREADS.submit(_checked, self._own_job(), short(self.job.cases_without_gpu, self._inputs))
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
            grader=Grader(self.job.stage),
            phases=Phases(Unwatched()),
            cancelled=lambda: self._stop.is_set() or cancelled(),
            machine={},
        )

    def conclude(self) -> None:
        """Waits for the pass and notes what it found. Raises Failure where values depend on the order of programs."""
        if self._work is None:
            return
        failure, summary = _awaited(self._work, self.job.cancelled)
        self.job.machine["check pass"] = summary
        if failure is not None and self.job.right:
            raise Failure(failure.reason, f"{failure.message} {SURVIVED}", case=failure.case)


def short(cases: tuple[Case, ...], inputs: dict[str, Arrays]) -> list[Case]:
    """The cases that are interpreted."""
    sizes = {case.name: sum(array.nbytes for array in inputs[case.name].values()) for case in cases}
    small = [case for case in cases if sizes[case.name] <= MOST_BYTES]
    return sorted(small, key=lambda case: -sizes[case.name])[:CASES]


def _awaited(work: Future[tuple[Failure | None, str]], cancelled: Callable[[], bool]) -> tuple[Failure | None, str]:
    while True:
        try:
            return work.result(timeout=0.05)
        except NotYet:
            if cancelled():
                raise Cancelled from None


def _checked(job: Job, cases: list[Case]) -> tuple[Failure | None, str]:
    """(what was found, what to say of the pass). Whatever goes wrong with it, it is an extra: the submission is graded
    without.
    """
    start = time.perf_counter()
    try:
        count = sum(1 for _ in interpreted(job, cases))
    except Cancelled:
        return None, "not made: stopped"
    except Failure as failure:
        if ANOTHER_ORDER in failure.message:
            return failure, f"{failure.reason} (interpreted on the CPU)"
        if failure.reason is Reason.UNINITIALISED_READ:  # what stands there on a card is its own affair, and was judged
            return None, f"{failure.reason}: {failure.message}"[:500]
        return None, f"not made: {failure.reason}: {failure.message}"[:500]
    except Exception as error:
        log.exception("the check pass broke down")
        return None, f"not made: it broke down ({type(error).__name__})"
    return (
        None,
        f"nothing found ({count} short cases in two orders of programs, {time.perf_counter() - start:.1f} s on the CPU)",
    )
