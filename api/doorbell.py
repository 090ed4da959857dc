"""Tells a worker that there is work, without ever holding up or failing the request that brought it.

A submission is committed before it is rung for. Ringing happens on a thread of its own: a broker that is down or hangs costs
a log line, and the sweeper rings later. `send_task` by name keeps the worker's code out of this process.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import Any

from celery import Celery
from kombu.connection import Connection
from sqlalchemy import update

from kernelgate.db import transaction
from kernelgate.models import Submission, now
from kernelgate.protocol import GRADE_TASK
from kernelgate.settings import settings
from kernelgate.verdicts import State

log = logging.getLogger(__name__)
_WAITING = 1000
_QUIET_S = 30.0


def transport_options(timeout_s: float) -> dict[str, Any]:
    """Options that make kombu give up after `timeout_s`: by default it retries for ever, inside the call."""
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        "max_retries": 0,
        "interval_start": 0,
        "interval_step": 0,
        "interval_max": 0,
        "retry_on_timeout": False,
    }


class Doorbell:
    """A thread that rings. Rings that find no room are dropped: the sweeper finds their submissions in Postgres."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[tuple[str, str] | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="doorbell", daemon=True)
        self._complained = 0.0
        self._app = Celery("kernelgate.api", broker=settings().broker_url, set_as_current=False)
        self._app.conf.update(
            broker_transport_options=transport_options(settings().ring_timeout_s),
            broker_connection_timeout=settings().ring_timeout_s,
            broker_connection_retry=False,
            broker_pool_limit=1,
            task_ignore_result=True,
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Lets the ring in progress end, and the thread with it."""
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(timeout=4 * settings().ring_timeout_s)
        self._app.close()

    def ring(self, submission_id: str, queue_name: str) -> None:
        """Never blocks and never fails. Call it after the commit: a worker may look at once."""
        try:
            self._waiting.put_nowait((submission_id, queue_name))
        except queue.Full:
            self._complain("the doorbell has no room; the sweeper will ring")

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            try:
                self._send(*item)
            except Exception as error:  # whatever the broker's client raises, the thread must live on
                self._complain(f"could not ring for {item[0]}, the sweeper will: {type(error).__name__}: {error}")

    def _send(self, submission_id: str, queue_name: str) -> None:
        self._app.send_task(GRADE_TASK, args=[submission_id], queue=queue_name, retry=False, ignore_result=True)
        with transaction() as database:
            rung = update(Submission).where(Submission.id == submission_id, Submission.state == State.QUEUED)
            database.execute(rung.values(rung_at=now()))

    def _complain(self, message: str) -> None:
        if time.monotonic() - self._complained > _QUIET_S:
            self._complained = time.monotonic()
            log.warning("%s", message)


def broker_problem(timeout_s: float) -> str | None:
    """Why the broker cannot be used, or None when it answers a ping."""
    try:
        with Connection(settings().broker_url, transport_options=transport_options(timeout_s)) as connection:  # type: ignore[no-untyped-call]
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
            connection.default_channel.client.ping()
    except Exception as error:  # kombu lets its transport's own exceptions through
        return f"{type(error).__name__}: {error}"
    return None
