"""The worker's end of a run: its report, and for a session the channel to the program."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Literal

from . import order
from .outcome import End, Finished, SandboxError, SessionEnded

POLL_S = 0.05
SETUP_S = 30.0
REPORT_S = 30.0  # after a run must have ended: to kill, reap and remove what it left
EOF_S = 0.5

Cancelled = Callable[[], bool]


class Run:
    """One run as the worker sees it. Every method raises SandboxError when our own side of it breaks."""

    def __init__(self, control: socket.socket, wanted: order.Order, fds: Sequence[int], cancelled: Cancelled) -> None:
        self.control = control
        self.limits = wanted.limits
        self.cancelled = cancelled
        self.finished: Finished | None = None
        self.failed: SandboxError | None = None
        control.settimeout(SETUP_S)
        try:
            header, blobs = wanted.encode()
            order.send(control, header, blobs, fds)
        except OSError as error:
            raise self._fail(f"the sandbox's supervisor is gone before it had its order: {error}") from error
        self._receive("started")
        self.deadline = time.monotonic() + wanted.limits.wall_s + REPORT_S

    def _fail(self, message: str) -> SandboxError:
        """Gives the run up; whoever asks about it later is told the same."""
        return self._give_up(SandboxError(message))

    def _give_up(self, error: SandboxError) -> SandboxError:
        self.control.close()
        self.failed = error
        return error

    def _receive(self, expected: str) -> tuple[dict[str, object], list[bytes]]:
        """The next message. Raises SandboxError for any but the expected."""
        try:
            header, blobs, _ = order.receive(self.control)
        except order.PeerGone:
            raise self._fail("the sandbox's supervisor is gone without a report; was it killed for memory?") from None
        except TimeoutError:
            raise self._fail(f"the sandbox's supervisor said nothing for {SETUP_S:g} s") from None
        if header["kind"] == expected:
            return header, blobs
        if header["kind"] == "refused":
            raise self._give_up(RefusedError(str(header["layer"]), str(header["message"])))
        raise self._fail(f"the sandbox's supervisor said {header['kind']!r} where {expected!r} was due")

    def ask(self, why: Literal[b"k", b"w", b"c"]) -> None:
        """Asks for the end: k killed, w its time is over, c it closed its channel. Others may have ended it before."""
        with contextlib.suppress(OSError):
            self.control.sendall(why)

    def wait(self, within_s: float | None = None) -> bool:
        """Waits for the report, at most so long; True when it is there. Looks at `cancelled` meanwhile."""
        end = self.deadline if within_s is None else min(self.deadline, time.monotonic() + within_s)
        while self.finished is None:
            if self.failed is not None:
                raise self.failed
            left = end - time.monotonic()
            if left <= 0:
                if within_s is None:
                    raise self._fail(f"no report {REPORT_S:g} s after the run must have ended")
                return False
            if select.select([self.control], [], [], min(left, POLL_S))[0]:
                self._take_report()
            elif self.cancelled():
                self.ask(b"k")
        return True

    def _take_report(self) -> None:
        header, (stdout, stderr, *contents) = self._receive("ended")
        names = header["files"]
        assert isinstance(names, list)  # noqa: S101 - our own supervisor's words
        self.finished = Finished(
            end=End(str(header["end"])),
            exit_code=_whole(header["exit_code"]),
            signal=_whole(header["signal"]),
            stdout=stdout,
            stderr=stderr,
            wall_ms=float(str(header["wall_ms"])),
            peak_mb=float(str(header["peak_mb"])),
            files=dict(zip(names, contents, strict=True)),
        )
        self.control.close()

    def end(self, why: Literal[b"k", b"w", b"c"]) -> Finished:
        """Ends the run if it has not ended, and returns its report."""
        if self.failed is not None:
            raise self.failed
        if self.finished is None:
            self.ask(why)
            self.deadline = min(self.deadline, time.monotonic() + REPORT_S)
            self.wait()
        assert self.finished is not None  # noqa: S101 - wait() has seen to it
        return self.finished


class RefusedError(SandboxError):
    """A layer could not be set up, so the run did not start."""

    def __init__(self, layer: str, message: str) -> None:
        super().__init__(f"the sandbox could not set up {layer!r}: {message.strip()}")
        self.layer = layer
        self.message = message.strip()


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


class Session:
    """A program in the sandbox that is talked to over a stream of bytes. Leaving the `with` block kills everything in it."""

    def __init__(self, run: Run, channel: socket.socket) -> None:
        self._run = run
        self._channel = channel
        channel.setblocking(False)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SandboxError):  # it is told already
            self._channel.close()
        else:
            self.finish()

    def write(self, data: bytes, *, within_s: float) -> None:
        """Sends all of `data`. Raises SessionEnded when the program is gone or has not taken it in time (End.WALL)."""
        deadline = time.monotonic() + within_s
        rest = memoryview(data)
        while rest:
            self._wait_for_channel(deadline, writing=True)
            try:
                rest = rest[self._channel.send(rest) :]
            except BlockingIOError:
                continue
            except OSError:
                self._closed_by_program()

    def read(self, count: int, *, within_s: float) -> bytes:
        """Exactly `count` bytes. Raises SessionEnded when the program ends before, or they are not there in time (End.WALL)."""
        deadline = time.monotonic() + within_s
        received = bytearray()
        while len(received) < count:
            self._wait_for_channel(deadline, writing=False)
            try:
                part = self._channel.recv(min(count - len(received), 1 << 20))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                self._closed_by_program()
            received += part
        return bytes(received)

    def _wait_for_channel(self, deadline: float, *, writing: bool) -> None:
        """Until the channel is ready. What has arrived is still read when the program is gone by now."""
        while True:
            if self._run.failed is not None:
                raise self._run.failed
            if self._run.finished is not None and writing:
                raise SessionEnded(self._run.finished)
            left = deadline - time.monotonic()
            if left <= 0:
                raise SessionEnded(self._run.end(b"w"))
            control = [] if self._run.finished else [self._run.control]
            readers = control if writing else [self._channel, *control]
            writers = [self._channel] if writing else []
            readable, writable, _ = select.select(readers, writers, [], min(left, POLL_S))
            if self._channel in readable or writable:
                return
            if readable:
                self._run.wait()
            elif self._run.cancelled():
                raise SessionEnded(self._run.end(b"k"))

    def _closed_by_program(self) -> None:
        """It shut its channel: normally because it is about to be gone, and if it stays it is stopped."""
        if not self._run.wait(EOF_S):
            raise SessionEnded(self._run.end(b"c"))
        assert self._run.finished is not None  # noqa: S101 - wait() said so
        raise SessionEnded(self._run.finished)

    def finish(self) -> Finished:
        """Kills what is left of the session, reaps it and returns its output. May be called again."""
        try:
            return self._run.end(b"k")
        finally:
            self._channel.close()
