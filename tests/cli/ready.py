"""A process that has imported what the command line imports, and becomes it in a fork for each call.

Half of what these tests took was imports, a second a call. A fork has the arguments, the environment, the
working folder and the three streams that a process of its own would have.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from kernelgate.settings import ROOT

PACKAGE = "kernelgate.cli"
BESIDE = ("kernelgate.accounts", "kernelgate.models", "sqlalchemy.dialects.postgresql.psycopg")
ORDER_BYTES = 1 << 18
STREAMS = 3


class ReadyCommandLine:
    """The process, and a way to call it. Started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._calls: socket.socket | None = None

    def run(
        self, words: Sequence[str], *, env: dict[str, str], cwd: Path, given: str
    ) -> subprocess.CompletedProcess[str]:
        """One call to its end."""
        calls = self._calls or self._start()
        with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            stdin.write(given.encode())
            stdin.seek(0)
            order = json.dumps({"words": list(words), "env": env, "cwd": str(cwd)}).encode()
            assert len(order) < ORDER_BYTES
            socket.send_fds(calls, [order], [each.fileno() for each in (stdin, out, err)])
            status = int(calls.recv(16))
            texts = []
            for each in (out, err):
                each.seek(0)
                texts.append(each.read().decode())
        return subprocess.CompletedProcess(words, status, *texts)

    def stop(self) -> None:
        if self._process is not None and self._calls is not None:
            self._calls.close()
            self._process.wait(30)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-m", "tests.cli.ready", str(theirs.fileno())]
        self._process = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        ours.settimeout(90)
        self._calls = ours
        return ours


def serve(calls: socket.socket) -> None:
    for module in pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__):
        importlib.import_module(f"{PACKAGE}.{module.name}")
    for name in BESIDE:
        importlib.import_module(name)
    while True:
        order, descriptors, _, _ = socket.recv_fds(calls, ORDER_BYTES, STREAMS)
        if not order:
            return
        pid = os.fork()
        if pid == 0:
            calls.close()
            become(json.loads(order), descriptors)
        for each in descriptors:
            os.close(each)
        calls.sendall(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())


def become(order: dict[str, object], descriptors: Sequence[int]) -> NoReturn:
    """What `python -m kernelgate` is with these words."""
    status: object = 1
    try:
        for stream, each in enumerate(descriptors):
            os.dup2(each, stream)
        os.environ.clear()
        os.environ.update(order["env"])  # type: ignore[call-overload]
        os.chdir(str(order["cwd"]))
        sys.argv = ["kernelgate", *order["words"]]  # type: ignore[misc]
        runpy.run_module("kernelgate", run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as inherited:
        serve(inherited)
