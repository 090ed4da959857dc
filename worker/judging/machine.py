"""Facts about the machine that a result is stored with."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from pathlib import Path

import numpy as np

from kernelgate import __version__
from kernelgate.settings import settings


@cache
def facts() -> dict[str, str]:
    """Processor, cores and versions, as short texts; read once a process."""
    return {
        "cpu": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": _runner_version("torch"),
        "kernelgate": __version__,
    }


def _cpu_model() -> str:
    """The processor's name as Linux states it; aarch64 kernels state none, so the architecture stands in."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _runner_version(package: str) -> str:
    """The version of a package of the sandbox's interpreter, without importing it; 'none' where it is not installed."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    found = subprocess.run(
        [settings().runner_python, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    return found.stdout.strip() or "none"
