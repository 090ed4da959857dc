"""The worker's end of the line to a bench process: starting one, keeping one warm, and asking it things."""

from __future__ import annotations

import contextlib
import json
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
from typing import IO, Any, cast

from kernelgate.settings import ROOT, environment, settings
from worker.judging import frames
from worker.judging.failures import Cancelled
from worker.judging.frames import printable

START_S = 60.0
PRINTED = 16_000


class BenchError(RuntimeError):
    """The bench failed, and not through the submission: no card, a card that is not well, or an error of ours."""


class Bench:
    """One bench process. It serves one submission; `close` ends it, whatever it is doing.

    under: a program and its options that run the bench inside them, such as compute-sanitizer. options: `--torch` for one that
    has imported torch by the time it measures.
    """

    def __init__(self, under: Sequence[str] = (), options: Sequence[str] = ()) -> None:
        self._printed = tempfile.NamedTemporaryFile(prefix="printed-")  # noqa: SIM115 - closed in close()
        self._process = subprocess.Popen(
            [*under, sys.executable, "-m", "worker.bench", self._printed.name, *options],
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
        self._facts: dict[str, Any] | None = None

    def facts(self) -> dict[str, Any]:
        """What the card is, once the process is up. Raises BenchError."""
        if self._facts is None:
            answer, _ = self.receive(START_S)
            if answer["kind"] != "ready":
                raise BenchError(f"the GPU cannot be used: {answer.get('what', answer['kind'])}")
            self._facts = answer
        return self._facts

    def examine(self) -> str | None:
        """Why the card is not fit for the next submission, or None."""
        try:
            self.facts()
            self.send({"kind": "examine"})
            answer, _ = self.receive(START_S)
        except BenchError as error:
            return str(error)
        return _why_unwell(answer, "well")

    def send(self, order: dict[str, Any], payload: bytes = b"") -> None:
        """Sends one order. A bench that is gone shows when its answer is read."""
        with contextlib.suppress(BrokenPipeError):
            self._in.write(frames.encode(order, payload))
            self._in.flush()

    def receive(self, within_s: float, cancelled: Callable[[], bool] = lambda: False) -> tuple[dict[str, Any], bytes]:
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
                    raise BenchError(f"the bench process ended (status {self._process.wait()})")
                parts.append(part)
                missing -= len(part)
            return b"".join(parts)

        return frames.receive(read, max_payload=1 << 30)

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


def _why_unwell(answer: dict[str, Any], wanted: str) -> str | None:
    if answer["kind"] != wanted:
        return str(answer.get("what") or answer.get("name") or answer["kind"])
    others = answer["strangers"]
    return f"other programs compute on it: {', '.join(map(str, others[:5]))}" if others else None


@cache
def probe() -> dict[str, Any] | str:
    """The first GPU's facts, or why there is none to use. Asked once a process."""
    answer = _ask()
    return answer if answer["kind"] == "ready" else str(answer.get("what", answer["kind"]))


def look() -> str | None:
    """Why the first GPU is not well, or None, asked of a process that starts for it and ends."""
    return _why_unwell(_ask(), "ready")


def _ask() -> dict[str, Any]:
    """What `python -m worker.bench --probe` says; where it says nothing, an answer of the kind `broken`."""
    command = [sys.executable, "-m", "worker.bench", "--probe"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(settings()), capture_output=True, timeout=START_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"kind": "broken", "what": f"the bench does not start: {str(error)[:200]}"}
    if not done.stdout:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        said = lines[-1][:300] if lines else "it said nothing"
        return {"kind": "broken", "what": f"the bench does not start: {said}"}
    length = frames.PREFIX.unpack(done.stdout[: frames.PREFIX.size])[1]
    answer: dict[str, Any] = json.loads(done.stdout[frames.PREFIX.size : frames.PREFIX.size + length])
    return answer
