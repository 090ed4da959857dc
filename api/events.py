"""Live events: one LISTEN connection a process wakes every stream that waits, and each reads Postgres for itself.

A notification carries only a submission's id and may be lost (Postgres restarts, the connection breaks): it is a hint to
look now. Streams also look on their own at every heartbeat, so a lost hint delays an event and never loses it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psycopg
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from kernelgate.db import transaction
from kernelgate.models import EventRow, Submission
from kernelgate.protocol import CHANNEL, Event, EventKind
from kernelgate.settings import settings
from kernelgate.verdicts import State

log = logging.getLogger(__name__)
HEARTBEAT_S = 15.0
_CHECK_S = 30.0
_RECONNECT_S = (0.1, 0.5, 1.0, 2.0, 5.0)
_BATCH = 500


@dataclass(eq=False)
class Listener:
    """One waiting stream. `news` is set when there may be something to read."""

    news: asyncio.Event = field(default_factory=asyncio.Event)


class Hub:
    """Passes notifications on to those who wait in this process. Used on the event loop that started it."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closing = False

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._listen(), name="listen")

    async def stop(self) -> None:
        self._end_streams()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def end_streams(self) -> None:
        """Lets every stream end, from any thread or a signal handler: a server that stops would wait for them."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end_streams)

    def _end_streams(self) -> None:
        self.closing = True
        self._wake_all()

    @contextmanager
    def listening(self, submission_id: str) -> Iterator[Listener]:
        listener = Listener()
        self._listeners.setdefault(submission_id, set()).add(listener)
        try:
            yield listener
        finally:
            waiting = self._listeners[submission_id]
            waiting.discard(listener)
            if not waiting:
                del self._listeners[submission_id]

    def _wake(self, submission_id: str) -> None:
        for listener in self._listeners.get(submission_id, ()):
            listener.news.set()

    def _wake_all(self) -> None:
        for submission_id in self._listeners:
            self._wake(submission_id)

    async def _listen(self) -> None:
        failures = 0
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    _conninfo(), autocommit=True, connect_timeout=5, application_name="kernelgate-listen"
                ) as connection:
                    await connection.execute(f"LISTEN {CHANNEL}")
                    failures = 0
                    self._wake_all()  # whatever was sent while nobody listened
                    await self._pass_on(connection)
            except (psycopg.Error, OSError) as error:
                if failures == 0:
                    log.warning("lost the connection that listens for events, connecting again: %s", error)
                await asyncio.sleep(_RECONNECT_S[min(failures, len(_RECONNECT_S) - 1)])
                failures += 1

    async def _pass_on(self, connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        while True:
            async for notification in connection.notifies(timeout=_CHECK_S):
                self._wake(notification.payload)
            # A connection that broke silently would wait for ever; a question makes it say so.
            await connection.execute("SELECT 1")


def _conninfo() -> str:
    url = make_url(settings().database_url).set(drivername="postgresql")
    return url.render_as_string(hide_password=False)


@dataclass(frozen=True)
class News:
    """What a look at Postgres gave: events after the last one seen, and whether the submission is finished."""

    events: list[Event]
    final: bool


def read(submission_id: str, after: int) -> News:
    """Events of a submission with an id above `after`, oldest first, at most a batch of them."""
    with transaction() as database:
        # The state is read first: when it is final, every event written with it is visible to the next statement.
        state = database.scalar(select(Submission.state).where(Submission.id == submission_id))
        rows = database.scalars(
            select(EventRow)
            .where(EventRow.submission_id == submission_id, EventRow.id > after)
            .order_by(EventRow.id)
            .limit(_BATCH)
        ).all()
        events = [
            Event(id=row.id, kind=EventKind(row.kind), at=row.at.isoformat(timespec="milliseconds"), data=row.data)
            for row in rows
        ]
        final = (state is None or State(state).final) and len(rows) < _BATCH
        return News(events, final)


async def follow(hub: Hub, submission_id: str, after: int, shown: Callable[[], bool]) -> AsyncIterator[Event | None]:
    """Every event after `after`, as it comes; None as a heartbeat. Ends with the submission, when the hub closes, and when
    `shown`, asked at each look, says that the reader may not see it any more."""
    with hub.listening(submission_id) as listener:
        while not hub.closing:
            listener.news.clear()
            try:
                if not await run_in_threadpool(shown):
                    return
                news = await run_in_threadpool(read, submission_id, after)
            except (DBAPIError, PoolTimeoutError):
                yield None
                await asyncio.sleep(1.0)
                continue
            for event in news.events:
                after = event.id
                yield event
            if news.final:
                return
            if len(news.events) < _BATCH and not await _waited(listener, HEARTBEAT_S):
                yield None


async def wait_final(hub: Hub, submission_id: str, seconds: float) -> bool:
    """Whether the submission finished within `seconds`. Holds no thread and no connection while it waits."""
    deadline = asyncio.get_running_loop().time() + seconds
    with hub.listening(submission_id) as listener:
        while not hub.closing:
            listener.news.clear()
            if await run_in_threadpool(_is_final, submission_id):
                return True
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await _waited(listener, min(left, 5.0))
    return False


def _is_final(submission_id: str) -> bool:
    with transaction() as database:
        state = database.scalar(select(Submission.state).where(Submission.id == submission_id))
    return state is None or State(state).final


async def _waited(listener: Listener, seconds: float) -> bool:
    """Whether there was news within `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await listener.news.wait()
    except TimeoutError:
        return False
    return True


def sse(event: Event | None) -> bytes:
    """An event in the form of text/event-stream; a heartbeat is a comment."""
    if event is None:
        return b": still here\n\n"
    data = json.dumps(event.model_dump(mode="json"), separators=(",", ":"))
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n".encode()
