"""The file system a run sees: a fresh, small, read-only root with the little of the host that a program needs.

Theory of operation. In its own mount namespace the keeper mounts a tmpfs over /tmp, pivots into it (the host's tree is then
at /old, its /tmp uncovered again), binds what is needed from there, read-only, nosuid and nodev, detaches /old and makes the
root read-only. All that can be written - the scratch folder, /tmp and /dev/shm - is one tmpfs of the size of the scratch
limit, bound three times: the limit is their sum, and nothing in it outlives the namespace.

A user namespace locks the mounts that it inherited: binds must be recursive and may only add flags, which mount_setattr does.
A new /proc is only granted while the old one is still in sight and not masked (Docker masks it); without one a few harmless
files of the host's stand in.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from . import syscalls
from .outcome import MIB
from .syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC

SCRATCH = "/scratch"
OLD = "/old"
WRITABLE = {"scratch": SCRATCH, "tmp": "/tmp", "shm": "/dev/shm"}
DEVICES = ("null", "zero", "full", "random", "urandom")
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin")
CONFIGURATION = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
TOPOLOGY = ("/sys/devices/system/cpu", "/sys/devices/system/node")
FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems")
# Of a full /proc, what tells about the whole machine's secrets or steers it.
MASKED = """
acpi asound bus config.gz driver fs interrupts irq kallsyms kcore key-users keys kmsg kpagecount kpageflags latency_stats
modules sched_debug scsi slabinfo sysrq-trigger timer_list timer_stats vmallocinfo
""".split()
SLACK = MIB  # so that a run can be seen to be over its limit


def inode_limit(scratch_mb: int) -> int:
    """Files and folders a run may make: one for every 16 KiB of its scratch limit, 1,024 at least."""
    return max(1024, scratch_mb * 64)


def build(visible: Sequence[Sequence[str]], scratch_mb: int, uid: int, *, own_proc: bool) -> None:
    """Makes the root and moves there; the caller is in a mount namespace of its own. Raises OSError."""
    syscalls.mount("none", "/", None, MS_REC | MS_PRIVATE)
    syscalls.mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=4096,mode=0755")
    os.mkdir("/tmp" + OLD, 0o700)
    syscalls.pivot_root("/tmp", "/tmp" + OLD)
    os.chdir("/")
    _bind_system()
    _make_devices()
    _make_writable(scratch_mb, uid)
    _make_accounts(uid)
    for source, target in sorted(visible, key=lambda pair: pair[1].count("/")):
        _bind(source, target)
    _make_proc(own=own_proc)
    syscalls.unmount(OLD)
    os.rmdir(OLD)
    syscalls.set_mount_flags("/", MS_RDONLY, recursive=False)
    os.chdir(SCRATCH)


def _bind_system() -> None:
    for path in SYSTEM:
        if os.path.islink(OLD + path):
            os.symlink(os.readlink(OLD + path), path)
        elif os.path.isdir(OLD + path):
            _bind(path, path)
    for path in (*CONFIGURATION, *TOPOLOGY):
        if os.path.exists(OLD + path) and not os.path.islink(OLD + path):
            _bind(path, path)


def _bind(source: str, target: str) -> None:
    """Shows the host's `source` at `target`, read-only; nothing to do where an earlier bind shows it already."""
    if os.path.exists(target):
        return
    host = OLD + source
    _make_parents(target)
    if os.path.isdir(host):
        os.mkdir(target, 0o755)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    syscalls.mount(host, target, None, MS_BIND | MS_REC)
    syscalls.set_mount_flags(target, MS_RDONLY | MS_NOSUID | MS_NODEV, recursive=True)


def _make_parents(path: str) -> None:
    for parent in reversed(Path(path).parents):
        if not parent.exists():
            parent.mkdir(mode=0o755)


def _make_devices() -> None:
    os.mkdir("/dev", 0o755)
    for name in DEVICES:
        target = f"/dev/{name}"
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        syscalls.mount(OLD + target, target, None, MS_BIND)
        syscalls.set_mount_flags(target, MS_NOSUID | MS_NOEXEC, recursive=False)
    for name, link in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{link}", f"/dev/{name}")


def _make_writable(scratch_mb: int, uid: int) -> None:
    holder = "/holder"
    os.mkdir(holder, 0o700)
    size = scratch_mb * MIB + SLACK
    inodes = inode_limit(scratch_mb) + 64
    syscalls.mount("tmpfs", holder, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes={inodes},mode=0755")
    for name, target in WRITABLE.items():
        source = f"{holder}/{name}"
        os.mkdir(source)
        os.chmod(source, 0o700)
        os.chown(source, uid, uid if uid != os.getuid() else -1)
        if not os.path.isdir(target):
            os.mkdir(target, 0o755)
        syscalls.mount(source, target, None, MS_BIND)
    syscalls.unmount(holder)
    os.rmdir(holder)


def _make_accounts(uid: int) -> None:
    """The names that programs look their own user up by. The host's accounts are nobody's business here."""
    gid = os.getgid() if uid == os.getuid() else uid
    for name, text in (
        ("passwd", f"sandbox:x:{uid}:{gid}:sandbox:{SCRATCH}:/usr/sbin/nologin\n"),
        ("group", f"sandbox:x:{gid}:\n"),
    ):
        path = Path("/etc") / name
        path.write_text(text)
        path.chmod(0o644)


def _make_proc(*, own: bool) -> None:
    os.mkdir("/proc", 0o555)
    if own:
        syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2")
        for name in MASKED:
            _mask(f"/proc/{name}")
        syscalls.set_mount_flags("/proc", MS_RDONLY, recursive=False)
    else:
        for path in FACTS:
            if os.path.exists(OLD + path):
                _bind(path, path)


def _mask(path: str) -> None:
    try:
        kind = os.lstat(path).st_mode
    except OSError:
        return
    if stat.S_ISDIR(kind):
        syscalls.mount(
            "tmpfs", path, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,nr_inodes=2,mode=0555"
        )
    elif stat.S_ISREG(kind):
        syscalls.mount("/dev/null", path, None, MS_BIND)
