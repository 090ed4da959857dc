"""Grades CUDA C++ on a machine without a GPU: compiled for the CPU, executed and checked in the sandbox, judged outside."""

from worker.emulate.beside import CheckPass, warm
from worker.emulate.routes import run_cases
from worker.emulate.toolchain import compiler, missing

__all__ = ["CheckPass", "compiler", "missing", "run_cases", "warm"]
