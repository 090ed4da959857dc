"""The sandbox of one worker process: finds out what this host allows, and runs programs behind it.

Theory of operation. Two interpreters wait: a bare one, which commands (compilers) are started from, and one that has imported
`preload`, which sessions are forks of. Both fork a supervisor for each run (supervisor.py), which forks the keeper and the
program (keeper.py). Which layers hold is found by trial, at the start: the strongest set is tried on a real program; when a
layer fails it is left out, with the reason, and the next weaker set is tried. Every later run must set up exactly the layers
that held, or it is refused: what was promised at the start is what each run gets.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from . import cgroup, landlock, layers
from .interpreter import Interpreter, inspect, visible
from .launcher import Launcher
from .layers import Layer, Layers, Level
from .order import Order
from .outcome import Finished, Limits, SandboxError
from .session import Cancelled, RefusedError, Run, Session

log = logging.getLogger(__name__)

TRIAL = Limits(wall_s=20, cpu_s=20, memory_mb=512, scratch_mb=8, output_kb=64)
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}
# Each layer on the left needs all those on the right: without one of them it cannot be had, or would protect nothing.
LEAN_ON = {
    layers.PROC: (layers.PID, layers.MOUNT),
    layers.LANDLOCK: (layers.NO_NEW_PRIVS,),
}


def never() -> bool:
    """Nobody cancels."""
    return False


class Sandbox:
    """Runs programs nobody trusts. One for each worker process; a context manager; not to be shared by threads.

    python: the interpreter of sessions. uid: whom to become when the worker is root. minimum: the weakest level accepted.
    preload: modules that sessions find imported. readable: files and folders of the host that every run may read.
    without: names of layers to leave out, for measuring what each of them stops; never in service.
    give_way: asked while anything runs; True ends every run as if its caller had cancelled it.
    Raises SandboxError when less than `minimum` holds here, naming what is missing.
    """

    def __init__(
        self,
        *,
        python: Path,
        uid: int,
        minimum: Level,
        preload: Sequence[str] = (),
        readable: Sequence[Path] = (),
        without: Collection[str] = (),
        give_way: Cancelled = never,
    ) -> None:
        unknown = [name for name in without if name not in layers.NAMES or name == layers.WATCHDOG]
        if unknown:
            accepted = ", ".join(name for name in layers.NAMES if name != layers.WATCHDOG)
            raise ValueError(f"layers to leave out: {unknown}; accepted are {accepted}")
        self.uid = uid
        self._give_way: Cancelled = never  # not yet: what tries the layers has to end by itself
        self._root = os.getuid() == 0
        self._interpreter: Interpreter = inspect(python)
        self._readable = [*self._interpreter.visible, *visible([str(path) for path in readable])]
        self._bare = Launcher(self._interpreter, ())
        self._warm = Launcher(self._interpreter, preload) if preload else self._bare
        self._warm.start()
        try:
            self.layers = self._find_layers(frozenset(without))
            self._require(minimum)
        except BaseException:
            self.close()
            raise
        self._give_way = give_way
        log.info("%s", self.layers.describe())

    @property
    def python(self) -> str:
        """The interpreter of sessions, as a command that every run may execute."""
        return self._interpreter.python

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends both interpreters and with them every run."""
        self._bare.close()
        self._warm.close()

    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        limits: Limits,
        files: Mapping[str, bytes] = {},
        stdin: bytes = b"",
        collect: Sequence[str] = (),
        readable: Sequence[Path] = (),
        cancelled: Cancelled = never,
    ) -> Finished:
        """Executes a command and waits for its end, whatever that is.

        argv: the command by its full path and its arguments. files: written to its fresh working folder before it starts;
        names may contain folders. collect: names whose contents to return. readable: more of the host that it may read.
        Raises SandboxError when it could not be started, ValueError for a name that leaves the folder.
        """
        wanted = self._order([os.fspath(word) for word in argv], b"", limits, files, stdin, collect, readable)
        run = Run(self._bare.fork(), wanted, [], self._ended_by(cancelled))
        run.wait()
        return run.end(b"k")

    def session(
        self,
        program: str,
        *,
        limits: Limits,
        files: Mapping[str, bytes] = {},
        fds: Sequence[int] = (),
        cancelled: Cancelled = never,
    ) -> Session:
        """Executes a Python text in a fork of the interpreter that has imported `preload`.

        The text finds `channel`, a connected stream socket to the returned Session, and `fds`, the numbers that the passed
        descriptors have on its side (at most 14). Memory files among them do not count as the program's memory.
        Raises SandboxError when it could not be started, a syntax error in the text included.
        """
        wanted = self._order(None, program.encode(), limits, files, b"", (), ())
        ours, theirs = socket.socketpair()
        try:
            run = Run(self._warm.fork(), wanted, [theirs.fileno(), *fds], self._ended_by(cancelled))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Session(run, ours)

    def _ended_by(self, cancelled: Cancelled) -> Cancelled:
        return lambda: cancelled() or self._give_way()

    def _order(
        self,
        argv: list[str] | None,
        program: bytes,
        limits: Limits,
        files: Mapping[str, bytes],
        stdin: bytes,
        collect: Iterable[str],
        readable: Sequence[Path],
    ) -> Order:
        if argv is not None and not (argv and argv[0].startswith("/")):
            raise ValueError(f"command {argv!r}: a full path is accepted, such as /usr/bin/c++")
        for name in (*files, *collect):
            _check_name(name)
        shown = [*self._readable, *visible([str(path) for path in readable])]
        return Order(
            argv=argv,
            limits=limits,
            layers=self.layers.held,
            uid=self.uid,
            environment=dict(ENVIRONMENT),
            visible=[list(pair) for pair in shown],
            collect=list(collect),
            files=dict(files),
            stdin=stdin,
            program=program,
        )

    def _find_layers(self, without: frozenset[str]) -> Layers:
        """Tries the strongest set first and leaves out what fails, with the reason."""
        absent = self._leaning(self._known_absent(without))
        own = [name for name in layers.NAMES if name not in absent]
        for _ in layers.NAMES:
            self.layers = self._rows(absent)
            problem = self._try()
            if problem is None:
                return self.layers
            absent = self._leaning(absent | self._consequences(problem, absent))
        raise SandboxError(f"nothing runs in the sandbox here, tried with {', '.join(own)}: {absent}")

    def _known_absent(self, without: frozenset[str]) -> dict[str, str]:
        absent = dict.fromkeys(without, "left out on request")
        if not self._root:
            absent.setdefault(layers.UID, f"only root can change users; runs as the worker's user {os.getuid()}")
        if not landlock.abi():
            absent.setdefault(layers.LANDLOCK, "the kernel has no Landlock or has it switched off")
        group, reason = cgroup.parent()
        if group is None:
            absent.setdefault(layers.CGROUP, f"{reason}; the watchdog stands in")
        return absent

    def _leaning(self, absent: Mapping[str, str]) -> dict[str, str]:
        """`absent` and what cannot do without something that is in it."""
        found = dict(absent)
        for name, needed in LEAN_ON.items():
            for other in needed:
                if other in found:
                    found.setdefault(name, f"needs {other}")
        if self._root and layers.PROC in found and layers.PID not in found:
            # The user is mapped by process id, through a /proc that knows the run's own ids.
            found.setdefault(layers.USER, f"needs {layers.PROC}")
        return found

    def _rows(self, absent: Mapping[str, str]) -> Layers:
        details = {
            layers.LANDLOCK: f"ABI {landlock.abi()}",
            layers.UID: f"uid {self.uid}",
            layers.CGROUP: cgroup.parent()[1],
            layers.USER: "of the run's own" if self._root else f"as uid {os.getuid()}",
        }
        rows = [Layer(name, name not in absent, absent.get(name, details.get(name, "tried"))) for name in layers.NAMES]
        return Layers(tuple(rows), self._root)

    def _try(self) -> RefusedError | None:
        """Runs the interpreter behind the layers of `self.layers`; which layer refused, or None when it ran."""
        program = "import json, os, socket, sys; print('ran')"
        try:
            finished = self.run([self._interpreter.python, "-I", "-S", "-c", program], limits=TRIAL)
        except RefusedError as refusal:
            return refusal
        if finished.stdout == b"ran\n":
            return None
        said = finished.stderr.decode(errors="replace").strip()[-400:]
        return RefusedError("interpreter", f"{self._interpreter.python} ended as {finished.end} there: {said}")

    def _consequences(self, problem: RefusedError, absent: Mapping[str, str]) -> dict[str, str]:
        """What to leave out after a failed trial. Raises SandboxError when there is nothing left that would help."""
        if problem.layer == layers.PROC or problem.layer not in layers.NAMES:
            lost: tuple[str, ...] = (problem.layer,)
        elif problem.layer in layers.NAMESPACES and not (problem.layer == layers.USER and self._root):
            lost = layers.NAMESPACES
        else:
            lost = (problem.layer,)
        lost = tuple(name for name in lost if name in layers.NAMES and name not in absent)
        if not lost:
            raise SandboxError(
                f"{problem}. Without a mount namespace the user {self.uid if self._root else os.getuid()} must be able to "
                f"read {self._interpreter.python} and all folders above it; set KERNELGATE_RUNNER_PYTHON to one outside of "
                "a private folder, or allow namespaces"
            )
        return dict.fromkeys(lost, problem.message.splitlines()[-1][:300])

    def _require(self, minimum: Level) -> None:
        missing = self.layers.missing(minimum)
        if missing:
            reasons = "; ".join(f"{name}: {self.layers[name].detail}" for name in missing)
            raise SandboxError(
                f"this host offers the sandbox level {self.layers.level!r}, and {minimum!r} is the least that is accepted "
                f"(KERNELGATE_SANDBOX_MINIMUM). Missing: {reasons}"
            )


def _check_name(name: str) -> None:
    parts = name.split("/")
    if not name or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"file name {name!r}: a relative path without '.' and '..' is accepted")
