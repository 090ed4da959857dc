"""How the end of a sandboxed program, or what it said instead of a result, becomes a Failure: for every backend.

Whatever such a program says of itself was written beside hostile code: it chooses among the submission's own faults, no more.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Collection

from kernelgate.reasons import Reason, of_contract
from kernelgate.stages import Limits as StageLimits
from kernelgate.stages import Stage
from worker.judging import frames
from worker.judging.failures import Cancelled, Failure
from worker.judging.frames import printable
from worker.sandbox import End, Finished, Limits

_FRAME = re.compile(r'File "([^"\n]{1,100})", line (\d{1,7}) in ([^\n]{1,200})')
"""As faulthandler writes a line of a stack, the innermost first."""

_COMPILES = re.compile(rb'File "[^"\n]{0,300}/torch/_(?:dynamo|inductor)/')
_COMPILER = " torch.compile loads a compiler, which takes longer than that: leave it out in a stage that runs on a CPU."


def sandbox_limits(limits: StageLimits) -> Limits:
    """A stage's limits in the sandbox's units. CPU time may exceed wall time a little: threads count twice."""
    return Limits(
        wall_s=limits.wall_s,
        cpu_s=limits.wall_s * 2,
        memory_mb=limits.memory_mb,
        scratch_mb=limits.scratch_mb,
        output_kb=limits.output_kb,
        processes=limits.processes,
    )


def failure_of(stage: Stage, header: frames.Header, case: str | None) -> Failure:
    """What a runner said instead of a result: a driver's violation, or an exception of the submission's. case: None at load."""
    where = f"Case {case}: " if case else ""
    if header.get("kind") == "violation":
        reason = of_contract(frames.text(header, "reason", limit=60))
        what = f"{where}{frames.text(header, 'message')}"
        mistake = mistake_of(stage, reason)
        return Failure(reason, what, case=case, mistake=mistake)
    if header.get("kind") != "failed":
        return forged(frames.MalformedFrameError("the answer is none of result, violation and failed"), case)
    what = f"{frames.text(header, 'type', limit=100)}: {frames.text(header, 'message', limit=1000)}"
    message = f"{where}{what}" if case else f"{stage.spec.file} does not load: {what}"
    return Failure(_classify(header, case), message, case=case, log=frames.text(header, "text", limit=6000))


def mistake_of(stage: Stage, reason: Reason) -> str | None:
    """The stage's name for a mistake that shows as this contract violation, if it has one."""
    return next((mistake.name for mistake in stage.spec.mistakes if mistake.violation == reason), None)


def _classify(header: frames.Header, case: str | None) -> Reason:
    if header.get("memory") is True:
        return Reason.MEMORY_LIMIT
    if case is None and header.get("syntax") is True:
        return Reason.SYNTAX_ERROR
    if case is None and header.get("import") is True:
        return Reason.IMPORT_ERROR
    ended = frames.text(header, "type", limit=40) in ("SystemExit", "KeyboardInterrupt")
    return Reason.ENDED_EARLY if ended else Reason.EXCEPTION


def forged(error: Exception, case: str | None) -> Failure:
    """Only submitted code can have written a frame that is none, so it is the submission's fault."""
    message = f"The submission wrote to the grader's channel: {error}. Leave descriptors you did not open alone."
    return Failure(Reason.CHANNEL_MISUSED, message, case=case)


def line_at_the_end(finished: Finished, files: Collection[str]) -> str:
    """' It was at line 5, in update.', by what the process wrote just before its time was over; '' where it does not say.

    Submitted code can write the same: this is shown, and decides nothing.
    """
    _, timed_out, said = finished.stderr.decode(errors="replace").rpartition("Stack (most recent call first):")
    for file, line, function in _FRAME.findall(said) if timed_out else ():
        if file in files:
            inside = "" if function == "<module>" else f", in {printable(function, limit=60)}"
            place = f"line {line}" if file == next(iter(files)) else f"{file}:{line}"
            return f" It was at {place}{inside}."
    return ""


def end_failure(
    finished: Finished,
    case: str | None,
    limits: StageLimits,
    files: Collection[str] = (),
    doing: str = "while it was loaded",
) -> Failure:
    """The verdict on a sandboxed process that is gone though more was asked of it. Its exit status means nothing.

    files: those of the submission, the main one first, where the process says which line runs. doing: what it did, where that
    was for no case.
    """
    where = f"in case {case}" if case else doing
    match finished.end:
        case End.KILLED:
            raise Cancelled
        case End.WALL | End.CPU:
            at = line_at_the_end(finished, files)
            compiling = _COMPILER if _COMPILES.search(finished.stderr) else ""
            return Failure(Reason.TIME_LIMIT, f"Stopped after {limits.case_s:g} s {where}.{at}{compiling}", case=case)
        case End.MEMORY:
            used = f"Stopped {where}: it used more than {limits.memory_mb} MiB."
            return Failure(Reason.MEMORY_LIMIT, used, case=case)
        case End.OUTPUT:
            printed = f"Stopped {where}: it printed more than {limits.output_kb} KiB."
            return Failure(Reason.OUTPUT_LIMIT, printed, case=case)
        case End.SCRATCH:
            wrote = f"Stopped {where}: it wrote more than {limits.scratch_mb} MiB of files."
            return Failure(Reason.SCRATCH_LIMIT, wrote, case=case)
        case End.SIGNALED:
            name = (
                signal.Signals(finished.signal).name if finished.signal in set(signal.Signals) else str(finished.signal)
            )
            return Failure(Reason.CRASHED, f"The process was ended by {name} {where}.", case=case)
        case _:
            left = f"The process exited {where} (status {finished.exit_code}); return from the function instead."
            return Failure(Reason.ENDED_EARLY, left, case=case)
