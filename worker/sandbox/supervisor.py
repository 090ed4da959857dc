"""Outside: one supervisor a run. It starts the keeper, watches what the run uses, keeps its output, ends it and reports.

Theory of operation. The warm interpreter forks a supervisor for each run; it holds no secret and executes nothing that was
submitted. It lives outside of the namespaces that it makes, reads the order from its own socket to the worker (so that no
order ever passes through, and stays in, the memory that later runs are forked from), and then alternates between waiting for
bytes and looking at /proc. Exactly one report goes back: `refused` before the program started, our fault; or `started` and then
`ended`. The first limit that is hit decides how the run ended, and ends it: process 1 of the namespace is killed, the kernel
kills the rest. Without a pid namespace the supervisor is the adopter of orphans and kills descendants until there are none.

The worker asks for the end with one byte, or by closing its socket, which is also what happens when the worker dies.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
import traceback
from dataclasses import dataclass, field
from typing import NoReturn

from . import account, keeper, layers, order, privileges, root, scratchfolder, syscalls
from .cgroup import Cgroup
from .outcome import MIB, End

TICK_S = 0.010
SLOW_TICK_S = 0.050
LONGEST_TICK_S = 0.5
REAP_S = 10.0
ASKED = {b"k": End.KILLED, b"w": End.WALL, b"c": End.EXITED}


@dataclass
class Watch:
    """One run while it runs. Times are of time.monotonic."""

    order: order.Order
    control: socket.socket
    report: socket.socket
    keeper: int
    memory: account.Memory
    cgroup: Cgroup | None
    scratch: str | None  # on the host, where there is no mount namespace
    outputs: dict[int, bytearray]
    started: float | None = None
    ended: float = 0.0
    end: End | None = None
    peak: int = 0
    status: int | None = None
    room: int | None = None  # descriptor of the scratch folder inside the run's mount namespace
    files: tuple[list[str], list[bytes]] = field(default_factory=lambda: ([], []))
    next_look: float = 0.0
    next_slow_look: float = 0.0


def supervise(control: socket.socket, warm: int) -> NoReturn:
    """A supervisor's life. warm: anonymous bytes of the interpreter that it is a fork of. Never returns."""
    try:
        os.setsid()
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        header, blobs, fds = order.receive(control)
        _supervise(control, order.Order.decode(header, blobs), fds, warm)
    except order.PeerGone:
        pass
    except keeper.Refused as refused:
        _tell(control, {"kind": "refused", "layer": refused.layer, "message": refused.message})
    except BaseException:
        _tell(control, {"kind": "refused", "layer": "supervisor", "message": traceback.format_exc(limit=-4)})
    os._exit(0)


def _tell(control: socket.socket, header: order.Header, blobs: list[bytes] | None = None) -> None:
    with contextlib.suppress(OSError):
        order.send(control, header, blobs or [])


def _supervise(control: socket.socket, wanted: order.Order, fds: list[int], warm: int) -> None:
    owner = wanted.uid if layers.UID in wanted.layers else None
    scratch = None if layers.MOUNT in wanted.layers else scratchfolder.make(owner)
    watch: Watch | None = None
    try:
        watch = _begin(control, wanted, fds, warm, scratch)
        signal.signal(signal.SIGTERM, lambda _number, _frame: _abandon(watch))
        try:
            _watch(watch)
        except BaseException:
            with contextlib.suppress(keeper.Refused):
                _kill(watch)
            raise
        if watch.started is None:  # it printed too much before the keeper came to say that it had begun
            _tell(control, {"kind": "started"})
        _tell(control, *_report(watch))
    finally:
        if watch and watch.cgroup:
            watch.cgroup.close()
        if scratch:
            scratchfolder.remove(scratch)


def _begin(control: socket.socket, wanted: order.Order, fds: list[int], warm: int, scratch: str | None) -> Watch:
    """Makes the outer namespaces and forks the keeper into them."""
    uid, gid = os.getuid(), os.getgid()
    cgroup = None
    if layers.CGROUP in wanted.layers:
        with keeper.setting_up(layers.CGROUP):
            cgroup = Cgroup.create(wanted.limits)
    own_user = layers.USER in wanted.layers and layers.UID not in wanted.layers
    if own_user:
        with keeper.setting_up(layers.USER):
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # or its own uid_map would not be its own
            syscalls.unshare(syscalls.CLONE_NEWUSER)
            privileges.map_own_user(uid, gid)
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    if layers.PID in wanted.layers:
        with keeper.setting_up(layers.PID):
            syscalls.unshare(syscalls.CLONE_NEWPID)
    else:
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    stdout_r, stdout_w = os.pipe()
    stderr_r, stderr_w = os.pipe()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        if cgroup:
            cgroup.enter()
        keeper.keep(keeper.Room(wanted, scratch or root.SCRATCH, theirs, stdout_w, stderr_w, fds))
    theirs.close()
    passed = sum(os.fstat(fd).st_size for fd in fds[1:]) if wanted.argv is None else 0
    for fd in (stdout_w, stderr_w, *fds):
        os.close(fd)
    for fd in (stdout_r, stderr_r):
        os.set_blocking(fd, False)
    memory = account.Memory(warm if wanted.argv is None else 0, passed)
    return Watch(wanted, control, ours, pid, memory, cgroup, scratch, {stdout_r: bytearray(), stderr_r: bytearray()})


def _watch(watch: Watch) -> None:
    """Until the run has ended and everything in it is dead."""
    poll = select.poll()
    for fd in (watch.control.fileno(), watch.report.fileno(), *watch.outputs):
        poll.register(fd, select.POLLIN)
    closed: set[int] = set()
    while watch.end is None:
        for fd, _ in poll.poll(TICK_S * 1000):
            if fd == watch.report.fileno():
                _hear_keeper(watch)
            elif fd == watch.control.fileno():
                watch.end = ASKED.get(_asked(watch.control), End.KILLED)
            elif not _drain(watch, fd):
                poll.unregister(fd)
                closed.add(fd)
        if watch.end is None and watch.started is not None:
            _look(watch)
    watch.ended = time.monotonic()
    _kill(watch)
    for fd in watch.outputs.keys() - closed:
        while _drain(watch, fd, final=True):
            pass


def _asked(control: socket.socket) -> bytes:
    try:
        return control.recv(1)
    except OSError:
        return b""


def _hear_keeper(watch: Watch) -> None:
    try:
        header, blobs, fds = order.receive(watch.report)
    except order.PeerGone:
        if watch.cgroup and watch.cgroup.out_of_memory():
            watch.end = End.MEMORY
            return
        raise keeper.Refused("keeper", "the process that keeps the run is gone") from None
    if header["kind"] == "started":
        watch.started = time.monotonic()
        watch.room = fds[0]
        order.send(watch.control, {"kind": "started"})
    elif header["kind"] == "ended":
        watch.status = header["status"]
        watch.files = (header["collected"], blobs)
        watch.end = _end_of(watch)
    else:
        raise keeper.Refused(header["layer"], header["message"])


def _end_of(watch: Watch) -> End:
    """How a run ended that ended by itself: a limit that the kernel enforced, or its own doing."""
    _look(watch, final=True)
    if watch.end is not None:
        return watch.end
    status = watch.status or 0
    if os.WIFEXITED(status):
        return End.EXITED
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU:
        return End.CPU
    if number == signal.SIGXFSZ:
        return End.SCRATCH
    if number == signal.SIGKILL and watch.cgroup and watch.cgroup.out_of_memory():
        return End.MEMORY
    return End.SIGNALED


def _drain(watch: Watch, fd: int, *, final: bool = False) -> bool:
    """Takes what is in a pipe; False at its end (or, finally, when it is empty)."""
    try:
        part = os.read(fd, 65536)
    except BlockingIOError:
        return not final
    if not part:
        return False
    room = watch.order.limits.output_kb * 1024 - sum(map(len, watch.outputs.values()))
    watch.outputs[fd] += part[: max(0, room)]
    if len(part) > room and watch.end in (None, End.EXITED, End.SIGNALED):
        watch.end = End.OUTPUT
    return True


def _look(watch: Watch, *, final: bool = False) -> None:
    """Compares what the run uses with its limits; sets `end` when one is passed."""
    now = time.monotonic()
    limits = watch.order.limits
    if watch.started is not None and now - watch.started > limits.wall_s and not final:
        watch.end = End.WALL
        return
    if now < watch.next_look and not final:
        return
    pids = account.descendants(watch.keeper)
    used = _memory(watch, pids, limits.memory_mb * MIB)
    # Watching takes a fifth of a core, and more only where a run makes it slow.
    watch.next_look = now + max(TICK_S, min(LONGEST_TICK_S, 5 * (time.monotonic() - now)))
    if used > limits.memory_mb * MIB or (watch.cgroup and watch.cgroup.out_of_memory()):
        watch.end = End.MEMORY
    elif now >= watch.next_slow_look or final:
        if account.cpu_seconds([watch.keeper, *pids]) > limits.cpu_s:
            watch.end = End.CPU
        elif _scratch_full(watch, pids):
            watch.end = End.SCRATCH
        watch.next_slow_look = now + max(SLOW_TICK_S, 5 * (time.monotonic() - now))


def _memory(watch: Watch, pids: list[int], limit: int) -> int:
    """Bytes of memory that the run uses, as exactly as it matters; keeps the peak."""
    at_most = watch.memory.at_most(pids)
    used = max(0, at_most - watch.memory.warm - watch.memory.passed)
    if at_most > limit:
        used = watch.memory.exact(pids, lambda: watch.memory.far_beyond(account.descendants(watch.keeper), limit))
    watch.peak = max(watch.peak, used)
    return used


def _scratch_full(watch: Watch, pids: list[int]) -> bool:
    scratch_mb = watch.order.limits.scratch_mb
    most_entries = root.inode_limit(scratch_mb)
    if watch.scratch:
        size, entries = scratchfolder.usage(watch.scratch, most_entries)
        size += scratchfolder.unlinked(pids, os.stat(watch.scratch).st_dev)
    else:
        facts = os.fstatvfs(watch.room) if watch.room is not None else os.statvfs(root.SCRATCH)
        size = (facts.f_blocks - facts.f_bfree) * facts.f_frsize
        entries = facts.f_files - facts.f_ffree
    return size > scratch_mb * MIB or entries > most_entries


def _kill(watch: Watch) -> None:
    """Nothing of the run is alive when this returns. Raises Refused when it cannot be had."""
    if watch.cgroup:
        watch.cgroup.kill()
    if layers.PID not in watch.order.layers:
        account.kill_below(watch.keeper, within_s=REAP_S / 2, reap=lambda: None)
    with contextlib.suppress(ProcessLookupError):
        os.kill(watch.keeper, signal.SIGKILL)
    deadline = time.monotonic() + REAP_S
    while time.monotonic() < deadline:
        try:
            if os.waitpid(watch.keeper, os.WNOHANG)[0]:
                break
        except ChildProcessError:
            break
        time.sleep(0.001)
    else:
        raise keeper.Refused("kill", f"the run was still alive {REAP_S:g} s after it was killed")
    if layers.PID not in watch.order.layers and not account.kill_below(os.getpid(), within_s=5, reap=_reap_ended):
        raise keeper.Refused("kill", "processes of the run were still alive after 5 s of killing them")


def _reap_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _abandon(watch: Watch | None) -> NoReturn:
    """The warm interpreter that this was forked from is gone, and with it the worker most likely."""
    if watch:
        with contextlib.suppress(keeper.Refused):
            _kill(watch)
        if watch.cgroup:
            watch.cgroup.close()
        if watch.scratch:
            scratchfolder.remove(watch.scratch)
    os._exit(0)


def _report(watch: Watch) -> tuple[order.Header, list[bytes]]:
    end = watch.end or End.KILLED
    status = watch.status
    exit_code = os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None
    number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None
    names, blobs = watch.files if end in (End.EXITED, End.SIGNALED) else ([], [])
    header = {
        "kind": "ended",
        "end": end.value,
        "exit_code": exit_code if end is End.EXITED else None,
        "signal": number if end is End.SIGNALED else None,
        "wall_ms": (watch.ended - (watch.started or watch.ended)) * 1e3,
        "peak_mb": watch.peak / MIB,
        "files": names,
    }
    stdout, stderr = watch.outputs.values()
    return header, [bytes(stdout), bytes(stderr), *blobs]
