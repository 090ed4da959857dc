"""Grades CUDA C++ on a machine without a GPU: its tape is played and checked on the CPU, in the sandbox."""

from worker.emulator.backend import run_cases
from worker.emulator.check_pass import AccessCheck, warm
from worker.emulator.script import Machine
from worker.emulator.toolchain import compiler, missing

__all__ = ["AccessCheck", "Machine", "compiler", "missing", "run_cases", "warm"]
