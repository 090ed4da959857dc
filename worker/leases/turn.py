"""Takes what is next by fairness. A bell says that something waits, not what: `kernelgate/turns.py` has the order."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import select

from kernelgate.db import transaction
from kernelgate.turns import turns
from worker.leases.lease import Lease, claim

TRIES = 8
"""Others claim at the same moment; whoever was always too late hears the next bell."""


def claim_next(queues: Collection[str], owner: str) -> Lease | None:
    """The lease of what is next in these queues, or None where nothing waits."""
    for _ in range(TRIES):
        chosen = _next(queues)
        if chosen is None:
            return None
        lease = claim(chosen, owner)
        if lease is not None:
            return lease
    return None


def _next(queues: Collection[str]) -> str | None:
    waiting = turns()
    first = (
        select(waiting.c.id).where(waiting.c.queue.in_(queues)).order_by(waiting.c.turn, waiting.c.since, waiting.c.id)
    )
    with transaction() as session:
        return session.scalar(first.limit(1))
