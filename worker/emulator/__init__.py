"""Grades CUDA C++ on a machine without a GPU: compiled for the CPU, executed and checked in the sandbox, judged outside."""

from worker.emulator.check_pass import CheckPass, warm
from worker.emulator.routes import run_cases
from worker.emulator.toolchain import compiler, missing

__all__ = ["CheckPass", "compiler", "missing", "run_cases", "warm"]
