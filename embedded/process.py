"""A child process with a log file, a way to stop it, and nothing left behind when it or its parent is gone.

Each child leads its own session, so that a Ctrl-C in the terminal reaches the parent alone, which then stops the children
in order. Should the parent die without that, the kernel signals the child (PR_SET_PDEATHSIG through `setpriv`; set before
a change of user it would be cleared, so `setpriv` does both).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from embedded.errors import EmbeddedError

LOG_LIMIT = 8 << 20
TAIL_BYTES = 4000


def dying_with_parent(stop_signal: signal.Signals) -> list[str]:
    """A command prefix after which the kernel sends `stop_signal` when the thread that started the process is gone."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", stop_signal.name] if setpriv else []


class Child:
    """One process. `argv` starts it; `stop_signal` ends it in good order; after `grace_s` it is killed with its group."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path = Path("/"),
        stop_signal: signal.Signals = signal.SIGTERM,
        grace_s: float = 10.0,
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.log = log
        self.env = dict(os.environ if env is None else env)
        self.cwd = cwd
        self.stop_signal = stop_signal
        self.grace_s = grace_s
        self.started_at = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it unless it runs. Its output is appended to the log, which is rotated once it is over 8 MiB."""
        if self.running:
            return
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        try:
            with self.log.open("ab") as log:
                self._process = subprocess.Popen(
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self.env,
                    cwd=self.cwd,
                    start_new_session=True,
                )
        except OSError as error:
            raise EmbeddedError(f"{self.name}: cannot run {self.argv[0]}: {error.strerror}") from error
        self.started_at = time.monotonic()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_status(self) -> int | None:
        return self._process.poll() if self._process else None

    def stop(self) -> None:
        """Asks it to end, waits `grace_s`, kills what is left of its group. Does nothing when it never started."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(self.stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.grace_s)
        # The group outlives its leader: a worker's child, or a backend of a killed Postgres.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._process = None

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log, for an error message."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            text = log.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])
