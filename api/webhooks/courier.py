"""Threads that send what the outbox holds. Any number of API processes do; a delivery is taken by one of them at a time.

It is taken by moving its next try into the future before anything is sent: whoever dies meanwhile leaves it to be sent again.
Between tries the pauses grow; after the last it is given up. A webhook that fails again and again is turned off.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from api.webhooks.sending import Answer, send
from kernelgate.db import transaction
from kernelgate.models import now
from kernelgate.outbox import Delivery, Webhook

log = logging.getLogger(__name__)
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 5 * 60, 30 * 60, 2 * 3600, 6 * 3600, 12 * 3600))
"""After each try that failed; without one left the delivery is given up."""
MOST_FAILURES = 30
_TAKEN = timedelta(minutes=1)
_KEPT = timedelta(days=30)
_LOOK_S = 2.0
_STOP_S = 2.0
_THREADS = 3


class _Taken(NamedTuple):
    name: str
    hook: int
    url: str
    secret: str
    event: str
    body: dict[str, Any]


class Courier:
    """Sends on a few threads, to one webhook on one of them: who answers slowly holds up nobody else."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._busy: set[int] = set()
        self._choosing = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, name=f"courier-{number}", daemon=True) for number in range(_THREADS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Waits a moment for the threads, which may be using the pool. What is still being sent ends on its own: it is not
        lost, only perhaps sent again.
        """
        self._stopping.set()
        until = time.monotonic() + _STOP_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            try:
                while not self._stopping.is_set() and self.send_one():
                    pass
            except (DBAPIError, PoolTimeoutError) as error:
                log.warning("the outbox cannot be read: %s", type(error).__name__)

    def send_one(self) -> bool:
        """Sends the delivery that is due longest. False when none is."""
        with self._choosing:
            taken = _take(self._busy)
            if taken is None:
                return False
            self._busy.add(taken.hook)
        try:
            answer = send(taken.url, taken.secret, taken.name, taken.event, taken.body)
            with transaction() as database:
                _note(database, taken, answer)
        finally:
            with self._choosing:
                self._busy.discard(taken.hook)
        return True


def _take(busy: set[int]) -> _Taken | None:
    with transaction() as database:
        row = database.execute(
            select(Delivery, Webhook)
            .join(Webhook, Webhook.id == Delivery.webhook_id)
            .where(Delivery.next_at <= now(), Webhook.off_at.is_(None), Webhook.id.not_in(busy))
            .order_by(Delivery.next_at)
            .limit(1)
            .with_for_update(skip_locked=True, of=Delivery)
        ).one_or_none()
        if row is None:
            return None
        delivery, hook = row
        delivery.tries += 1
        delivery.next_at = now() + _TAKEN
        return _Taken(delivery.id, hook.id, hook.url, hook.secret, delivery.event, delivery.body)


def _note(database: Session, taken: _Taken, answer: Answer) -> None:
    """What came of it. The webhook may be gone by now, and its deliveries with it."""
    hook = database.get(Webhook, taken.hook, with_for_update=True)
    delivery = database.get(Delivery, taken.name)
    if hook is None or delivery is None:
        return
    delivery.answer = answer.words[:200]
    if answer.arrived:
        delivery.next_at, delivery.delivered_at, hook.failures = None, now(), 0
        kept = Delivery.created_at < now() - _KEPT
        database.execute(delete(Delivery).where(Delivery.webhook_id == hook.id, Delivery.next_at.is_(None), kept))
        return
    hook.failures += 1
    left = PAUSES[delivery.tries - 1 :]
    delivery.next_at = now() + left[0] if left else None
    if answer.gone or hook.failures >= MOST_FAILURES:
        hook.off_at = now()
        log.warning("webhook %s is off: %s", hook.id, answer.words)
