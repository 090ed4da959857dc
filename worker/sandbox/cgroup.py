"""A cgroup (version 2) for one run, where the host lets the worker make one.

The kernel then counts the run's memory, processes and CPU itself, all of them together and exactly, the pages of tmpfs and
shared memory included. It needs a group that the worker may write to and that has the controllers: the worker's own, or the
one above it when a service manager puts the worker into a leaf of a delegated subtree (`Delegate=yes` and
`DelegateSubgroup=worker` in a systemd unit; systemd 254 and later).
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from .outcome import MIB, Limits

MOUNT = Path("/sys/fs/cgroup")
NEEDED = ("memory", "pids")


def _candidates() -> list[Path]:
    own = next(
        (line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), None
    )
    if own is None or not (MOUNT / "cgroup.controllers").exists():
        return []
    group = MOUNT / own.lstrip("/")
    return [group, group.parent] if group != MOUNT else [group]


def _usable(group: Path) -> str | None:
    """Why runs cannot get groups of their own below `group`; None when they can."""
    try:
        offered = (group / "cgroup.controllers").read_text().split()
        lacking = [name for name in NEEDED if name not in offered]
        if lacking:
            return f"{group} does not offer the controllers {', '.join(lacking)}"
        enabled = (group / "cgroup.subtree_control").read_text().split()
        if any(name not in enabled for name in NEEDED):
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in NEEDED))
    except OSError as error:
        return f"{group}: {error.strerror}"
    return None if os.access(group, os.W_OK) else f"{group} is not writable"


def parent() -> tuple[Path | None, str]:
    """The group that runs' groups are made in, or None; and why."""
    reasons = []
    for group in _candidates():
        reason = _usable(group)
        if reason is None:
            return group, f"below {group}"
        reasons.append(reason)
    return None, "; ".join(reasons) or "no cgroup v2 hierarchy is mounted at /sys/fs/cgroup"


class Cgroup:
    """The group of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def create(cls, limits: Limits) -> Cgroup:
        """A new group with the run's limits. Raises OSError."""
        above, reason = parent()
        if above is None:
            raise OSError(reason)
        folder = above / f"kernelgate-{os.getpid()}"
        folder.mkdir()
        made = cls(folder)
        try:
            # A little above the limit, so that the watchdog, which says why, usually comes first.
            (folder / "memory.max").write_text(str(limits.memory_mb * MIB + limits.scratch_mb * MIB + 32 * MIB))
            (folder / "memory.oom.group").write_text("1")
            (folder / "pids.max").write_text(str(limits.processes + 4))
            with contextlib.suppress(OSError):
                (folder / "memory.swap.max").write_text("0")
        except OSError:
            made.close()
            raise
        return made

    def enter(self) -> None:
        """Moves the calling process in; what it starts is in there too."""
        (self.folder / "cgroup.procs").write_text("0")

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed something in here for want of memory."""
        with contextlib.suppress(OSError):
            for line in (self.folder / "memory.events").read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill" and int(count):
                    return True
        return False

    def kill(self) -> None:
        """Kills all that is in here at once (Linux 5.14; older kernels leave it to the pid namespace)."""
        with contextlib.suppress(OSError):
            (self.folder / "cgroup.kill").write_text("1")

    def close(self) -> None:
        """Removes the group once it is empty."""
        self.kill()
        for _ in range(200):
            try:
                self.folder.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(0.005)
            else:
                return
