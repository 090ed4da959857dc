"""The layers of the sandbox by name: which hold on this host, why others do not, and what level that makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Level = Literal["full", "reduced", "none"]

USER = "user namespace"
PID = "pid namespace"
MOUNT = "mount namespace"
PROC = "own /proc"
NET = "network namespace"
IPC = "ipc namespace"
UTS = "uts namespace"
CGROUP_VIEW = "cgroup namespace"
UID = "spare user"
CAPABILITIES = "no capabilities"
NO_NEW_PRIVS = "no_new_privs"
LANDLOCK = "landlock"
SECCOMP = "seccomp"
RLIMITS = "rlimits"
CGROUP = "cgroup v2"
WATCHDOG = "watchdog"

STOPS = {
    USER: "a capability that is worth anything; another run's processes counting against this run's limit",
    PID: "naming, signalling or tracing any process outside; a process that outlives its run",
    MOUNT: "every file of the host that the run does not need, unix sockets in it; any write to the host",
    PROC: "facts about other processes and the machine through /proc",
    NET: "every network, loopback and abstract unix sockets",
    IPC: "System V and POSIX message queues and shared memory of others",
    UTS: "the host's name",
    CGROUP_VIEW: "where in the host's cgroups the run is",
    UID: "what the worker's own user may do",
    CAPABILITIES: "everything that needs a privilege",
    NO_NEW_PRIVS: "gaining rights by executing setuid programs",
    LANDLOCK: "files outside a list, TCP, signals and abstract sockets out of the sandbox, a second time",
    SECCOMP: "kernel surface: sockets, ptrace, mounts, namespaces, keys, bpf, io_uring, uncounted memory",
    RLIMITS: "floods of processes, descriptors, CPU time and file size; core dumps",
    CGROUP: "memory, processes and CPU of the run as a whole, exactly and by the kernel",
    WATCHDOG: "memory, CPU, scratch, output and wall time of the run as a whole, by sampling",
}
NAMES = tuple(STOPS)
NAMESPACES = (USER, PID, MOUNT, PROC, NET, IPC, UTS, CGROUP_VIEW)
FOR_REDUCED = (CAPABILITIES, NO_NEW_PRIVS, LANDLOCK, SECCOMP, RLIMITS, WATCHDOG)
FOR_FULL = (PID, MOUNT, NET, IPC, UTS, CAPABILITIES, NO_NEW_PRIVS, SECCOMP, RLIMITS, WATCHDOG)
LEVELS: tuple[Level, ...] = ("none", "reduced", "full")


@dataclass(frozen=True)
class Layer:
    """One row: its name, whether it holds on this host, and in a few words how or why not."""

    name: str
    holds: bool
    detail: str

    @property
    def stops(self) -> str:
        return STOPS[self.name]


@dataclass(frozen=True)
class Layers:
    """What holds here. Iterates over rows; indexed by name; `level` sums up."""

    rows: tuple[Layer, ...]
    root: bool

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> Layer:
        return next(row for row in self.rows if row.name == name)

    @property
    def held(self) -> list[str]:
        return [row.name for row in self.rows if row.holds]

    def missing(self, level: Level) -> list[str]:
        """The layers that `level` needs and this host lacks."""
        needed = {"full": FOR_FULL, "reduced": FOR_REDUCED, "none": ()}[level]
        own_user = (UID,) if self.root and level != "none" else ()
        return [name for name in (*needed, *own_user) if not self[name].holds]

    @property
    def level(self) -> Level:
        """`full` (namespaces and what goes with them), `reduced` (Landlock and system-call filter alone) or `none`."""
        return next(level for level in reversed(LEVELS) if not self.missing(level))

    def describe(self) -> str:
        """One line for logs: the level and what does not hold."""
        lacking = ", ".join(f"{row.name} ({row.detail})" for row in self.rows if not row.holds)
        return f"sandbox level {self.level}" + (f"; not held: {lacking}" if lacking else "; every layer holds")


def layers_table(found: Layers) -> list[tuple[str, str, str, str]]:
    """Rows for `kernelgate doctor`: layer, `holds` or `absent`, detail, what it stops."""
    return [(row.name, "holds" if row.holds else "absent", row.detail, row.stops) for row in found]
