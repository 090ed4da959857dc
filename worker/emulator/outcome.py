"""What a run that did not end well says about the submission: a Failure in the words that every CUDA backend uses."""

from __future__ import annotations

from collections.abc import Mapping

from kernelgate.reasons import Reason
from kernelgate.stages import Limits
from worker.emulator.findings import KINDS, Finding
from worker.emulator.run import Call, Ran, cpu_allowance, wall_allowance
from worker.emulator.toolchain import Pass
from worker.judging.endings import end_failure
from worker.judging.failures import Failure
from worker.judging.frames import printable
from worker.judging.job import Job
from worker.sandbox import End

DAMAGED = 87
"""The player's exit status for a tape that does not fit the kernels or the arrays."""


def failure_of(job: Job, limits: Limits, case: str, call: Call, ran: Ran) -> Failure | None:
    """Why a run's values are not judged, or None. limits: those that the run had."""
    if ran.finding is not None:
        return found_in(job, limits, case, call, ran.finding, ran.lines)
    if ran.error:
        message = f"Case {case}: a kernel was not launched: {ran.error}."
        return Failure(Reason.LAUNCH_REFUSED, message, case=case)
    return None if ran.returned else _gone(limits, case, ran)


def found_in(job: Job, limits: Limits, case: str, call: Call, finding: Finding, lines: Mapping[str, int]) -> Failure:
    """A finding as the failure that it is. lines: the submitter's, by program address."""
    reason = KINDS[finding.kind]
    sentence = printable(finding.sentence(lines), limit=1500)
    watched = Pass(finding.build) if finding.build in set(Pass) else Pass.PLAIN
    if finding.kind == "still_running":
        seconds = cpu_allowance(limits, watched, call)
        message = f"Case {case}: stopped after {seconds:.0f} s of processor time. {sentence}"
    elif finding.kind == "out_of_time":
        seconds = wall_allowance(limits, watched, call)
        message = f"Case {case}: stopped after {seconds:.0f} s on a busy machine. {sentence}"
    else:
        message = f"Case {case}, {finding.build} pass: {sentence}"
    return Failure(reason, message, case=case, verdict=job.stage.spec.races if reason is Reason.RACE else None)


def _gone(limits: Limits, case: str, ran: Ran) -> Failure:
    """A run that neither came to its end nor said why."""
    finished = ran.finished
    if finished.end is End.EXITED and finished.exit_code == DAMAGED:
        told = printable(finished.stderr.decode(errors="replace"), limit=200).strip()
        message = f"Case {case}: the recording is damaged ({told}); the submission wrote where it should not."
        return Failure(Reason.TAPE_DAMAGED, message, case=case)
    return end_failure(finished, case, limits)
