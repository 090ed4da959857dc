"""Builds the product's own native programs once per content, and keeps them where builds are kept."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from kernelgate.settings import settings
from worker.recording import kept

SYSTEM_TOOLKIT = Path("/usr/local/cuda")
TOOLKIT = ("bin/nvcc", "include/cuda_runtime.h", "nvvm/bin/cicc")
"""What a folder must have to be a toolkit: parts of it come in packages of their own."""


class BuildError(RuntimeError):
    """A program of ours does not build here: no compiler, no CUDA headers, or an error that the text quotes."""


@cache
def cuda_root() -> Path:
    """The CUDA toolkit's folder, the first with nvcc, headers and device code: the system's, else the one from wheels.

    Raises BuildError.
    """
    on_path = shutil.which("nvcc")
    system = [Path(on_path).resolve().parent.parent] if on_path else []
    for root in (*system, SYSTEM_TOOLKIT, *wheel_toolkit()):
        if all((root / part).exists() for part in TOOLKIT):
            return root.resolve()
    raise BuildError(
        "no CUDA compiler: nvcc is neither on PATH with its headers, nor in /usr/local/cuda, nor installed from "
        "requirements/cuda.txt (`make up` does that; wheels are there for Linux on x86-64 and aarch64)"
    )


def wheel_toolkit() -> tuple[Path, ...]:
    """Where the wheels of requirements/cuda.txt put nvcc and its headers; nothing where they are not installed."""
    try:
        nvcc = distribution("nvidia-cuda-nvcc")
    except PackageNotFoundError:
        return ()
    return tuple(Path(str(nvcc.locate_file(part))).parent.parent for part in nvcc.files or () if part.match("bin/nvcc"))


def host_compiler() -> Path:
    """The C++ compiler, resolved. Raises BuildError."""
    found = shutil.which("g++")
    if found is None:
        raise BuildError("no g++ on PATH; install a C++17 compiler")
    return Path(found)


@cache
def recorder() -> Path:
    """The recording runtime, built if this version of it never was. Raises BuildError."""
    sources = {path.name: path.read_bytes() for path in sorted((settings().sandboxed_dir / "recorder").iterdir())}
    files = [name for name in sources if name.endswith(".cpp")]
    include = f"-I{cuda_root() / 'include'}"
    return _built(
        "recorder", sources, [str(host_compiler()), "-std=c++17", "-O1", "-rdynamic", include, *files, "-ldl"]
    )


def cuda_program(texts: Mapping[str, bytes], main: str, architecture: str) -> tuple[Path, Path]:
    """Trusted CUDA code as (host library for the recorder, cubin) for one architecture, e.g. "90a".

    Both come from one run of nvcc: kernels in unnamed namespaces get names that differ from run to run. `main` is the file
    to compile. Raises BuildError.
    """
    stem = Path(main).stem
    command = [*_nvcc(architecture), "-Xcompiler=-fPIC", "-shared", "-cudart=none", "--keep", main]
    library = _built(f"{stem}.so", texts, command, beside=f"{stem}.cubin")
    return library, library.with_suffix(".cubin")


def guard_image(architecture: str) -> bytes:
    """The trusted kernels around a timed call, as a cubin. Raises BuildError."""
    text = (settings().kernels_dir / "measuring" / "guard.cu").read_bytes()
    return cuda_program({"guard.cu": text}, "guard.cu", architecture)[1].read_bytes()


def _nvcc(architecture: str) -> list[str]:
    target = f"-gencode=arch=compute_{architecture},code=sm_{architecture}"
    return [str(cuda_root() / "bin" / "nvcc"), "-std=c++17", "-O3", target, "-I.", f"-ccbin={host_compiler()}"]


def _built(name: str, texts: Mapping[str, bytes], command: list[str], beside: str = "") -> Path:
    digest = hashlib.sha256("\0".join(command).encode())
    for file, text in sorted(texts.items()):
        digest.update(f"{file}\0{len(text)}\0".encode() + text)
    folder = kept.folder() / "native" / f"{name}-{digest.hexdigest()[:16]}"
    target = folder / name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(target, texts, command, beside)
    return target


def _build(target: Path, texts: Mapping[str, bytes], command: list[str], beside: str) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        for file, text in texts.items():
            (Path(scratch) / file).write_bytes(text)
        made = Path(scratch) / "made"
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False, cwd=scratch)
        if done.returncode:
            raise BuildError(f"{target.name} does not build: {done.stderr[-2000:]}")
        if beside:
            (Path(scratch) / beside).rename(target.with_name(beside))
        made.rename(target)
    for path in (target.parent, target):
        path.chmod(0o755)
