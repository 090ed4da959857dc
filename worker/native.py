"""Builds the product's own native programs once per content, and keeps them under the data folder."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from kernelgate.settings import settings


class BuildError(RuntimeError):
    """A program of ours does not build here: no compiler, no CUDA headers, or an error that the text quotes."""


def cuda_root() -> Path:
    """The CUDA toolkit's folder, found through nvcc. Raises BuildError."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        raise BuildError("no nvcc on PATH or in /usr/local/cuda/bin; install the CUDA toolkit (13.0 or newer)")
    return Path(nvcc).resolve().parent.parent


def host_compiler() -> Path:
    """The C++ compiler, resolved. Raises BuildError."""
    found = shutil.which("g++")
    if found is None:
        raise BuildError("no g++ on PATH; install a C++17 compiler")
    return Path(found)


@cache
def recorder() -> Path:
    """The recording runtime, built if this version of it never was. Raises BuildError."""
    sources = sorted((settings().kernels_dir / "recorder").glob("*.cpp"))
    include = cuda_root() / "include"
    command = [str(host_compiler()), "-std=c++17", "-O1", "-rdynamic", f"-I{include}", *map(str, sources), "-ldl"]
    return _built("recorder", [*sources, *sorted((settings().kernels_dir / "recorder").glob("*.h"))], command)


def device_code(source: Path, architecture: str, include: Path | None = None) -> Path:
    """A cubin of a trusted .cu file for one architecture, e.g. "90a". Raises BuildError."""
    command = [
        str(cuda_root() / "bin" / "nvcc"),
        "-std=c++17",
        "-O3",
        "-cubin",
        f"-gencode=arch=compute_{architecture},code=sm_{architecture}",
        str(source),
    ]
    extra = sorted(include.iterdir()) if include else []
    return _built(source.stem, [source, *extra], command + ([f"-I{include}"] if include else []))


def _built(name: str, sources: list[Path], command: list[str]) -> Path:
    digest = hashlib.sha256("\0".join(command).encode())
    for source in sources:
        digest.update(source.read_bytes())
    folder = settings().data_dir.resolve() / "native" / f"{name}-{digest.hexdigest()[:16]}"
    target = folder / name
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _build(target, command)
    return target


def _build(target: Path, command: list[str]) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = Path(scratch) / target.name
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True, check=False, cwd=scratch)
        if done.returncode:
            raise BuildError(f"{target.name} does not build: {done.stderr[-2000:]}")
        made.rename(target)
    for folder in (target.parent, target):
        folder.chmod(0o755)
