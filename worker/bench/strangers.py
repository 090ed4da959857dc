"""Programs of others on the card: what they do at the same time would be part of what is measured."""

from __future__ import annotations

import ctypes
from pathlib import Path

from worker.bench.clocks import Clocks

MOST = 64
OURS = b"worker.bench"


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t, version 3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def strangers(clocks: Clocks) -> list[str]:
    """Computing processes that are none of ours, as "pid 12 (python)".

    NVML may give numbers of another PID namespace, which mean some other process here; so only a process that holds the
    card's device open counts, and one that cannot be looked at does not.
    """
    if clocks.nvml is None or not hasattr(clocks.nvml, "nvmlDeviceGetComputeRunningProcesses_v3"):
        return []
    found = (_Process * MOST)()
    count = ctypes.c_uint(MOST)
    if clocks.nvml.nvmlDeviceGetComputeRunningProcesses_v3(clocks.device, ctypes.byref(count), found) != 0:
        return []
    return [f"pid {each.pid} ({name})" for each in found[: count.value] if (name := _stranger(each.pid))]


def _stranger(pid: int) -> str:
    """The program's name when the process is somebody else's and has the card open; '' otherwise."""
    folder = Path("/proc") / str(pid)
    try:
        words = (folder / "cmdline").read_bytes().split(b"\0")
        holds_card = any(str(link.readlink()).startswith("/dev/nvidia") for link in (folder / "fd").iterdir())
    except OSError:
        return ""
    return words[0].decode(errors="replace")[-80:] if holds_card and OURS not in words else ""
