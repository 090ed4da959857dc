"""Landlock: what of the file system this process may use, kept by the kernel for it and all that it starts.

Rules are attached to directories that are opened here, so they hold whatever is mounted or renamed later. The ABI grows with
the kernel: each version adds rights that are then refused too (moving between folders, truncation, TCP, device ioctls,
abstract unix sockets and signals out of the sandbox).
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Sequence

from . import syscalls

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_SOCK, MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
FOR_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP_BIND_AND_CONNECT = 3
ABSTRACT_SOCKETS_AND_SIGNALS = 3
SIGNALS_ABI = 6
VERSION_QUERY = 1


def abi() -> int:
    """The version of Landlock that the running kernel has switched on; 0: none."""
    try:
        return syscalls.syscall("landlock_create_ruleset", 0, 0, VERSION_QUERY)
    except OSError:
        return 0


def _handled(version: int) -> int:
    rights = (1 << 13) - 1
    for least, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if version >= least:
            rights |= right
    return rights


def restrict(read: Sequence[str], write: Sequence[str], devices: Sequence[str]) -> None:
    """From here on: `read` may be read and executed, `write` changed as well, `devices` read and written; nothing else.

    Names that do not exist are passed over. Needs no_new_privs. Raises OSError.
    """
    version = abi()
    rights = _handled(version)
    attributes = struct.pack("<QQQ", rights, TCP_BIND_AND_CONNECT, ABSTRACT_SOCKETS_AND_SIGNALS)
    size = 8 if version < 4 else 16 if version < SIGNALS_ABI else 24
    ruleset = syscalls.syscall("landlock_create_ruleset", attributes[:size], size, 0)
    everything = rights & ~(MAKE_CHAR | MAKE_BLOCK | MAKE_SOCK | IOCTL_DEV)
    for paths, granted in ((read, READ), (write, everything), (devices, READ_FILE | WRITE_FILE)):
        for path in paths:
            _allow(ruleset, path, granted & rights)
    syscalls.syscall("landlock_restrict_self", ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, granted: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            granted &= FOR_FILES
        syscalls.syscall("landlock_add_rule", ruleset, 1, struct.pack("<Qi", granted, beneath), 0)
    finally:
        os.close(beneath)
