"""The worker's end of the line to a player (worker/gpu/protocol.py): starting one, keeping one warm, and ordering things."""

from __future__ import annotations

import contextlib
import io
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import IO, cast

from kernelgate.settings import ROOT, environment, settings
from worker.gpu.arena import Arena
from worker.gpu.protocol import Answer, Ended, Examine, Order, Ready, Well, header, message
from worker.judging import frames
from worker.judging.failures import Cancelled
from worker.judging.frames import printable

START_S = 60.0
PRINTED = 16_000


class BenchError(RuntimeError):
    """The bench failed, and not through the submission: no card, a card that is not well, or an error of ours."""


class GoneError(BenchError):
    """The player's process ended without a word."""


class Bench:
    """One bench process. It serves one submission; `close` ends it, whatever it is doing.

    under: a program and its options that run the bench inside them, such as compute-sanitizer. options: `--torch` for one
    that has imported torch by the time it measures.
    """

    def __init__(self, under: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        self._printed = tempfile.NamedTemporaryFile(prefix="printed-")  # noqa: SIM115 - closed in close()
        self.arena = Arena()
        self._process = subprocess.Popen(
            [*under, sys.executable, "-m", "worker.bench", self._printed.name, str(self.arena.fd), *options],
            pass_fds=(self.arena.fd,),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=environment(settings()),
            start_new_session=True,
        )
        self._in, self._out = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)
        os.set_blocking(self._out.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._ready: Ready | None = None

    def ready(self) -> Ready:
        """What the card is, once the process is up. Raises BenchError."""
        if self._ready is None:
            answer, _ = self.receive(START_S)
            if not isinstance(answer, Ready):
                raise BenchError(f"the GPU cannot be used: {_words(answer)}")
            self._ready = answer
        return self._ready

    def examine(self) -> str | None:
        """Why the card is not fit for the next submission, or None."""
        try:
            self.ready()
            self.send(Examine())
            answer, _ = self.receive(START_S)
        except BenchError as error:
            return str(error)
        return _why_unwell(answer)

    def send(self, order: Order, payload: bytes = b"") -> None:
        """Sends one order. A player that is gone shows when its answer is read."""
        with contextlib.suppress(BrokenPipeError):
            self._in.write(frames.encode(header(order), payload))
            self._in.flush()

    def await_at_once(self, within_s: float) -> None:
        """Returns as soon as an answer begins to come, without sleeping before: for what is being timed."""
        deadline = time.monotonic() + within_s
        while not self._selector.select(0) and time.monotonic() < deadline:
            pass

    def receive(self, within_s: float, cancelled: Callable[[], bool] = lambda: False) -> tuple[Answer, bytes]:
        """The next answer. Raises BenchError when none comes in time, and Cancelled."""
        deadline = time.monotonic() + within_s

        def read(count: int) -> bytes:
            parts, missing = [], count
            while missing:
                if cancelled():
                    raise Cancelled
                if time.monotonic() > deadline:
                    raise BenchError(f"the bench did not answer within {within_s:g} s")
                if not self._selector.select(0.05):
                    continue
                part = os.read(self._out.fileno(), min(missing, 1 << 20))
                if not part:
                    raise GoneError(f"the bench process ended (status {self._process.wait()})")
                parts.append(part)
                missing -= len(part)
            return b"".join(parts)

        try:
            words, payload = frames.receive(read, max_payload=1 << 30)
            return message(words), payload
        except (frames.MalformedFrameError, ValueError, KeyError, TypeError) as error:
            raise BenchError(f"the bench answered nonsense: {type(error).__name__}: {str(error)[:200]}") from error

    def printed(self) -> str:
        """What device code printed, bounded."""
        with Path(self._printed.name).open("rb") as file:
            return printable(file.read(PRINTED * 4).decode(errors="replace"), limit=PRINTED)

    def leave(self, within_s: float) -> None:
        """Lets the process end by itself, as far as it does."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._in.close()
            self._process.wait(within_s)

    def close(self) -> None:
        """Ends the process: a kernel that never ends, ends with its context."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._selector.close()
        for pipe in (self._in, self._out):
            with contextlib.suppress(OSError):
                pipe.close()
        self._printed.close()
        self.arena.close()


class Spare:
    """Keeps one bench process warm, so that its start-up is in nobody's way."""

    def __init__(self, *options: str) -> None:
        self._options = options
        self._bench: Bench | None = None

    def take(self) -> Bench:
        """A bench for one submission; the caller closes it."""
        bench, self._bench = self._bench or Bench(options=self._options), None
        return bench

    def examine(self) -> str | None:
        """Why the card is not fit for the next submission, or None; a bench that says so is replaced and asked once more."""
        why = None
        for _ in range(2):
            self.renew()
            why = self._bench.examine() if self._bench is not None else None
            if why is None:
                return None
            self.close()
        return why

    def renew(self) -> None:
        """Starts the next one, if none is waiting."""
        if self._bench is None:
            self._bench = Bench(options=self._options)

    def close(self) -> None:
        if self._bench is not None:
            self._bench.close()
            self._bench = None


def _why_unwell(answer: Answer) -> str | None:
    if not isinstance(answer, Ready | Well):
        return _words(answer)
    others = answer.strangers
    return f"other programs compute on it: {', '.join(map(str, others[:5]))}" if others else None


def _words(answer: Answer) -> str:
    return answer.what or answer.name or answer.why if isinstance(answer, Ended) else answer.kind


@cache
def probe() -> Ready | str:
    """The first GPU's facts, or why there is none to use. Asked once a process."""
    answer = _ask()
    return answer if isinstance(answer, Ready) else _words(answer)


def look() -> str | None:
    """Why the first GPU is not well, or None, asked of a process that starts for it and ends."""
    return _why_unwell(_ask())


def _ask() -> Answer:
    """What `python -m worker.bench --probe` says; where it says nothing, that it is broken."""
    command = [sys.executable, "-m", "worker.bench", "--probe"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(settings()), capture_output=True, timeout=START_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Ended("broken", f"the bench does not start: {str(error)[:200]}")
    if not done.stdout:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        said = lines[-1][:300] if lines else "it said nothing"
        return Ended("broken", f"the bench does not start: {said}")
    answer: Answer = message(frames.receive(io.BytesIO(done.stdout).read, max_payload=0)[0])
    return answer
