"""Grades CUDA C++ on a machine without a GPU: its tape is played and checked on the CPU, in the sandbox."""

from kernelgate.settings import settings
from worker.emulator.backend import run_cases
from worker.emulator.check_pass import AccessCheck, warm
from worker.emulator.script import Machine
from worker.emulator.toolchain import compiler, missing
from worker.judging.way import Way


def _why_missing() -> str | None:
    return missing() if settings().emulator else "switched off (KERNELGATE_EMULATOR)"


WAYS = (Way("cuda", run_cases, _why_missing),)

__all__ = ["WAYS", "AccessCheck", "Machine", "compiler", "missing", "run_cases", "warm"]
