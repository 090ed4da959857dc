"""From a submission's text to programs that run it: rewritten here, compiled in the sandbox, one program a pass."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelgate.reasons import Reason
from worker.emulator.toolchain import Pass, Toolchain, declaration, emulator_folder, rewriter
from worker.judging.failures import Cancelled, Failure
from worker.judging.job import never
from worker.recording.seam import parameters
from worker.sandbox import End, Finished, Limits, Sandbox

COMPILE_LIMITS = Limits(wall_s=90, cpu_s=180, memory_mb=3072, scratch_mb=256, output_kb=512, processes=64)
LOG_LIMIT = 16_000
PROGRAM_LIMIT = 64 << 20
Commands = Sequence[tuple[list[str], list[str]]]
"""For each pass, what compiles a submission and what links it."""


@dataclass(frozen=True)
class Seam:
    """The function a submission defines: its name, its C++ signature and the file the submitter knows it by."""

    name: str
    signature: str
    file: str


@dataclass(frozen=True)
class Programs:
    """A compiled submission: an executable for every pass that was asked for. log: the compiler's warnings, bounded."""

    executables: Mapping[Pass, bytes]
    log: str


def build(
    toolchain: Toolchain,
    seam: Seam,
    source: str,
    passes: Iterable[Pass],
    *,
    sandbox: Sandbox,
    provided: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] = never,
) -> Programs:
    """Compiles `source` for every pass. Raises Failure with `compile_error` in the submitter's lines.

    provided: headers that the stage lets a submission include, by name; they are rewritten like the submission.
    """
    wanted = list(passes)
    files = {"submission.cpp": _rewritten(seam, source).encode(), seam.file: source.encode()}
    for name, text in (provided or {}).items():
        files[name] = rewriter().rewrite(text, name, main=False).text.encode()
    callers = {
        build: toolchain.caller(build, seam.name, seam.signature, parameters(seam.signature)) for build in wanted
    }
    commands = [
        (
            toolchain.compile_command(build, "submission.cpp", f"{build}.o"),
            toolchain.link_command(build, [f"{build}.o", str(callers[build])], str(build)),
        )
        for build in wanted
    ]
    done = _compiled(toolchain, wanted, commands, files, sandbox, cancelled)
    told = (done.stdout + done.stderr).decode(errors="replace")
    if done.end is not End.EXITED or done.exit_code != 0 or any(str(build) not in done.files for build in wanted):
        raise _compile_error(seam, told)
    return Programs({build: done.files[str(build)] for build in wanted}, messages(seam.file, told)[:LOG_LIMIT])


def build_translated(
    toolchain: Toolchain,
    text: str,
    passes: Iterable[Pass],
    *,
    sandbox: Sandbox,
    cancelled: Callable[[], bool] = never,
) -> Programs:
    """Compiles C++ that PTX was translated to, with what replays a tape in the seam's place. Raises Failure."""
    wanted = list(passes)
    commands = [
        (
            toolchain.translated_command(build, "submission.cpp", f"{build}.o"),
            toolchain.link_command(build, [f"{build}.o", str(toolchain.replayer(build))], str(build)),
        )
        for build in wanted
    ]
    done = _compiled(toolchain, wanted, commands, {"submission.cpp": text.encode()}, sandbox, cancelled)
    told = (done.stdout + done.stderr).decode(errors="replace")
    if done.exit_code != 0 or any(str(build) not in done.files for build in wanted):
        first = next((line for line in told.splitlines() if "error" in line), "it said nothing")[:300]
        raise _refused(Reason.CANNOT_EMULATE, f"The compiler refused the translation of the file's PTX: {first}", told)
    return Programs({build: done.files[str(build)] for build in wanted}, "")


def _rewritten(seam: Seam, source: str) -> str:
    module = rewriter()
    try:
        text = module.rewrite(source, seam.file).text
    except module.RewriteError as error:
        raise _refused(Reason(error.reason), f"{seam.file}, line {error.line}: {error.message}.", str(error)) from None
    except RecursionError:
        raise _refused(Reason.SYNTAX_ERROR, f"{seam.file}: expressions are nested too deeply to be read.", "") from None
    # Compiled against the declaration: another signature would otherwise be called with the wrong arguments.
    return f'{text}\n#line 1 "the seam of this stage"\n{declaration(seam.signature)}\n'


def _compiled(
    toolchain: Toolchain,
    passes: list[Pass],
    commands: Commands,
    files: Mapping[str, bytes],
    sandbox: Sandbox,
    cancelled: Callable[[], bool],
) -> Finished:
    """Runs the commands of all passes in the sandbox. Raises Failure where a limit ended them."""
    done = sandbox.run(
        ["/bin/sh", "-c", _script(commands)],
        limits=COMPILE_LIMITS,
        files=files,
        collect=[str(build) for build in passes],
        readable=[toolchain.folder, emulator_folder(), *toolchain.programs],
        cancelled=cancelled,
    )
    told = (done.stdout + done.stderr).decode(errors="replace")
    if done.end is End.KILLED:
        raise Cancelled
    if done.end in (End.WALL, End.CPU):
        raise _refused(Reason.COMPILE_TIME, f"The compiler was stopped after {COMPILE_LIMITS.wall_s:g} s.", told)
    if done.end is End.MEMORY:
        raise _refused(Reason.COMPILE_MEMORY, f"The compiler took more than {COMPILE_LIMITS.memory_mb} MiB.", told)
    return done


def _script(commands: Commands) -> str:
    """A shell script that compiles all passes at once; the first one's messages are shown, the others' are the same.

    Where the first was compiled and another was not, that one's are shown: a sanitizer may refuse what passes without it.
    """
    lines = ["status=0"]
    for at, (compile_it, link_it) in enumerate(commands):
        kept = "" if at == 0 else f" 2>messages{at}"
        lines.append(f"( {shlex.join(compile_it)} && {shlex.join(link_it)} ){kept} & job{at}=$!")
    lines += ["wait $job0 || status=1"]
    lines += [
        f"wait $job{at} || {{ [ $status = 1 ] || cat messages{at} >&2; status=1; }}" for at in range(1, len(commands))
    ]
    return "\n".join([*lines, "exit $status"])


# -------------------------------------------------------------------------------------------- what the compiler says

_PLACE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<rest>.*)$")
_INCLUDED = re.compile(r"In file included from |\s+from .*:\d+[,:]$")
_UNDEFINED = re.compile(r"undefined reference to `(?P<name>[^']{1,200})'")


def messages(file: str, told: str) -> str:
    """The compiler's words without our own headers: messages in the submitter's file with the source lines under them.

    A message inside a header of ours is moved to the submitter's line that led there.
    """
    kept: list[str] = []
    led_from = ""  # g++ names what led there before it says what is wrong, clang++ after
    unplaced = ""
    showing = False
    for line in told.splitlines():
        place = _PLACE.match(line)
        if place is None:
            showing = showing and not _INCLUDED.match(line)
            if showing and line.startswith((" ", "\t")):
                kept.append(line[:300])
            elif "undefined reference" in line or "multiple definition" in line:
                kept.append(_at_link(line)[:300])
            continue
        own = Path(place["file"]).name == file
        before, after = "required from" in place["rest"], "requested here" in place["rest"]
        wrong = "error: " in place["rest"]
        showing = (own and not before and not after) or "the seam of this stage" in place["file"]
        if showing:
            kept.append(f"{Path(place['file']).name}:{place['line']}: {_plain(place['rest'])}"[:400])
            led_from = unplaced = ""
        elif own and before:
            led_from = led_from or f"{file}:{place['line']}"
        elif own and unplaced:
            kept.append(f"{file}:{place['line']}: {unplaced}"[:400])
            unplaced = ""
        elif wrong and led_from:
            kept.append(f"{led_from}: {_plain(place['rest'])}"[:400])
            led_from = ""
        elif wrong:
            unplaced = _plain(place["rest"])
    return "\n".join(kept)


def _plain(text: str) -> str:
    """A message without names that only the emulator's headers know."""
    text = re.sub(r"::?emulator::launch<[^>]*>", "kernel launch", text)
    return re.sub(r"\bemulator_t_(\w+)", r"\1", text)


def _at_link(line: str) -> str:
    return line.split(": ", 1)[-1].split("): ")[-1]


def _compile_error(seam: Seam, told: str) -> Failure:
    text = messages(seam.file, told) or told[-2000:]
    undefined = _UNDEFINED.findall(told)
    if seam.name in undefined:
        message = f"There is no function `{seam.signature}`."
        return Failure(Reason.MISSING_FUNCTION, message, log=text[:LOG_LIMIT])
    if "the seam of this stage" in told and "error" in told:
        return _refused(
            Reason.WRONG_SIGNATURE, f"{seam.name} has another signature than the stage's: {seam.signature}", text
        )
    driver = [name for name in undefined if name.startswith(("cu", "nvrtc"))]
    if driver:
        message = f"The submission uses {driver[0]}, which cannot be recorded; docs/tape.md lists what can."
        return Failure(Reason.FORBIDDEN_CALL, message, log=text[:LOG_LIMIT])
    if undefined:
        return _refused(Reason.UNDEFINED_NAME, f"{seam.file} uses {undefined[0]}, which is defined nowhere.", text)
    first = next((line for line in text.splitlines() if "error" in line), text.splitlines()[0] if text else "")
    return _refused(Reason.COMPILER_ERROR, f"The compiler refused the file. {first[:300]}", text)


def _refused(reason: Reason, message: str, log: str) -> Failure:
    return Failure(reason, message, log=log[:LOG_LIMIT])
