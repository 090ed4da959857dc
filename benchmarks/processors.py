"""The machine of a benchmark: what its processes spend of the processors, in which another's load shows least."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def spent_ms() -> float:
    """What the processes that this one started have spent of processors, in steps of 10 ms."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)], spent[int(folder.name)] = int(fields[1]), int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    while more := {each for each, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(1000 * spent[each] / _TICKS for each in ours - {os.getpid()})


def settled() -> float:
    """Waits, three seconds at most, until no more than one process wants to run; returns the load average of a minute."""
    for _ in range(30):
        running = int(Path("/proc/loadavg").read_text().split()[3].split("/")[0])
        if running <= 2:  # this process is one of them
            break
        time.sleep(0.1)
    return os.getloadavg()[0]
