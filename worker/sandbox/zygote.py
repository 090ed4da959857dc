"""The warm interpreter: it has imported what sessions need, and forks a supervisor for each run.

Theory of operation. It is started as its own program with a clean environment, isolated from the user's site and PYTHON*
variables, and holds no secret: sessions are forks of it and can read all that it ever held. Orders therefore do not pass
through it; it receives one byte with one descriptor, the socket over which the fork gets its order from the worker.
It stays single-threaded, for only the forking thread lives on in a fork.

It ends with its worker in two ways. End of file on its socket means that the worker closed it or is dead. And the kernel
signals it when its parent goes; since that is the parent's *thread*, the handler looks whether the process is still there.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys

from . import account, seccomp, supervisor, syscalls

READY = b"R"
FORK = b"F"


def serve(control: socket.socket, preload: list[str], site: list[str]) -> None:
    """Imports `preload` (from the folders `site` too), says so, and forks on demand until the worker is gone."""
    parent = os.getppid()

    def look_for_parent(_number: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(0)

    signal.signal(signal.SIGTERM, look_for_parent)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are reaped by the kernel
    sys.path += site
    try:
        for name in preload:
            importlib.import_module(name)
    except BaseException as error:
        with contextlib.suppress(OSError):
            control.sendall(f"{type(error).__name__}: {error}".encode()[:4000])
        os._exit(1)
    with contextlib.suppress(OSError):
        seccomp.assemble(own_pid=None, shares_files=False)  # the forks find it made
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, every object's header
    warm = account.anonymous("self")
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)  # nobody of the same user may look into it or trace it
    control.sendall(READY)
    _fork_on_demand(control, warm)


def _fork_on_demand(control: socket.socket, warm: int) -> None:
    while True:
        try:
            message, fds, _, _ = socket.recv_fds(control, 1, 1)
        except OSError:
            return
        if not message or not fds:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            os.set_inheritable(fds[0], False)
            supervisor.supervise(socket.socket(fileno=fds[0]), warm)
        os.close(fds[0])
