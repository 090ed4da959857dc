"""Keeps a lease alive while its submission is graded, and notices when the grading is to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import SQLAlchemyError

from kernelgate.settings import settings
from worker.leases.lease import Lease, LeaseLostError, renew, wanted

log = logging.getLogger(__name__)


class Heartbeat:
    """Asked by the grading whether to stop. `lost`: another worker has the submission, or nobody answers for our lease."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.cancelled = threading.Event()
        self.lost = threading.Event()
        self._done = threading.Event()

    def stop_asked(self) -> bool:
        return self.cancelled.is_set() or self.lost.is_set()

    def run(self) -> None:
        """Looks every `watch_s`, renews every `heartbeat_s`. A database that is away is waited for until the lease is over."""
        renewed = time.monotonic()
        while not self._done.wait(settings().watch_s):
            try:
                if time.monotonic() - renewed >= settings().heartbeat_s:
                    keep = renew(self.lease)
                    renewed = time.monotonic()
                else:
                    keep = wanted(self.lease)
                    self._check_lost(keep)
                if not keep and not self.lost.is_set():
                    self.cancelled.set()
            except LeaseLostError:
                self.lost.set()
            except SQLAlchemyError as error:
                log.warning("heartbeat of %s: %s", self.lease.submission_id, error.__class__.__name__)
                if time.monotonic() - renewed > settings().lease_s:
                    self.lost.set()

    def _check_lost(self, keep: bool) -> None:
        """`wanted` is false for a cancelled and for a lost submission; renewing tells the two apart."""
        if not keep:
            renew(self.lease)

    def close(self) -> None:
        self._done.set()


@contextmanager
def beating(lease: Lease) -> Iterator[Heartbeat]:
    """A heartbeat for the time of the block."""
    heartbeat = Heartbeat(lease)
    thread = threading.Thread(target=heartbeat.run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield heartbeat
    finally:
        heartbeat.close()
        thread.join(timeout=5)
