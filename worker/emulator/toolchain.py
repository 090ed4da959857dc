"""A compiler with its flags, and what is compiled once for it: the emulator's runtime and its precompiled header.

Both lie in `<data_dir>/emulator/<hash>`, where the hash covers the compiler, the flags and every file of `kernels/emulator`:
a new release, or another compiler, makes a new folder. Building takes about 15 s once; several workers wait for one another.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

from kernelgate.settings import settings
from worker.emulator.compilers import Compiler, ToolchainError, find_compiler
from worker.recording.seam import Kind, Parameter

HEADER = "cuda_runtime.h"
RUNTIME = ("runtime.o", "switch.o")
BUILD_S = 900
"""Each takes less than ten seconds of an idle processor."""


class Pass(StrEnum):
    """One build of a submission: what its kernels are watched for."""

    PLAIN = "plain"
    """As fast as it goes; crashes, deadlocks and writes past an array's pages are seen."""
    ASAN = "asan"
    """AddressSanitizer: accesses outside arrays, shared variables and a thread's local arrays."""
    CHECK = "check"
    """Shadow memory: races, uninitialised reads, misalignment, missing barriers, accesses outside device memory."""


# DWARF 4: in gcc 12's DWARF 5 a `#line` does not rename the file, and binutils then finds no line of the submitter's.
COMMON = ("-std=c++17", "-g1", "-gdwarf-4", "-w", "-fno-pie", "-ffp-contract=fast", "-fno-omit-frame-pointer")
GCC_CHECKS = ("-fno-sanitize-recover=alignment", "--param", "tsan-distinguish-volatile=1")
# clang++ leaves out a read that a write to the same place follows, which would hide that nothing had been written there.
CLANG_CHECKS = ("-mllvm", "-tsan-distinguish-volatile=1", "-mllvm", "-tsan-instrument-read-before-write=1")
TRANSLATED = ("-O1", "-fno-var-tracking", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-fno-finite-loops")
"""For C++ that PTX was translated to: nvcc has optimised and fused it already, integers wrap, memory has no types."""
VECTOR_FEATURES = {"avx2": "-mavx2", "fma": "-mfma", "f16c": "-mf16c"}


def cache_folder() -> Path:
    """Where prebuilt runtimes lie: where the setting says (the tests share one folder), else in the data folder."""
    stated = settings().emulator_cache
    return Path(stated) if stated else settings().data_dir / "emulator"


def emulator_folder() -> Path:
    return settings().kernels_dir / "emulator"


def rewriter() -> ModuleType:
    """The source rewriter."""
    return _loaded("rewriter")


def translator() -> ModuleType:
    """The translator of PTX."""
    return _loaded("ptx")


@cache
def _loaded(which: str) -> ModuleType:
    """A package of `kernels/emulator`, loaded by path: `kernels/` is no package."""
    name = f"kernelgate_cuda_{which}"
    folder = emulator_folder() / which
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ToolchainError(f"{folder} holds no package")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


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
        return cache_folder() / digest.hexdigest()[:16]

    def flags(self, build: Pass) -> tuple[str, ...]:
        """Compiler flags of a pass, for submissions and their precompiled header alike (they have to agree)."""
        # nvcc inlines every device function; g++ does so for small ones at -O3 alone, which is worth a factor of two.
        level = "-O3" if build is Pass.PLAIN else "-O2"
        flags = [*COMMON, level, *_vector_flags(self.compiler.machine), "-I", str(emulator_folder() / "include")]
        if build is Pass.ASAN:
            flags += ["-fsanitize=address", "-DEMULATOR_ASAN"]
        elif build is Pass.CHECK:
            flags += ["-fsanitize=thread,alignment", "-DEMULATOR_CHECK"]
            flags += CLANG_CHECKS if self.compiler.clang else GCC_CHECKS
        return tuple(flags)

    def runtime_flags(self, build: Pass) -> tuple[str, ...]:
        """For our own files: told which pass it is, and not instrumented."""
        ours = {*CLANG_CHECKS, *GCC_CHECKS}
        return tuple(flag for flag in self.flags(build) if "sanitize" not in flag and flag not in ours)

    def compile_command(self, build: Pass, source: str, output: str) -> list[str]:
        """Compiles a rewritten submission, with the precompiled header first as nvcc would include its own."""
        header = self.folder / build / HEADER
        include = ["-include-pch", f"{header}.pch"] if self.compiler.clang else ["-include", str(header)]
        # clang++ would show the rewritten line, where g++ shows the submitter's, which lies beside it.
        lines = ["-fno-caret-diagnostics"] if self.compiler.clang else []
        return [str(self.compiler.path), *self.flags(build), *lines, *include, "-c", source, "-o", output]

    def translated_command(self, build: Pass, source: str, output: str) -> list[str]:
        """Compiles translated PTX; without the precompiled header, which other flags made."""
        header = str(emulator_folder() / "include" / HEADER)
        return [
            str(self.compiler.path),
            *self.flags(build),
            *TRANSLATED,
            "-include",
            header,
            "-c",
            source,
            "-o",
            output,
        ]

    def link_command(self, build: Pass, objects: list[str], output: str) -> list[str]:
        sanitize = ["-fsanitize=address"] if build is Pass.ASAN else []
        runtime = [str(self.folder / build / name) for name in RUNTIME]
        # pthread is part of libc on new systems only.
        return [str(self.compiler.path), "-no-pie", *sanitize, *objects, *runtime, "-pthread", "-o", output]

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
        (folder / HEADER).write_text(f'#include "{emulator_folder() / "include" / HEADER}"\n')
        suffix = ".pch" if self.compiler.clang else ".gch"
        language = ["-x", "c++-header"]
        self._run([*self.flags(build), *language, str(folder / HEADER), "-o", str(folder / HEADER) + suffix])

    def _build_runtime(self, build: Pass) -> None:
        """All of the runtime as one translation unit: the headers are read once instead of ten times."""
        folder, source = self.folder / build, emulator_folder()
        parts = [*sorted((source / "runtime").glob("*.cpp")), source / "seam" / "host.cpp"]
        (folder / "runtime.cpp").write_text("".join(f'#include "{path}"\n' for path in parts))
        compiled, switch = (str(folder / name) for name in RUNTIME)
        self._run([*self.runtime_flags(build), "-c", str(folder / "runtime.cpp"), "-o", compiled])
        self._run(["-c", str(source / "runtime" / "switch.S"), "-o", switch])

    def caller(self, build: Pass, name: str, signature: str, parameters: tuple[Parameter, ...]) -> Path:
        """The object that calls a seam of this signature in a pass; compiled once."""
        return self._object(build, caller_source(name, signature, parameters))

    def replayer(self, build: Pass) -> Path:
        """The object that is called in a seam's place and does what its tape says; compiled once."""
        return self._object(build, f'#include "{emulator_folder() / "seam" / "replay.cpp"}"\n')

    def _object(self, build: Pass, text: str) -> Path:
        path = self.folder / build / f"caller-{hashlib.sha256(text.encode()).hexdigest()[:16]}.o"
        if path.exists():
            return path
        with tempfile.TemporaryDirectory() as scratch:
            source, made = Path(scratch) / "caller.cpp", Path(scratch) / "caller.o"
            source.write_text(text)
            include = ["-I", str(emulator_folder() / "seam")]
            self._run([*self.runtime_flags(build), *include, "-c", str(source), "-o", str(made)])
            shutil.move(made, f"{path}.{os.getpid()}")
        Path(f"{path}.{os.getpid()}").replace(path)
        return path

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


def declaration(signature: str) -> str:
    """The seam as a declaration that a submission is compiled against, so that a different signature is an error."""
    return f"{signature};"


def caller_source(name: str, signature: str, parameters: tuple[Parameter, ...]) -> str:
    """C++ that calls the seam `name` with the arguments of one case."""
    spelled = {
        Kind.INPUT: 'static_cast<{type}*>(arguments.array("{name}"))',
        Kind.OUTPUT: 'static_cast<{type}*>(arguments.array("{name}"))',
        Kind.INT: '({type})arguments.number("{name}")',
        Kind.FLOAT: '({type})arguments.number("{name}")',
        Kind.STREAM: "arguments.stream()",
    }
    listed = ", ".join(spelled[item.kind].format(type=item.type, name=item.name) for item in parameters)
    return (
        '#include "host.h"\n#include "cuda_fp16.h"\n#include "cuda_bf16.h"\n'
        f"{declaration(signature)}\n"
        f"void emulator_call_seam(const emulator::Arguments& arguments) {{ {name}({listed}); }}\n"
    )


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
    except ToolchainError as error:
        return str(error)
    return None
