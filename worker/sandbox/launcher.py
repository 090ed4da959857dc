"""The worker's handle on a warm interpreter: starts it, notices that it is gone, starts it again, asks it for forks."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from . import zygote
from .interpreter import Interpreter
from .outcome import SandboxError

START_S = 180.0  # importing torch from a cold disk may take a minute
BOOT = Path(__file__).parent / "boot.py"
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/",
    # A fork inherits the choice but not the threads: pools must be sized before the import and start in the fork.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Launcher:
    """One warm interpreter. It starts in the background; whoever needs a fork first waits for it to be ready."""

    def __init__(self, interpreter: Interpreter, preload: Sequence[str]) -> None:
        self.interpreter = interpreter
        self.preload = list(preload)
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.ready = False
        self._forking = threading.Lock()  # a grading may run two things at once, and only one can wait for an answer

    def start(self) -> None:
        """Starts the interpreter unless it runs; does not wait for it. Raises SandboxError when it cannot be executed."""
        if self.process is not None and self.process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        wanted = json.dumps({"preload": self.preload, "site": list(self.interpreter.site)})
        command = [self.interpreter.python, "-I", "-S", "-B", "-X", "utf8", str(BOOT), str(theirs.fileno()), wanted]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=ENVIRONMENT,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise SandboxError(
                f"the sandbox's interpreter {self.interpreter.python} does not start: {error}"
            ) from error
        finally:
            theirs.close()
        self.control = ours
        self.ready = False

    def fork(self) -> socket.socket:
        """A new supervisor's socket. A warm interpreter that has died is started again, once. Raises SandboxError."""
        with self._forking:
            return self._forked()

    def _forked(self) -> socket.socket:
        for attempt in (1, 2):
            self.start()
            self._wait_until_ready()
            ours, theirs = socket.socketpair()
            try:
                assert self.control is not None  # noqa: S101 - start() has set it
                socket.send_fds(self.control, [zygote.FORK], [theirs.fileno()])
            except OSError as error:
                ours.close()
                self.close()
                if attempt == 2:
                    raise SandboxError(f"the warm interpreter died twice in a row: {error}") from error
            else:
                return ours
            finally:
                theirs.close()
        raise AssertionError("unreachable")

    def _wait_until_ready(self) -> None:
        if self.ready:
            return
        control, process = self.control, self.process
        assert control is not None and process is not None  # noqa: S101, PT018 - start() has set them
        deadline = time.monotonic() + START_S
        said = b""
        while not said.startswith(zygote.READY):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([control], [], [], left)[0]:
                self.close()
                raise SandboxError(f"the warm interpreter was not ready after {START_S:g} s")
            part = control.recv(4096)
            if not part:
                status = process.wait(10)
                self.close()
                raise SandboxError(
                    f"the warm interpreter left with status {status} before it was ready: "
                    f"{said.decode(errors='replace') or 'see the log of the worker'}; "
                    f"check that {self.interpreter.python} can import {', '.join(self.preload) or 'its own library'}"
                )
            said += part
        self.ready = True

    def close(self) -> None:
        """Ends the interpreter and, with it, whatever was forked from it."""
        if self.control is not None:
            self.control.close()
            self.control = None
        if self.process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
            self.process.kill()
            self.process.wait()
            self.process = None
        self.ready = False
