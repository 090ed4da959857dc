"""System calls that Python does not offer, by ctypes, for x86-64 and aarch64.

Numbers are the kernel's own (arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h); a test compares
them with the headers installed on the machine.
"""

from __future__ import annotations

import ctypes
import os

MACHINE = os.uname().machine
LIBC = ctypes.CDLL(None, use_errno=True)

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_NEWTIME = 0x00000080

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
MNT_DETACH = 2
AT_FDCWD = -100
AT_RECURSIVE = 0x8000

# name: (x86-64, aarch64); None where the architecture lacks it
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
    "ioperm": (173, None),
    "iopl": (172, None),
    "modify_ldt": (154, None),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "lookup_dcookie": (212, 18),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "personality": (135, 92),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone": (56, 220),
    "clone3": (435, 435),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "semctl": (66, 191),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "recvfrom": (45, 207),
    "recvmsg": (47, 212),
    "recvmmsg": (299, 243),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "setpriority": (141, 140),
    "prlimit64": (302, 261),
    "ioctl": (16, 29),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "nfsservctl": (180, 42),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    "capset": (126, 91),
    "capget": (125, 90),
    "fcntl": (72, 25),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "prctl": (157, 167),
}


def number(name: str) -> int | None:
    """The number of a system call on this machine; None where the machine does not have it. Raises KeyError otherwise."""
    x86, arm = NUMBERS[name]
    return {"x86_64": x86, "aarch64": arm}.get(MACHINE)


def _failed(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, f"{what}: {os.strerror(code)}")


def syscall(name: str, *arguments: object) -> int:
    """Calls `name`; integers are passed as longs, bytes as pointers. Raises OSError."""
    wanted = number(name)
    if wanted is None:
        raise OSError(38, f"{name}: this machine ({MACHINE}) does not have it")
    passed = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    result = int(LIBC.syscall(ctypes.c_long(wanted), *passed))
    if result < 0:
        raise _failed(name)
    return result


def prctl(option: int, second: int = 0, third: int = 0, what: str = "prctl") -> None:
    """prctl(2). Raises OSError naming `what`."""
    if LIBC.prctl(option, ctypes.c_ulong(second), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0)) < 0:
        raise _failed(what)


def unshare(flags: int) -> None:
    """Leaves the namespaces of `flags` for new ones. Raises OSError."""
    syscall("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2). Raises OSError naming the target."""
    encoded = kind.encode() if kind else None
    data = options.encode() if options else None
    if LIBC.mount(os.fsencode(source), os.fsencode(target), encoded, ctypes.c_ulong(flags), data) < 0:
        raise _failed(f"mount {source} on {target}")


def set_mount_flags(target: str, flags: int, *, recursive: bool) -> None:
    """Adds mount flags (MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, whose values mount_setattr shares). Raises OSError.

    Kernels before 5.12 lack mount_setattr; there one mount is remounted with the flags that it already had.
    """
    attributes = flags.to_bytes(8, "little") + bytes(24)
    try:
        syscall("mount_setattr", AT_FDCWD, os.fsencode(target), AT_RECURSIVE if recursive else 0, attributes, 32)
    except OSError as error:
        if error.errno != 38:
            raise
        kept = os.statvfs(target).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
        mount("none", target, None, MS_BIND | MS_REMOUNT | flags | kept)


def unmount(target: str) -> None:
    """Detaches a mount at once; it lives on while something in it is open. Raises OSError."""
    if LIBC.umount2(os.fsencode(target), MNT_DETACH) < 0:
        raise _failed(f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Makes `new` the root of this mount namespace; the former root is then at `old`. Raises OSError."""
    syscall("pivot_root", os.fsencode(new), os.fsencode(old))
