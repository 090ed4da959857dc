"""Names of this host and its processes, as leases and worker rows carry them."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def host_name() -> str:
    """The host, with its PID namespace: containers on the host's network share its name but not its process numbers."""
    namespace = str(Path("/proc/self/ns/pid").readlink()).partition("[")[2].rstrip("]")
    return f"{socket.gethostname()}/{namespace}"


def owner_name() -> str:
    """This process as the owner of leases: host, pid and start time, so that a reused pid is not taken for it."""
    return f"{host_name()}:{os.getpid()}:{_start_time(os.getpid())}"


def is_dead(owner: str, host: str) -> bool:
    """Whether a lease's owner was a process of this host that is gone; other hosts' leases must run out."""
    where, _, started = owner.rpartition(":")
    owner_host, _, pid = where.rpartition(":")
    return owner_host == host and pid.isdigit() and _start_time(int(pid)) != started


def _start_time(pid: int) -> str:
    """Clock ticks from boot to the process's start, as /proc has them; '' when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]
