"""Compiles C++ that PTX was translated to, in the sandbox, once for all passes; the player stands in the seam's place."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from kernelgate.reasons import Reason
from worker.emulator.toolchain import Pass, Toolchain, emulator_folder
from worker.judging.failures import Cancelled, Failure
from worker.judging.job import never
from worker.recording import kept
from worker.sandbox import End, Finished, Limits, Sandbox

COMPILE_LIMITS = Limits(wall_s=90, cpu_s=180, memory_mb=3072, scratch_mb=256, output_kb=512, processes=64)
LOG_LIMIT = 16_000


def build(
    toolchain: Toolchain,
    text: str,
    code: Pass,
    passes: Sequence[Pass],
    sandbox: Sandbox,
    cancelled: Callable[[], bool] = never,
) -> dict[Pass, bytes]:
    """The programs of passes, from one compilation: with the checks' hooks, which those of another pass take for nothing, or
    without. Raises Failure: `compile_error` says what the compiler could not do, or for how long.
    """
    compile_it = toolchain.compile_command(code, "submission.cpp", "submission.o")
    links = [toolchain.link_command(each, ["submission.o"], each) for each in passes]
    name = kept.key("programs", str(toolchain.folder), compile_it, *links, text)
    known = kept.read(name)
    if known is None:
        known = _built(toolchain, " && ".join(map(shlex.join, (compile_it, *links))), text, passes, sandbox, cancelled)
        kept.write(name, known)
    return {each: known[each] for each in passes}


def _built(
    toolchain: Toolchain,
    script: str,
    text: str,
    passes: Sequence[Pass],
    sandbox: Sandbox,
    cancelled: Callable[[], bool],
) -> dict[str, bytes]:
    done = sandbox.run(
        ["/bin/sh", "-c", script],
        limits=COMPILE_LIMITS,
        files={"submission.cpp": text.encode()},
        collect=[*passes],
        readable=[toolchain.folder, emulator_folder(), *toolchain.programs],
        cancelled=cancelled,
    )
    if done.end is not End.EXITED or done.exit_code or not set(passes) <= done.files.keys():
        raise _failure(done)
    return {each: done.files[each] for each in passes}


def _failure(done: Finished) -> Failure:
    told = (done.stdout + done.stderr).decode(errors="replace")
    match done.end:
        case End.KILLED:
            raise Cancelled
        case End.WALL | End.CPU:
            what = (
                Reason.COMPILE_TIME,
                f"Compiling the file's PTX for the CPU was stopped after {COMPILE_LIMITS.wall_s:g} s.",
            )
        case End.MEMORY:
            what = (
                Reason.COMPILE_MEMORY,
                f"Compiling the file's PTX for the CPU took more than {COMPILE_LIMITS.memory_mb} MiB.",
            )
        case _:
            first = next((line for line in told.splitlines() if "error" in line), "it said nothing")[:300]
            what = (Reason.CANNOT_EMULATE, f"The C++ compiler refused the translation of the file's PTX: {first}")
    return Failure(*what, log=told[:LOG_LIMIT])
