"""Sessions on Postgres. One engine a process; a process that forks must not share it (see `reset`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.orm import Session

from kernelgate.protocol import CHANNEL
from kernelgate.settings import settings


@cache
def engine() -> Engine:
    """The process's connection pool. Connections are checked before use, so a restarted Postgres costs one reconnect."""
    return create_engine(
        settings().database_url,
        pool_pre_ping=True,
        pool_size=8,
        max_overflow=16,
        pool_timeout=10,
        connect_args={"connect_timeout": 5, "application_name": "kernelgate"},
    )


def reset() -> None:
    """Forgets the pool of the parent after a fork: its sockets belong to the parent."""
    if engine.cache_info().currsize:
        engine().dispose(close=False)
        engine.cache_clear()


@contextmanager
def transaction() -> Iterator[Session]:
    """One transaction: committed when the block ends, rolled back when it raises."""
    with Session(engine(), expire_on_commit=False) as session, session.begin():
        yield session


def notify(session: Session, submission_id: str) -> None:
    """Tells listeners, when the transaction commits, that `submission_id` has new events."""
    session.execute(text("SELECT pg_notify(:channel, :payload)"), {"channel": CHANNEL, "payload": submission_id})
