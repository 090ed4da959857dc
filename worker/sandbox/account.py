"""What a running tree of processes uses, read from /proc; and how it is killed where no pid namespace does that.

Theory of operation of the memory count. A session is a fork of a warm interpreter: its resident pages are mostly the warm
one's own, shared copy-on-write, and must not count. The cheap figure, the sum of anonymous and shared-memory pages and of
page tables over all processes, counts shared pages for each sharer, so it is never too low; while it is under the limit
nothing more is asked. Above it the exact figure is taken: each page divided by the processes that map it (the kernel's
"proportional set"), less the part that the warm interpreter's pages make up. That part is at most the warm interpreter's
size, once for the whole tree: nothing a program does (forking, writing to those pages) gains it more than that. Memory files
passed in are the caller's and do not count.

Shared pages become a process's own when it writes to them, and the cheap figure does not change by that. A program that makes
the exact figure slow to take, with thousands of mappings in each of many processes, could so use gigabytes between two looks:
what is not counted within `EXACT_S` seconds is counted the strict way, and sharers that together have `SHARING` times the limit
are taken to be over it.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

KIB = 1024
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
SHARING = 4
EXACT_S = 1.0
TRUSTED_SHARERS = 3  # the warm interpreter, the supervisor and the keeper map its pages too
RESIDENT = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB", re.MULTILINE)
TABLES = re.compile(rb"^VmPTE:\s+(\d+) kB", re.MULTILINE)
ANONYMOUS = re.compile(rb"^RssAnon:\s+(\d+) kB", re.MULTILINE)
PROPORTIONAL = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB", re.MULTILINE)


def _read(path: str) -> bytes:
    """A file of /proc; empty when its process is gone or hidden."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(1 << 16)
    except OSError:
        return b""


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(word) for thread in threads for word in _read(f"/proc/{pid}/task/{thread}/children").split()]


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, parents first."""
    found, todo = [], children(pid)
    while todo:
        child = todo.pop()
        found.append(child)
        todo += children(child)
    return found


def _tables(pid: int) -> int:
    """Bytes of page tables of one process."""
    return sum(int(figure) for figure in TABLES.findall(_read(f"/proc/{pid}/status"))) * KIB


def anonymous(pid: int | str) -> int:
    """Resident anonymous bytes of one process."""
    return sum(int(figure) for figure in ANONYMOUS.findall(_read(f"/proc/{pid}/status"))) * KIB


@dataclass
class Memory:
    """Counts a tree's memory. warm: anonymous bytes of the interpreter it was forked from (0: it has executed another
    program); passed: bytes of memory files the caller passed in."""

    warm: int
    passed: int

    def at_most(self, pids: list[int]) -> int:
        """Bytes the processes have, shared pages counted for every sharer: cheap, never too low."""
        return sum(int(figure) for pid in pids for figure in RESIDENT.findall(_read(f"/proc/{pid}/status"))) * KIB

    def exact(self, pids: list[int], hopeless: Callable[[], bool] = lambda: False) -> int:
        """Bytes that are the tree's own. Milliseconds for each process, and a second for one of many small mappings that is
        forking: so `hopeless` is asked before each, and once it says yes the cheap figure is answer enough."""
        total = 0
        deadline = time.monotonic() + EXACT_S
        for pid in pids:
            if hopeless():
                return self.at_most(pids)
            figures = PROPORTIONAL.findall(_read(f"/proc/{pid}/smaps_rollup")) if time.monotonic() < deadline else []
            # A process that hides its pages, that makes counting them slow, or a kernel before 5.4, is counted the strict way.
            total += sum(map(int, figures)) * KIB + _tables(pid) if figures else self.at_most([pid])
        shared = self.warm * len(pids) // (len(pids) + TRUSTED_SHARERS)
        return max(0, total - shared - self.passed)

    def far_beyond(self, pids: list[int], limit: int) -> bool:
        """Whether the processes have so much, each page counted for every sharer, that nothing exact need be asked."""
        return self.at_most(pids) - (self.warm + self.passed) * len(pids) > SHARING * limit

    def estimate(self, pids: list[int]) -> int:
        """For the peak that is reported: the cheap figure less the warm interpreter's pages, once."""
        return max(0, self.at_most(pids) - self.warm - self.passed)


def cpu_seconds(pids: list[int]) -> float:
    """CPU time of the processes and of those they have waited for."""
    total = 0
    for pid in pids:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        total += sum(map(int, fields[11:15]))
    return total * TICK_S


def kill_below(pid: int, *, within_s: float, reap: Callable[[], None]) -> bool:
    """Kills all descendants of `pid` again and again until there are none; whether that came to pass in time.

    A process that forks faster than it is killed runs into its limit of processes: each round kills all that are there.
    """
    deadline = time.monotonic() + within_s
    while True:
        reap()
        living = descendants(pid)
        if not living:
            return True
        for each in living:
            try:
                os.kill(each, signal.SIGKILL)
            except OSError:
                continue
        if time.monotonic() > deadline:
            return False
        time.sleep(0.001)
