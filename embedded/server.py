"""A server of ours over the data directory: one child process that is waited for until it answers."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from embedded.datadir import DataDir
from embedded.errors import EmbeddedError
from embedded.process import Child


class Server(ABC):
    """One server over `data`. `durable=False` gives up safety against power loss for speed, for tests."""

    name: str
    """Of its process, its log and its folders."""
    ready_s: float
    """How long it may take until it answers."""

    def __init__(self, data: DataDir, *, durable: bool = True) -> None:
        self.data = data
        self.durable = durable
        self._child: Child | None = None

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def exit_status(self) -> int | None:
        return self._child.exit_status if self._child else None

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        return self._child.tail(lines) if self._child else ""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def start(self) -> None:
        """Starts it and waits until it answers. Does nothing when it runs. Raises EmbeddedError with the log's end."""
        if self.running:
            return
        self.data.acquire()
        self._child = self.prepared()
        self._child.start()
        deadline = time.monotonic() + self.ready_s
        while not self.answers():
            if not self._child.running or time.monotonic() > deadline:
                tail = self._child.tail()
                self.stop()
                raise EmbeddedError(f"{self.name} did not start; the end of {self.data.log(self.name)}:\n{tail}")
            time.sleep(0.01)

    @abstractmethod
    def prepared(self) -> Child:
        """The child to start, with all in place that it needs. Raises EmbeddedError."""

    @abstractmethod
    def answers(self) -> bool:
        """Whether it takes connections; false while it starts or recovers."""

    def stop(self) -> None:
        """Ends it in good order: nothing committed is lost."""
        if self._child is not None:
            self._child.stop()
            self._child = None
