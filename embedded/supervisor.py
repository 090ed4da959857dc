"""Keeps a list of services running: started in order, restarted when one dies, stopped in reverse.

A service that dies is started again after a pause that doubles; one that dies `GIVE_UP` times within `WINDOW_S` would
only die again, so everything stops and its last log lines are shown.
"""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from embedded.errors import EmbeddedError

GIVE_UP = 5
WINDOW_S = 60.0
PAUSE_S = 0.5
LONGEST_PAUSE_S = 8.0
LOOK_S = 0.2
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Service(Protocol):
    """What is supervised: a Child, the Postgres, the Broker. `start` and `stop` may be called at any time."""

    @property
    def name(self) -> str: ...
    @property
    def running(self) -> bool: ...
    @property
    def exit_status(self) -> int | None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def tail(self, lines: int = 15) -> str: ...


class Stop(BaseException):
    """Someone asked us to stop. Not an Exception: no `except Exception` on the way may swallow it."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turns the first SIGINT, SIGTERM or SIGHUP inside the block into `Stop`; later ones do not disturb the stopping.

    A SIGHUP that whoever started us had ignored (`nohup` does that) stays ignored. SIGINT does not: a shell ignores it for
    whatever it puts into the background, and `kill -INT` is to stop that all the same.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        undisturbed()
        raise Stop

    hang_up_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    wanted = [number for number in STOP_SIGNALS if not (number is signal.SIGHUP and hang_up_ignored)]
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def undisturbed() -> None:
    """From here on, inside a `stoppable` block, signals do not interrupt the stopping of services."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


class Supervisor:
    """Owns services from `start` to `stop_all`. `say` gets a line for every restart."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self._services: list[Service] = []
        self._deaths: dict[str, deque[float]] = {}

    def start(self, service: Service) -> None:
        """Starts one more. It counts as ours before it runs: a signal in between must still stop it."""
        self._services.append(service)
        service.start()

    @property
    def services(self) -> Sequence[Service]:
        return tuple(self._services)

    def revive(self) -> None:
        """Starts again whatever died since the last call. Raises EmbeddedError when one keeps dying."""
        for service in self._services:
            if not service.running:
                self._restart(service)

    def _restart(self, service: Service) -> None:
        deaths = self._deaths.setdefault(service.name, deque(maxlen=GIVE_UP))
        deaths.append(time.monotonic())
        status, tail = service.exit_status, service.tail()
        if len(deaths) == GIVE_UP and deaths[-1] - deaths[0] < WINDOW_S:
            raise EmbeddedError(
                f"{service.name} died {GIVE_UP} times within {WINDOW_S:.0f} s, the last time with status {status}; "
                f"its log ends:\n{tail}"
            )
        recent = sum(1 for death in deaths if deaths[-1] - death < WINDOW_S)
        pause = min(PAUSE_S * 2 ** (recent - 1), LONGEST_PAUSE_S)
        self.say(f"{service.name} ended with status {status}; starting it again in {pause:.1f} s")
        time.sleep(pause)
        # Its group may have outlived it; a second copy beside the remains would only confuse.
        service.stop()
        service.start()

    def watch(self) -> None:
        """Revives services until `Stop` is raised by a signal. Raises EmbeddedError when one keeps dying."""
        while True:
            self.revive()
            time.sleep(LOOK_S)

    def stop_all(self) -> None:
        """Stops everything in reverse order; one that fails to stop does not keep the others running."""
        failures = []
        while self._services:
            service = self._services.pop()
            try:
                service.stop()
            except Exception as error:
                failures.append(f"{service.name}: {error}")
        if failures:
            raise EmbeddedError("could not be stopped: " + "; ".join(failures))
