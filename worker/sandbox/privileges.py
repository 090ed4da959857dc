"""Gives up what a process may do by who it is: its user, its capabilities, its limits. The order of the steps matters."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
from pathlib import Path

from . import syscalls
from .outcome import MIB, Limits

CAPABILITY_VERSION = 0x20080522
PR_CAP_AMBIENT_CLEAR_ALL = 4
STACK_HARD = 64 * MIB


def map_own_user(uid: int, gid: int) -> None:
    """As an ordinary user in a new user namespace: to be there who one is outside. Raises OSError."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def permitted_capabilities() -> int:
    """The capabilities this process has or could switch on, as bits."""
    found = ctypes.create_string_buffer(24)  # twice: effective, permitted, inheritable; 32 bits each
    syscalls.syscall("capget", struct.pack("<Ii", CAPABILITY_VERSION, 0), found)
    _, low, _, _, high, _ = struct.unpack("<6I", found.raw)
    return int(high << 32 | low)


def drop_bounding_set() -> None:
    """No capability can be had by executing anything from here on. Raises OSError.

    An ordinary user without a user namespace may not touch the set; there no_new_privs alone sees to it.
    """
    if not permitted_capabilities():
        return
    for capability in range(64):
        try:
            syscalls.prctl(syscalls.PR_CAPBSET_DROP, capability, what="capability bounding set")
        except OSError as error:
            if error.errno == errno.EINVAL:  # past the kernel's last
                return
            raise


def drop_capabilities() -> None:
    """No capability in any set. Raises OSError."""
    try:
        syscalls.prctl(syscalls.PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, what="ambient capabilities")
    except OSError as error:
        if error.errno != errno.EINVAL:  # before Linux 4.3 there are none
            raise
    header = struct.pack("<Ii", CAPABILITY_VERSION, 0)
    syscalls.syscall("capset", header, bytes(24))


def become(uid: int) -> None:
    """Changes every user and group id to `uid` for good. Raises OSError."""
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def tasks_of(uid: int) -> int:
    """Threads that run as `uid` now, as far as /proc shows them."""
    found = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == uid:
                    found += len(os.listdir(f"/proc/{entry.name}/task"))
            except OSError:
                continue
    return found


def set_limits(limits: Limits, tasks_already: int) -> None:
    """The kernel's own limits for this process and each that it starts. Raises OSError or ValueError.

    Memory is not among them on purpose: a failed allocation shows in the program as its own exception, so the supervisor
    watches instead. tasks_already: how many the kernel counts for this user without the run.
    """
    cpu = max(1, int(-(-limits.cpu_s // 1)))
    file_size = limits.scratch_mb * MIB + MIB
    _set(resource.RLIMIT_CORE, 0, 0)
    _set(resource.RLIMIT_CPU, cpu, cpu + 1)
    _set(resource.RLIMIT_FSIZE, file_size, file_size)
    _set(resource.RLIMIT_NOFILE, limits.open_files, limits.open_files)
    _set(resource.RLIMIT_NPROC, limits.processes + tasks_already, limits.processes + tasks_already)
    _set(resource.RLIMIT_STACK, 8 * MIB, STACK_HARD)
    _set(resource.RLIMIT_MEMLOCK, 65536, 65536)
    _set(resource.RLIMIT_SIGPENDING, 1024, 1024)
    _set(resource.RLIMIT_MSGQUEUE, 0, 0)
    _set(resource.RLIMIT_RTPRIO, 0, 0)
    _set(resource.RLIMIT_NICE, 0, 0)


def _set(which: int, soft: int, hard: int) -> None:
    most = resource.getrlimit(which)[1]
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(which, (soft, hard))
