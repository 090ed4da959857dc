"""The check pass of a CUDA file: the card's code, played in the check build on the CPU.

What it may do to a verdict is little, for it ran its own translation of the card's PTX: a race decides where all values came
out right, as it does where nothing but the emulator grades; another finding explains a failure or is told beside the verdict;
a submission that cannot be emulated has no finding.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kernelgate.reasons import Reason
from kernelgate.settings import settings
from kernelgate.stages import Backend, Stage
from worker.emulator.backend import check
from worker.emulator.compilers import ToolchainError
from worker.emulator.script import VIRTUAL, Machine
from worker.emulator.toolchain import missing, toolchain
from worker.judging.check_pass import THREADS, CheckPass
from worker.judging.failures import Cancelled, Failure
from worker.judging.grader import Arrays
from worker.judging.job import Job

log = logging.getLogger(__name__)
CASE_S = 1.0
"""A case's limit here, at most, before what the emulator grants on top (`run.cpu_allowance`): honest ones take a tenth."""
REPORTED = frozenset(
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
EXPLAINING = REPORTED | {Reason.DEADLOCK}
"""A barrier that not all threads reach may open on a card: reported only where the card hung as well."""
EXPLAINABLE = REPORTED - {Reason.RACE} | {
    Reason.KERNEL_FAILED,
    Reason.ILLEGAL_INSTRUCTION,
    Reason.ASSERTION,
    Reason.STACK_OVERFLOW,
    Reason.NOT_REPEATABLE,
    Reason.WRONG_WHEN_TIMED,
    Reason.TIME_LIMIT,
}
SURVIVED = "On the GPU the values came out right this time; threads that race may give others in the next run."


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
        THREADS.submit(prepare)


class AccessCheck(CheckPass):
    """Every access of the card's code is watched.

    inputs: gives the inputs of all cases by name; called on the pass's thread, and may wait until they are made. machine: the
    one that grades: its code is checked.
    """

    survived = SURVIVED
    decisive = frozenset({Reason.RACE})
    reported = REPORTED
    explainable = EXPLAINABLE

    def __init__(self, job: Job, inputs: Callable[[], dict[str, Arrays]], machine: Machine = VIRTUAL) -> None:
        super().__init__(job)
        self.machine = machine
        self._inputs = inputs

    def offered(self) -> bool:
        return offered(self.job.stage)

    def check(self, job: Job) -> int:
        toolchain()  # the first time it is built, which takes long and cannot be stopped
        if job.cancelled():
            raise Cancelled
        limits = job.stage.spec.limits
        limits = limits.model_copy(update={"case_s": min(limits.case_s, CASE_S)})
        return check(job, self.machine, limits, self._inputs)

    def is_finding(self, failure: Failure) -> bool:
        return failure.case is not None and failure.reason in EXPLAINING
