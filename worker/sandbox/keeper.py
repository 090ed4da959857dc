"""Inside: the keeper (process 1 of a run) makes the room, and the program's process locks itself in before it starts.

Theory of operation. The supervisor forks the keeper, already in a new pid namespace. The keeper leaves the remaining
namespaces, builds the root, writes the run's files and forks the program's process, which gives up its privileges in the one
order that works: descriptors, limits that need none, user namespace, bounding set, user, capabilities, no_new_privs,
Landlock, seccomp. Each step that fails is reported over a close-on-exec pipe and the process leaves: a run whose layers do
not all hold never starts. End of file on that pipe means that the program has begun; from then on nothing from it is believed.

The keeper stays as process 1: it adopts and reaps orphans, and when the main process is gone it kills whatever else is in
there, so that a daemon or a child with an open stdout does not outlive it. Then it collects the files, alone. Signals from
inside do not reach process 1 of a pid namespace; without one, Landlock or the system-call filter keeps them away. It cannot
be traced or read (not dumpable). If the supervisor dies the kernel kills the keeper, and with process 1 the whole namespace.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from . import account, landlock, layers, order, privileges, root, seccomp, syscalls
from .outcome import MIB

NAMESPACES = {
    layers.MOUNT: syscalls.CLONE_NEWNS,
    layers.NET: syscalls.CLONE_NEWNET,
    layers.IPC: syscalls.CLONE_NEWIPC,
    layers.UTS: syscalls.CLONE_NEWUTS,
    layers.CGROUP_VIEW: syscalls.CLONE_NEWCGROUP,
}
READABLE_FACTS = (*root.CONFIGURATION, *root.TOPOLOGY, *root.FACTS)
CONFUSED = 125  # exit status of a process of ours that failed; only ever read together with a report of the failure


class Refused(Exception):  # noqa: N818 - carries which layer it was to the worker, which raises
    """A layer could not be set up."""

    def __init__(self, layer: str, message: str) -> None:
        super().__init__(message)
        self.layer = layer
        self.message = message


@contextlib.contextmanager
def setting_up(layer: str) -> Iterator[None]:
    """Names the layer that an error belongs to."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Refused(layer, str(error)) from error


@dataclass
class Room:
    """What the keeper works with. scratch: where the run's files are, as the run sees it; report: to the supervisor."""

    order: order.Order
    scratch: str
    report: socket.socket
    stdout: int
    stderr: int
    given: Sequence[int]

    def wants(self, layer: str) -> bool:
        return layer in self.order.layers


def keep(room: Room) -> NoReturn:
    """The keeper's life. Never returns."""
    try:
        os.setsid()
        close_all_but({0, 1, 2, room.report.fileno(), room.stdout, room.stderr, *room.given})
        _die_with_supervisor(room)
        if select.select([room.report], [], [], 0)[0]:  # it died before that took effect
            os._exit(CONFUSED)
        _be_first_to_go()
        proc = _make_room(room)
        _write_files(room)
        program, started = _start(room, proc)
        problem = _read_all(started)
        if problem:
            os.waitpid(program, 0)
            order.send(room.report, json.loads(problem))
            os._exit(CONFUSED)
        scratch = os.open(room.scratch, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        order.send(room.report, {"kind": "started"}, fds=[scratch])
        status = _wait_for(program)
        _end_all_others(room)
        names, blobs = _collect(room)
        order.send(room.report, {"kind": "ended", "status": status, "collected": names}, blobs)
    except Refused as refused:
        order.send(room.report, {"kind": "refused", "layer": refused.layer, "message": refused.message})
    except BaseException:  # whatever it is, the supervisor must hear of it
        text = traceback.format_exc(limit=-4)
        with contextlib.suppress(OSError):
            order.send(room.report, {"kind": "refused", "layer": "keeper", "message": text})
    os._exit(CONFUSED)


def close_all_but(kept: set[int]) -> None:
    """Closes every descriptor of this process that is not in `kept`."""
    ordered = sorted(kept)
    for low, high in zip(ordered, [*ordered[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(low + 1, high)


def _die_with_supervisor(room: Room) -> None:
    """With a pid namespace the kernel takes all processes along; without one the keeper still has to kill them."""
    if room.wants(layers.PID):
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        return

    def clear(_number: int, _frame: object) -> NoReturn:
        account.kill_below(os.getpid(), within_s=5, reap=_reap_ended)
        os._exit(CONFUSED)

    signal.signal(signal.SIGTERM, clear)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)


def _be_first_to_go() -> None:
    """When the host runs out of memory its killer takes a run before it takes the worker or a database."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("900")


def _make_room(room: Room) -> int | None:
    """Leaves the namespaces, builds the root. Returns a folder descriptor of a writable /proc, to map users with."""
    for name, flag in NAMESPACES.items():
        if room.wants(name):
            with setting_up(name):
                syscalls.unshare(flag)
    if room.wants(layers.UTS):
        with setting_up(layers.UTS):
            socket.sethostname("sandbox")
    if not room.wants(layers.PID):
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if room.wants(layers.MOUNT):
        own_proc = room.wants(layers.PROC)
        if own_proc:
            proc = _writable_proc(proc)
        with setting_up(layers.MOUNT):
            root.build(room.order.visible, room.order.limits.scratch_mb, _program_uid(room), own_proc=own_proc)
        room.scratch = root.SCRATCH
    return proc


def _writable_proc(host: int) -> int:
    """A /proc of the run's own pid namespace, reachable by its descriptor alone."""
    with setting_up(layers.PROC):
        syscalls.mount("none", "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("proc", "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV | syscalls.MS_NOEXEC)
        proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        syscalls.unmount("/proc")
    os.close(host)
    return proc


def _program_uid(room: Room) -> int:
    return room.order.uid if room.wants(layers.UID) else os.getuid()


def _write_files(room: Room) -> None:
    uid = _program_uid(room)
    os.chdir(room.scratch)
    os.umask(0o077)
    for name, contents in room.order.files.items():
        with setting_up(f"file {name!r} in the scratch folder"):
            if "/" in name:
                os.makedirs(os.path.dirname(name), exist_ok=True)
            fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            with open(fd, "wb") as file:
                file.write(contents)
    if uid != os.getuid():
        for folder, folders, files in os.walk("."):
            for name in (*folders, *files):
                os.chown(os.path.join(folder, name), uid, uid, follow_symlinks=False)


def _start(room: Room, proc: int | None) -> tuple[int, int]:
    """Forks the program's process; returns its id and the pipe that tells of its preparations."""
    reading, writing = os.pipe()
    ours, theirs = socket.socketpair()
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    program = os.fork()
    if program == 0:
        os.close(reading)
        ours.close()
        _be_program(room, writing, theirs)
    os.close(writing)
    theirs.close()
    if ours.recv(1):  # it is in a user namespace of its own now
        uid = room.order.uid
        for name in ("uid_map", "gid_map"):
            fd = os.open(f"{program}/{name}", os.O_WRONLY, dir_fd=proc)
            os.write(fd, f"{uid} {uid} 1".encode())
            os.close(fd)
        ours.sendall(b"m")
    ours.close()
    if proc is not None:
        os.close(proc)
    for fd in (room.stdout, room.stderr, *room.given):
        os.close(fd)
    return program, reading


def _be_program(room: Room, writing: int, mapped: socket.socket) -> NoReturn:
    try:
        stdin = _stdin(room.order.stdin)
        _confine(room, writing, mapped, stdin)
        if room.order.argv is not None:
            with setting_up(f"command {room.order.argv[0]!r}"):
                os.execve(room.order.argv[0], room.order.argv, room.order.environment)
        _be_session(room, writing)
    except Refused as refused:
        problem = {"kind": "refused", "layer": refused.layer, "message": refused.message}
    except BaseException:
        problem = {"kind": "refused", "layer": "program", "message": traceback.format_exc(limit=-4)}
    os.write(writing, json.dumps(problem).encode()[:60000])
    os._exit(CONFUSED)


def _stdin(contents: bytes) -> int:
    if not contents:
        return os.open(os.devnull, os.O_RDONLY)
    writable = os.memfd_create("stdin")
    with open(writable, "wb", closefd=False) as file:
        file.write(contents)
    reading = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY)
    os.close(writable)
    return reading


def _confine(room: Room, writing: int, mapped: socket.socket, stdin: int) -> None:
    """Puts on every layer that the program's own process carries."""
    os.setsid()
    tasks = _tasks_already(room)
    _own_user(room, mapped)
    _arrange_descriptors(room, writing, stdin)
    _reset_signals()
    if room.wants(layers.RLIMITS):
        with setting_up(layers.RLIMITS):
            privileges.set_limits(room.order.limits, tasks)
    if room.wants(layers.CAPABILITIES):
        with setting_up(layers.CAPABILITIES):
            privileges.drop_bounding_set()
    if room.wants(layers.UID):
        with setting_up(layers.UID):
            privileges.become(room.order.uid)
    if room.wants(layers.CAPABILITIES):
        with setting_up(layers.CAPABILITIES):
            privileges.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)  # changing the user has cleared it
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # or it could not list its own /proc/self/fd
    if room.wants(layers.NO_NEW_PRIVS):
        with setting_up(layers.NO_NEW_PRIVS):
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if room.wants(layers.LANDLOCK):
        with setting_up(layers.LANDLOCK):
            _landlock(room)
    if room.wants(layers.SECCOMP):
        with setting_up(layers.SECCOMP):
            own_pid = None if room.wants(layers.PID) else os.getpid()
            shares_files = not room.wants(layers.MOUNT) and not room.wants(layers.UID)
            seccomp.install(seccomp.assemble(own_pid=own_pid, shares_files=shares_files))


def _tasks_already(room: Room) -> int:
    """Tasks that the kernel will count against the run's limit though they are not the run's."""
    if room.wants(layers.USER):
        return 0 if room.wants(layers.UID) else 2  # as an ordinary user supervisor and keeper share the namespace
    return privileges.tasks_of(_program_uid(room))


def _own_user(room: Room, mapped: socket.socket) -> None:
    """As root: a user namespace that owns nothing, so that the count of tasks is the run's own and no capability in it
    would be worth having. The keeper, outside of it, maps the one user."""
    if room.wants(layers.UID):
        with setting_up(layers.UID):
            os.setgroups([])
        if room.wants(layers.USER):
            with setting_up(layers.USER):
                syscalls.unshare(syscalls.CLONE_NEWUSER)
                mapped.sendall(b"u")
                if mapped.recv(1) != b"m":
                    raise OSError(errno.EPERM, "the keeper could not map the user")
    mapped.close()


def _arrange_descriptors(room: Room, writing: int, stdin: int) -> None:
    """0, 1, 2, what was given and the pipe of preparations; nothing else stays open."""
    for source, target in ((stdin, 0), (room.stdout, 1), (room.stderr, 2)):
        os.dup2(source, target)
    close_all_but({0, 1, 2, writing, *room.given})


def _reset_signals() -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _landlock(room: Room) -> None:
    if room.wants(layers.MOUNT):
        landlock.restrict(["/"], list(root.WRITABLE.values()), [f"/dev/{name}" for name in root.DEVICES])
        return
    shown = [source for source, _ in room.order.visible]
    # Not getpid(): behind a pid namespace an old /proc still counts the outer way.
    own = "/proc/" + os.readlink("/proc/self")
    landlock.restrict(
        [*root.SYSTEM, *READABLE_FACTS, *shown, own], [room.scratch], [f"/dev/{name}" for name in root.DEVICES]
    )


def _be_session(room: Room, writing: int) -> NoReturn:
    """Executes the session's text in this interpreter, as a script would be."""
    channel, *fds = room.given
    os.environ.clear()
    os.environ.update(room.order.environment)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    text = compile(room.order.program, "<session>", "exec", dont_inherit=True)
    namespace: dict[str, object] = {"__name__": "__main__", "channel": socket.socket(fileno=channel), "fds": fds}
    os.close(writing)
    os._exit(_status_of(lambda: exec(text, namespace)))  # noqa: S102 - the jail is for this


def _status_of(script: Callable[[], None]) -> int:
    """Runs a script as the interpreter would at its top level; returns the exit status."""
    status = 0
    try:
        script()
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException as error:
        own_frames = error.__traceback__
        for _ in range(2):
            own_frames = own_frames.tb_next if own_frames else None
        traceback.print_exception(type(error), error, own_frames)
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return status & 0xFF


def _read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 65536):
        parts.append(part)
    os.close(fd)
    return b"".join(parts)


def _wait_for(program: int) -> int:
    """Reaps whatever ends until it is the main process; returns its wait status."""
    while True:
        pid, status = os.wait()
        if pid == program:
            return status


def _reap_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_all_others(room: Room) -> None:
    if room.wants(layers.PID):
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
    elif not account.kill_below(os.getpid(), within_s=5, reap=_reap_ended):
        raise Refused("kill", "processes of the run were still alive after 5 s of killing them")


def _collect(room: Room) -> tuple[list[str], list[bytes]]:
    """The files asked for, as far as they are regular files in the scratch folder; no link is followed on the way."""
    names, blobs = [], []
    left = room.order.limits.scratch_mb * MIB + MIB
    base = os.open(room.scratch, os.O_PATH | os.O_DIRECTORY)
    for name in room.order.collect:
        contents = _contents(base, name, left)
        if contents is not None:
            names.append(name)
            blobs.append(contents)
            left -= len(contents)
    return names, blobs


def _contents(base: int, name: str, most: int) -> bytes | None:
    *folders, last = name.split("/")
    opened = [base]
    try:
        for folder in folders:
            opened.append(os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
        fd = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=opened[-1])
        with open(fd, "rb") as file:
            facts = os.fstat(fd)
            return file.read() if stat.S_ISREG(facts.st_mode) and facts.st_size <= most else None
    except OSError:
        return None
    finally:
        for fd in opened[1:]:
            os.close(fd)
