"""Compiles C++ that PTX was translated to, in the sandbox: one program a pass, with the player in the seam's place."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from kernelgate.reasons import Reason
from worker.emulator.toolchain import Pass, Toolchain, emulator_folder
from worker.judging.failures import Cancelled, Failure
from worker.judging.job import never
from worker.recording import kept
from worker.sandbox import End, Finished, Limits, Sandbox

COMPILE_LIMITS = Limits(wall_s=90, cpu_s=180, memory_mb=3072, scratch_mb=256, output_kb=512, processes=64)
LOG_LIMIT = 16_000


def build(
    toolchain: Toolchain, text: str, which: Pass, sandbox: Sandbox, cancelled: Callable[[], bool] = never
) -> bytes:
    """The program of a pass. Raises Failure: `compile_error` says what the compiler could not do, or for how long."""
    compile_it = toolchain.compile_command(which, "submission.cpp", "submission.o")
    link_it = toolchain.link_command(which, ["submission.o"], "submission")
    name = kept.key("program", str(toolchain.folder), compile_it, link_it, text)
    known = kept.read(name)
    if known is None:
        script = f"{shlex.join(compile_it)} && {shlex.join(link_it)}"
        known = {"submission": _built(toolchain, script, text, sandbox, cancelled)}
        kept.write(name, known)
    return known["submission"]


def _built(toolchain: Toolchain, script: str, text: str, sandbox: Sandbox, cancelled: Callable[[], bool]) -> bytes:
    done = sandbox.run(
        ["/bin/sh", "-c", script],
        limits=COMPILE_LIMITS,
        files={"submission.cpp": text.encode()},
        collect=["submission"],
        readable=[toolchain.folder, emulator_folder(), *toolchain.programs],
        cancelled=cancelled,
    )
    program = done.files.get("submission")
    if done.end is not End.EXITED or done.exit_code or program is None:
        raise _failure(done)
    return program


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
