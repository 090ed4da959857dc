"""The system-call filter: a list of what is refused, as classic BPF.

Theory of operation. A compiler, CPython and torch together use some two hundred calls and the set moves with every release of
each, so the filter names what is refused; what the kernel learned after this table was written is refused too (ENOSYS, as an
older kernel would answer). The 32-bit and x32 calling conventions, which would reach the same kernel functions under other
numbers, kill the process.

Refused for everyone, because the namespaces do not cover it or because it is kernel surface that grading never needs:
- looking into or steering other processes, loading kernel code, mounts, namespaces, keys, bpf, perf, io_uring, userfaultfd;
- making a socket and giving one an address. A network namespace has no route, but AF_VSOCK reaches a hypervisor in spite of
  it, AF_ALG and AF_NETLINK are surface, and a unix socket that is a path (a broker's, Docker's) ignores both network
  namespaces and Landlock. Pairs are refused too: a datagram one can be sent to any address, and what lies in their buffers
  is nobody's memory, a few hundred KiB for each descriptor;
- memfd_create, System V IPC and inotify: memory that belongs to no process and so escapes the count where no cgroup counts;
- out-of-band bytes on the one socket a session has, its channel: a rarely used part of unix sockets in which a freed buffer
  could be reached (CVE-2025-38236);
- changing the limits or priority of another process, and the ioctls that type into a terminal (TIOCSTI, TIOCLINUX).

Without a pid namespace, processes of the same user can be named, so signals and scheduling calls then reach only the caller;
descriptors that send signals (F_SETOWN) are refused everywhere. Without a mount namespace and a user of its own, a run could
change the mode, owner, times or attributes of every file of the worker's user, and before Linux 6.2 truncate them: Landlock
does not look at those, so the calls are refused there.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from dataclasses import dataclass, field
from functools import cache

from . import syscalls

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NEWEST_KNOWN = 462  # mseal, Linux 6.10
X32_BIT = 0x40000000

LOAD, JUMP_EQUAL, JUMP_ABOVE, JUMP_AT_LEAST, JUMP_BITS, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCH, FIRST_ARGUMENT = 0, 4, 16

REFUSED = """
ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise process_mrelease
bpf perf_event_open add_key request_key keyctl
mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr setns unshare
open_by_handle_at name_to_handle_at mknod mknodat fanotify_init fanotify_mark lookup_dcookie
init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff quotactl quotactl_fd acct
settimeofday clock_settime adjtimex clock_adjtime syslog ioperm iopl modify_ldt sethostname setdomainname vhangup
migrate_pages move_pages nfsservctl uselib ustat sysfs _sysctl
shmget shmat shmctl msgget msgsnd msgrcv msgctl semget semop semtimedop semctl mq_open mq_unlink
socket socketpair connect bind listen accept accept4 setpriority
""".split()
# Callers have a way round these when they are told that the kernel lacks them.
ABSENT = "io_uring_setup io_uring_enter io_uring_register userfaultfd clone3 memfd_create memfd_secret\
 inotify_init inotify_init1 inotify_add_watch".split()
METADATA = """
truncate chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat setxattr lsetxattr fsetxattr
removexattr lremovexattr fremovexattr utime utimes futimesat utimensat
""".split()
SIGNALS = "kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo".split()
SCHEDULING = "sched_setaffinity sched_setscheduler sched_setparam sched_setattr".split()
NAMESPACE_FLAGS = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
    | syscalls.CLONE_NEWTIME
)
MESSAGES = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3, "recvfrom": 3, "recvmsg": 2, "recvmmsg": 3}
"""Calls on a session's channel, and which argument holds their flags."""
MSG_OOB = 1
TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP = 0x5412, 0x541C, 0x8901, 0x8902
F_SETOWN, F_SETSIG, F_SETOWN_EX = 8, 10, 15
PERSONALITY_QUERY = 0xFFFFFFFF


@dataclass
class Program:
    """A filter being assembled. Every rule leaves the accumulator holding the call's number for the next."""

    code: list[bytes] = field(default_factory=list)

    def add(self, operation: int, value: int, jump_true: int = 0, jump_false: int = 0) -> None:
        self.code.append(struct.pack("<HBBI", operation, jump_true, jump_false, value & 0xFFFFFFFF))

    def load(self, offset: int) -> None:
        self.add(LOAD, offset)

    def refuse(self, name: str, code: int = errno.EPERM) -> None:
        """The call fails with `code`, whatever its arguments."""
        number = syscalls.number(name)
        if number is not None:
            self.add(JUMP_EQUAL, number, 0, 1)
            self.add(RETURN, REFUSE | code)

    def only(self, name: str, argument: int, accepted: tuple[int, ...]) -> None:
        """The call fails with EPERM unless the low 32 bits of the argument are one of `accepted`."""
        self._examine(name, argument, accepted, refuse_listed=False)

    def never(self, name: str, argument: int, refused: tuple[int, ...]) -> None:
        """The call fails with EPERM when the low 32 bits of the argument are one of `refused`."""
        self._examine(name, argument, refused, refuse_listed=True)

    def without_bits(self, name: str, argument: int, bits: int) -> None:
        """The call fails with EPERM when one of `bits` is set in the low 32 bits of the argument."""
        number = syscalls.number(name)
        if number is None:
            return
        self.add(JUMP_EQUAL, number, 0, 4)
        self.load(FIRST_ARGUMENT + 8 * argument)
        self.add(JUMP_BITS, bits, 0, 1)
        self.add(RETURN, REFUSE | errno.EPERM)
        self.load(NUMBER)

    def _examine(self, name: str, argument: int, listed: tuple[int, ...], *, refuse_listed: bool) -> None:
        number = syscalls.number(name)
        if number is None:
            return
        count = len(listed)
        self.add(JUMP_EQUAL, number, 0, count + 3)
        self.load(FIRST_ARGUMENT + 8 * argument)
        for index, value in enumerate(listed):
            left = count - 1 - index  # comparisons still to come; behind them the refusal, then the reload
            found = left if refuse_listed else left + 1
            exhausted = 1 if refuse_listed and left == 0 else 0
            self.add(JUMP_EQUAL, value, found, exhausted)
        self.add(RETURN, REFUSE | errno.EPERM)
        self.load(NUMBER)


@cache
def assemble(*, own_pid: int | None, shares_files: bool) -> bytes:
    """The filter's instructions. own_pid: the caller's process id where there is no pid namespace, else None.
    shares_files: whether the run is the worker's user and sees the host's files.

    Raises OSError on an architecture whose numbers are not known.
    """
    if syscalls.MACHINE not in AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"seccomp: {syscalls.MACHINE} is not known; x86_64 and aarch64 are")
    program = Program()
    program.load(ARCH)
    program.add(JUMP_EQUAL, AUDIT_ARCH[syscalls.MACHINE], 1, 0)
    program.add(RETURN, KILL)
    program.load(NUMBER)
    if syscalls.MACHINE == "x86_64":
        program.add(JUMP_AT_LEAST, X32_BIT, 0, 1)
        program.add(RETURN, KILL)
    program.add(JUMP_ABOVE, NEWEST_KNOWN, 0, 1)
    program.add(RETURN, REFUSE | errno.ENOSYS)
    for name in REFUSED:
        program.refuse(name)
    for name in ABSENT:
        program.refuse(name, errno.ENOSYS)
    program.without_bits("clone", 0, NAMESPACE_FLAGS)
    for name, flags in MESSAGES.items():
        program.without_bits(name, flags, MSG_OOB)
    program.never("ioctl", 1, (TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP))
    program.never("fcntl", 1, (F_SETOWN, F_SETSIG, F_SETOWN_EX))
    program.only("prlimit64", 0, (0,))
    program.only("personality", 0, (0, PERSONALITY_QUERY))
    if shares_files:
        for name in METADATA:
            program.refuse(name)
    if own_pid is not None:
        _only_oneself(program, own_pid)
    program.add(RETURN, ALLOW)
    return b"".join(program.code)


def _only_oneself(program: Program, own_pid: int) -> None:
    """Signals to itself and its own process group (0), scheduling of itself; tkill has no group to check and is refused."""
    for name in SIGNALS:
        program.only(name, 0, (own_pid, 0))
    for name in SCHEDULING:
        program.only(name, 0, (own_pid, 0))
    for name in ("tkill", "pidfd_send_signal", "ioprio_set"):
        program.refuse(name)
    program.never("prctl", 0, (syscalls.PR_SET_DUMPABLE,))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def install(code: bytes) -> None:
    """Puts the calling thread, and all that it starts, under the filter for good. Raises OSError."""
    buffer = ctypes.create_string_buffer(code, len(code))
    described = _Filter(len(code) // 8, ctypes.addressof(buffer))
    syscalls.prctl(syscalls.PR_SET_SECCOMP, 2, ctypes.addressof(described), "seccomp")
