"""Runs a submission's host code in the sandbox, without a GPU, and reads the tapes it leaves.

Nothing that the sandboxed process says of itself is believed: a tape that is not there or has no end is the submission's
doing, whatever the exit status was.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgate.reasons import Reason
from kernelgate.stages import Case, Stage
from kernelgate.verdicts import Phase
from worker.judging.endings import end_failure, sandbox_limits
from worker.judging.failures import Failure
from worker.judging.frames import printable
from worker.judging.job import Job
from worker.recording.compile import Compiled, demangled
from worker.recording.native import recorder
from worker.recording.placement import WORKSPACE, Buffer, Edge
from worker.recording.seam import Kind, Parameter, name_of, seam_of, signature_of
from worker.recording.tape import MalformedTapeError, Tape, UnjoinedError, Violation, read_tape
from worker.sandbox import End, Finished


@dataclass(frozen=True)
class Device:
    """The GPU that recorded code is told of: its name, memory in bytes, and CUDA's device attributes by number."""

    name: str
    memory: int
    attributes: Mapping[int, int]


@dataclass(frozen=True)
class Take:
    """One recording to be made: a case with its buffers in one of two places. timed: the number of a timed call, from 1
    on.
    """

    case: Case
    edge: Edge
    buffers: Mapping[str, Buffer]
    timed: int = 0

    @property
    def label(self) -> str:
        return f"{self.case.name}-{self.edge}-{self.timed}"


def record(job: Job, compiled: Compiled, device: Device, takes: list[Take]) -> dict[str, Tape]:
    """Records every take; tapes by label. Raises Failure for what the submission's host code did.

    Each seam is recorded by itself, in a process of its own.
    """
    found: dict[str, Tape] = {}
    for seam in dict.fromkeys(take.case.seam for take in takes):
        found |= _record(job, compiled, device, [take for take in takes if take.case.seam == seam])
    return found


def _record(job: Job, compiled: Compiled, device: Device, takes: list[Take]) -> dict[str, Tape]:
    with job.phases.during(Phase.RECORD):
        program = recorder()
        limits = job.stage.spec.limits
        numbers = shuffled([take.label for take in takes], job.seed)
        finished = job.sandbox.run(
            [str(program), "job.txt"],
            limits=replace(sandbox_limits(limits), wall_s=limits.case_s, cpu_s=2 * limits.case_s),
            files={
                "seam.so": compiled.library,
                "job.txt": _order(job.stage, compiled, device, takes, numbers).encode(),
            },
            collect=["load.tape", "ended.txt", *(f"{number}.tape" for number in numbers.values())],
            readable=[program.parent],
            cancelled=job.cancelled,
        )
        job.output = printable((finished.stdout + finished.stderr).decode(errors="replace"), limit=16_000)
        _check_loaded(job, finished, compiled.library, takes[0].case)
        return {take.label: _tape(job, finished, take, numbers[take.label]) for take in takes}


def shuffled(labels: Sequence[str], seed: str) -> dict[str, int]:
    """A number for each label, by which the sandbox knows it: neither a number nor the order of all of them says anything."""
    mixed = sorted(labels, key=lambda label: hashlib.sha256(f"{seed}/{label}".encode()).digest())
    return {label: number for number, label in enumerate(mixed, 1)}


def _order(stage: Stage, compiled: Compiled, device: Device, takes: list[Take], numbers: Mapping[str, int]) -> str:
    first = takes[0].case
    lines = ["library ./seam.so", f"seam {name_of(stage, first)}", f"workspace {stage.spec.limits.workspace_kb * 1024}"]
    lines += [f"device {device.name}", f"memory {device.memory}"]
    lines += [f"attribute {which} {value}" for which, value in device.attributes.items()]
    for kernel in compiled.cubin.kernels.values():
        sizes = " ".join(f"{offset}:{size}" for offset, size in kernel.parameters)
        resources = f"{kernel.registers} {kernel.shared_bytes} {kernel.frame_bytes} {kernel.max_threads}"
        lines.append(f"kernel {kernel.name} {resources} {sizes}")
    seam = seam_of(stage, first)
    lines += [
        " ".join(["case", str(numbers[take.label]), *(_argument(part, take) for part in seam), *_workspace(take)])
        for take in sorted(takes, key=lambda take: numbers[take.label])
    ]
    return "\n".join(lines) + "\n"


def _workspace(take: Take) -> list[str]:
    return [f"w{take.buffers[WORKSPACE].address}"] if WORKSPACE in take.buffers else []


def _argument(part: Parameter, take: Take) -> str:
    match part.kind:
        case Kind.INPUT | Kind.OUTPUT | Kind.INOUT:
            return str(take.buffers[part.name].address)
        case Kind.STREAM:
            return "stream"
        case Kind.INT:
            return str(take.case.params[part.name])
        case Kind.FLOAT:
            return f"f{take.case.params[part.name]}"


def _check_loaded(job: Job, finished: Finished, library: bytes, case: Case) -> None:
    data = finished.files.get("load.tape")
    limits = job.stage.spec.limits
    if data is None and finished.end in (End.WALL, End.CPU):
        what = f"The host code was stopped after {limits.case_s:g} s; it launches kernels and returns."
        raise Failure(Reason.TIME_LIMIT, what)
    if data is None:
        raise end_failure(finished, None, limits)
    tape = _read(job, data, {}, None)
    if tape.violation is not None:
        raise violated(job, tape.violation, None)
    if tape.failure is None:
        return
    kind, what = tape.failure
    if kind == "missing_function":
        raise Failure(Reason.MISSING_FUNCTION, _missing_function(job, library, case))
    symbol = what.rpartition("undefined symbol: ")[2].split(" ")[0].split(",")[0]
    if symbol != what:
        shown = printable(demangled(job.sandbox, [symbol])[0], limit=1000)
        unknown = f"The submission uses {shown}, which cannot be recorded; docs/tape.md lists what can."
        raise Failure(Reason.FORBIDDEN_CALL, unknown)
    raise Failure(Reason.NOT_LOADABLE, f"The library does not load: {what}.")


def _missing_function(job: Job, library: bytes, case: Case) -> str:
    """That the seam is not there, and which function of its name is, under a name that C++ has mangled."""
    name = name_of(job.stage, case)
    message = f"There is no function `{signature_of(job.stage, case)}`."
    mangled = re.search(rb"\0(_Z%d%s\w{1,500})\0" % (len(name), name.encode()), library)
    if mangled is None:
        return message
    shown = printable(demangled(job.sandbox, [mangled[1].decode()], with_parameters=True)[0], limit=1000)
    return f'{message} The file defines `{shown}`, a C++ function: `extern "C"` is missing before it.'


def _tape(job: Job, finished: Finished, take: Take, number: int) -> Tape:
    data = finished.files.get(f"{number}.tape")
    if data is None:
        raise _no_tape(job, finished, take, number)
    tape = _read(job, data, take.buffers, take.case.name)
    if tape.violation is not None:
        raise violated(job, tape.violation, take.case.name)
    if tape.failure is not None:
        what = f"Case {take.case.name}: the seam threw an exception: {tape.failure[1]}."
        raise Failure(Reason.EXCEPTION, what, case=take.case.name)
    if tape.last_error and not tape.launches:
        what = f"Case {take.case.name}: no kernel was launched; the last CUDA error is {tape.last_error}."
        raise Failure(Reason.LAUNCH_REFUSED, what, case=take.case.name)
    return tape


def _read(job: Job, data: bytes, buffers: Mapping[str, Buffer], case: str | None) -> Tape:
    where = f"Case {case}: " if case else ""
    try:
        return read_tape(data, buffers)
    except UnjoinedError as error:
        kernel = printable(demangled(job.sandbox, [error.work])[0], limit=1000)
        work = f"{kernel}, on stream {error.stream} of the submission's own,"
        message = f"{where}{work} is never waited for: record an event there and let the given stream wait for it."
        raise Failure(Reason.STREAM_NOT_JOINED, message, case=case) from None
    except MalformedTapeError as error:
        message = f"{where}the recording is damaged ({error}); the submission wrote where it should not."
        raise Failure(Reason.TAPE_DAMAGED, message, case=case) from None


def _no_tape(job: Job, finished: Finished, take: Take, number: int) -> Failure:
    """A case without a tape: stopped by a limit, ended by a signal, or gone without a word."""
    name = take.case.name
    if finished.end is not End.EXITED:
        return end_failure(finished, name, job.stage.spec.limits)
    ended = finished.files.get("ended.txt", b"").decode(errors="replace")
    for line in ended.splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == str(number) and words[1] == "signal":
            what = (
                f"Case {name}: the host code was ended by signal {words[2][:4]}; device pointers cannot be read there."
            )
            return Failure(Reason.CRASHED, what, case=name)
    what = f"Case {name}: the host code ended the process; return from {name_of(job.stage, take.case)} instead."
    return Failure(Reason.ENDED_EARLY, what, case=name)


REFUSED_CALLS = frozenset(
    {
        Reason.MANAGED_MEMORY,
        Reason.UNRECORDABLE_CALL,
        Reason.DRIVER_CALL,
        Reason.UPLOAD_TOO_LARGE,
        Reason.UNKNOWN_STREAM,
        Reason.TOO_MANY_CALLS,
    }
)


def violated(job: Job, violation: Violation, case: str | None) -> Failure:
    """What a call that a stage does not allow costs, in the words that every CUDA backend uses. case: None at load."""
    where = f"Case {case}: " if case else ""
    call = f"{violation.call}{_line_of(job.source, violation.call)}"
    if violation.reason == "workspace":
        limit = job.stage.spec.limits.workspace_kb
        allowed = f"a workspace of {limit} KiB" if limit else "no workspace"
        asked = f"{violation.size:,} bytes{_square(violation.size)}"
        message = f"{where}the stage allows {allowed}; {call} asked for {asked}."
        return Failure(Reason.WORKSPACE, message, case=case)
    reason = Reason(violation.reason) if violation.reason in REFUSED_CALLS else Reason.FORBIDDEN_CALL
    detail = f" ({printable(violation.detail, limit=200)})" if violation.detail else ""
    message = f"{where}{printable(call, limit=200)}{detail} is not allowed here; docs/tape.md lists what is."
    return Failure(reason, message, case=case)


def _line_of(source: str, call: str) -> str:
    """' (line 12)' where the source has the call on exactly one line."""
    lines = [number for number, line in enumerate(source.splitlines(), 1) if f"{call}(" in line or f"{call}<" in line]
    return f" (line {lines[0]})" if len(lines) == 1 else ""


def _square(size: int) -> str:
    side = round((size / 4) ** 0.5)
    return f", the size of a {side} × {side} float matrix" if side > 1 and side * side * 4 == size else ""
