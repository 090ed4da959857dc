"""A proof that gives way: while somebody's submission waits or runs on this host's queues, nothing of it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection
from threading import Lock
from typing import TypeVar

from sqlalchemy import exists, select
from sqlalchemy.exc import SQLAlchemyError

from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.verdicts import State
from worker.judging.failures import Cancelled

Done = TypeVar("Done")
LOOK_S = 0.5


class GivingWay:
    """Asks the database twice a second; may be asked by many threads. queues: those that this host serves.

    A database that is away is no reason to stop: nobody's submission is graded then either.
    """

    def __init__(self, queues: Collection[str]) -> None:
        self.queues = queues
        self._lock = Lock()
        self._looked = 0.0
        self._taken = False

    def taken(self) -> bool:
        """Whether a submission wants this host now."""
        with self._lock:
            if time.monotonic() - self._looked >= LOOK_S:
                self._taken = self._look()
                self._looked = time.monotonic()
            return self._taken

    def _look(self) -> bool:
        here = Submission.queue.in_(self.queues)
        queued, running = (exists().where(here, Submission.state == state) for state in (State.QUEUED, State.RUNNING))
        try:
            with transaction() as session:
                return bool(session.scalar(select(queued | running)))
        except SQLAlchemyError:
            return False

    def patiently(self, work: Callable[[], Done]) -> Done:
        """What `work` returns, begun while nobody waits and begun again whenever somebody came in between."""
        while True:
            while self.taken():
                time.sleep(LOOK_S)
            try:
                return work()
            except Cancelled:
                continue


def idle_priority() -> None:
    """Gives this process and all that it starts processor time that nobody else wants."""
    os.nice(19)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
