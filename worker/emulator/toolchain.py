"""A compiler with its flags, and what is compiled once for it: the player with its runtime, and a precompiled header.

Both lie in `emulator/<hash>` where builds are kept. The hash covers the compiler, the flags and every file of
`kernels/emulator`: a new release, or another compiler, makes a new folder. Building takes about 15 s once; several workers wait
for one another.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path

from kernelgate.settings import settings
from worker.emulator.compilers import Compiler, ToolchainError, find_compiler
from worker.recording import kept
from worker.recording.native import BuildError, recorder

HEADER = "module.h"
"""What every translated module includes."""
RUNTIME = ("runtime.o", "switch.o")
BUILD_S = 900
"""Each takes less than ten seconds of an idle processor."""


class Pass(StrEnum):
    """One build of a submission: what its kernels are watched for."""

    PLAIN = "plain"
    """Crashes, deadlocks, misalignment and writes past an array's pages are seen."""
    CHECK = "check"
    """Shadow memory: races, uninitialised reads, misalignment, missing barriers, accesses outside arrays and variables."""


# DWARF 4: in gcc 12's DWARF 5 a `#line` does not rename the file, and binutils then finds no line of the submitter's.
COMMON = ("-std=c++17", "-g1", "-gdwarf-4", "-w", "-fno-pie", "-fno-omit-frame-pointer")
RUNTIME_LEVEL = "-O2"
TRANSLATED = (
    "-O1",
    "-fno-exceptions",
    "-fno-var-tracking",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-finite-loops",
)
"""For C++ that PTX was translated to: nvcc has optimised and fused it already, integers wrap, memory has no types."""
GCC_CHECKS = ("-fno-sanitize-recover=alignment", "--param", "tsan-distinguish-volatile=1",
              "--param", "tsan-instrument-func-entry-exit=0")  # fmt: skip
# clang++ leaves out a read that a write to the same place follows, which would hide that nothing had been written there.
CLANG_CHECKS = ("-mllvm", "-tsan-distinguish-volatile=1", "-mllvm", "-tsan-instrument-read-before-write=1",
                "-mllvm", "-tsan-instrument-func-entry-exit=0")  # fmt: skip
VECTOR_FEATURES = {"avx2": "-mavx2", "fma": "-mfma", "f16c": "-mf16c"}


def emulator_folder() -> Path:
    return settings().kernels_dir / "emulator"


def _vector_flags(machine: str) -> tuple[str, ...]:
    """Instructions that the host has: fused multiply-add rounds as a GPU does, without it sums differ in the last place.

    Every aarch64 has them.
    """
    if machine != "x86_64":
        return ()
    try:
        words = set(Path("/proc/cpuinfo").read_text().split())
    except OSError:
        return ()
    return tuple(flag for feature, flag in VECTOR_FEATURES.items() if feature in words)


@dataclass(frozen=True)
class Toolchain:
    """A compiler with its flags, and the folder of what was prebuilt for them."""

    compiler: Compiler

    @cached_property
    def programs(self) -> tuple[Path, ...]:
        """Folders that the sandbox has to show for the compiler to run there: what lies below /usr it shows anyway."""
        path = self.compiler.path
        told = subprocess.run([path, "-print-search-dirs"], capture_output=True, text=True, timeout=30, check=False)
        install = [Path(line.split(": ", 1)[1]) for line in told.stdout.splitlines() if line.startswith("install: /")]
        return tuple(folder for folder in (path.parent, *install) if not folder.is_relative_to("/usr"))

    @cached_property
    def folder(self) -> Path:
        flags = [self.flags(build) for build in Pass]
        digest = hashlib.sha256(repr((self.compiler.version, self.compiler.machine, flags)).encode())
        for path in sorted(emulator_folder().rglob("*")):
            if path.is_file() and path.suffix in ("", ".h", ".cpp", ".S"):
                digest.update(path.name.encode() + path.read_bytes())
        return kept.folder() / "emulator" / digest.hexdigest()[:16]

    def flags(self, build: Pass) -> tuple[str, ...]:
        """Compiler flags for translated modules and their precompiled header alike: they have to agree. With the checks' hooks,
        or for a module that plays so long that it is worth being compiled once more without them.
        """
        flags = (*self.runtime_flags(build), *TRANSLATED)
        if build is Pass.PLAIN:
            return flags
        return (*flags, "-fsanitize=thread,alignment", *(CLANG_CHECKS if self.compiler.clang else GCC_CHECKS))

    def runtime_flags(self, build: Pass) -> tuple[str, ...]:
        """For our own files: told which pass it is, and not instrumented."""
        flags = (
            *COMMON,
            RUNTIME_LEVEL,
            *_vector_flags(self.compiler.machine),
            "-I",
            str(emulator_folder() / "include"),
        )
        return (*flags, "-DEMULATOR_CHECK") if build is Pass.CHECK else flags

    def compile_command(self, build: Pass, source: str, output: str) -> list[str]:
        """Compiles a translated module, with the checks' hooks or without."""
        header = self.folder / build / HEADER
        include = ["-include-pch", f"{header}.pch"] if self.compiler.clang else ["-include", str(header)]
        return [str(self.compiler.path), *self.flags(build), *include, "-c", source, "-o", output]

    def link_command(self, build: Pass, objects: list[str], output: str) -> list[str]:
        runtime = [str(self.folder / build / name) for name in RUNTIME]
        # pthread is part of libc on new systems only.
        return [str(self.compiler.path), *self.linker, "-no-pie", *objects, *runtime, "-pthread", "-o", output]

    @cached_property
    def linker(self) -> tuple[str, ...]:
        """The faster linker where it lies beside the compiler's own; another processor's may not."""
        native = self.compiler.machine == platform.machine()
        return ("-fuse-ld=gold",) if native and shutil.which("ld.gold") else ()

    def prepare(self, passes: Sequence[Pass] = tuple(Pass)) -> None:
        """Builds what is missing. Raises ToolchainError with the compiler's words when our own files do not compile."""
        if not self._unprepared(passes):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f"{self.folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            wanted = self._unprepared(passes)
            for build in wanted:
                shutil.rmtree(self.folder / build, ignore_errors=True)
                (self.folder / build).mkdir()
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                parts = [
                    pool.submit(part, build) for build in wanted for part in (self._build_runtime, self._build_header)
                ]
            for done in parts:
                done.result()
            for build in wanted:
                (self.folder / build / "complete").touch()
        os.utime(self.folder)

    def _unprepared(self, passes: Sequence[Pass]) -> list[Pass]:
        return [build for build in passes if not (self.folder / build / "complete").exists()]

    def _build_header(self, build: Pass) -> None:
        folder = self.folder / build
        (folder / HEADER).write_text(f'#include "{emulator_folder() / "include" / "ptx" / HEADER}"\n')
        suffix = ".pch" if self.compiler.clang else ".gch"
        language = ["-x", "c++-header"]
        self._run([*self.flags(build), *language, str(folder / HEADER), "-o", str(folder / HEADER) + suffix])

    def _build_runtime(self, build: Pass) -> None:
        """The player and its runtime as one translation unit: the headers are read once instead of ten times."""
        folder, source = self.folder / build, emulator_folder()
        parts = [*sorted((source / "runtime").glob("*.cpp")), *sorted((source / "seam").glob("*.cpp"))]
        (folder / "runtime.cpp").write_text("".join(f'#include "{path}"\n' for path in parts))
        compiled, switch = (str(folder / name) for name in RUNTIME)
        self._run([*self.runtime_flags(build), "-c", str(folder / "runtime.cpp"), "-o", compiled])
        self._run(["-c", str(source / "runtime" / "switch.S"), "-o", switch])

    def _run(self, arguments: list[str]) -> None:
        command = [str(self.compiler.path), *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=BUILD_S, check=False, cwd=self.folder
            )
        except subprocess.TimeoutExpired:
            raise ToolchainError(
                f"{self.compiler.path} took more than {BUILD_S} s for one file of the emulator; is this machine busy?"
            ) from None
        if done.returncode:
            raise ToolchainError(f"{self.compiler.path} does not compile the emulator: {done.stderr[-2000:]}")


@cache
def toolchain() -> Toolchain:
    """This process's toolchain, prepared. Raises ToolchainError."""
    found = Toolchain(find_compiler())
    found.prepare()
    return found


def compiler() -> str:
    """The compiler that this host emulates CUDA with, by its path and version. Raises ToolchainError."""
    return str(find_compiler())


def missing() -> str | None:
    """Why this host cannot emulate CUDA, or None."""
    try:
        find_compiler()
        recorder()
    except (ToolchainError, BuildError) as error:
        return str(error)
    return None
