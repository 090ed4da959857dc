"""Which C++ compiler the emulator uses, and whether it has all that is needed: a version and a processor."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernelgate.settings import settings

OLDEST_GCC, OLDEST_CLANG = 12, 14
MACHINES = ("x86_64", "aarch64")
"""What the fibres' switch is written for (kernels/emulator/runtime/switch.S)."""
PATIENCE_S = 60


class ToolchainError(RuntimeError):
    """No compiler that can be used, or one that does not compile our own files; the text says which and what to do."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler. version: its own words, one line; machine: the processor it compiles for, as `uname -m` spells it."""

    path: Path
    version: str
    major: int
    machine: str

    @property
    def clang(self) -> bool:
        return "clang" in self.version

    def __str__(self) -> str:
        return f"{self.path} ({self.version})"


@cache
def compiler_at(path: Path) -> Compiler:
    """What the program at `path` says of itself."""
    major = _told(path, "-dumpversion").split(".")[0]
    version = _told(path, "--version").splitlines()
    machine = _told(path, "-dumpmachine").split("-")[0]
    return Compiler(path, version[0] if version else "unknown", int(major) if major.isdigit() else 0, machine)


def _told(path: Path, option: str) -> str:
    done = subprocess.run([path, option], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    return done.stdout.strip()


@cache
def shortcoming(compiler: Compiler) -> str | None:
    """Why the emulator cannot use a compiler, or None."""
    oldest = OLDEST_CLANG if compiler.clang else OLDEST_GCC
    if compiler.major < oldest:
        return f"{compiler.path} is version {compiler.major}; {oldest} or newer is needed"
    if compiler.machine not in MACHINES:
        return f"{compiler.path} compiles for {compiler.machine}; the fibres are written for {' and '.join(MACHINES)}"
    return None


def find_compiler() -> Compiler:
    """The compiler that the settings name, else g++, else clang++. Raises ToolchainError saying what was found."""
    stated = settings().emulator_compiler
    seen = []
    for name in (stated,) if stated else ("g++", "clang++"):
        path = shutil.which(name)
        if path is None:
            seen.append(f"{name} is not there")
            continue
        found = compiler_at(Path(path))
        why = shortcoming(found)
        if why is None and found.machine != platform.machine():
            why = f"{path} compiles for {found.machine}; this is {platform.machine()}"
        if why is None:
            return found
        seen.append(why)
    remedy = f"install g++ {OLDEST_GCC} or clang++ {OLDEST_CLANG}, or newer"
    if stated:
        remedy = f"KERNELGATE_EMULATOR_COMPILER={stated}: name another, or leave it empty for g++ or clang++"
    raise ToolchainError(f"no C++ compiler for the emulator ({'; '.join(seen)}); {remedy}")
