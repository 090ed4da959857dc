"""The processor first, for the moments in which a clock runs: on a host that is busy, nobody else's work gets in between.

A policy of real time is a matter of the calling thread. Threads and processes that it starts do not inherit it, and where
this process has no right to it (CAP_SYS_NICE), everything stays as it is and the host's noise is bounded as it was measured.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PLAYER, WORKER = 2, 1
"""Ranks: who launches and waits for the card goes before who waits for its answer, even on a single core."""


@contextmanager
def first(rank: int) -> Iterator[None]:
    """Runs the block before whatever else wants the processor."""
    policy, own = os.sched_getscheduler(0), os.sched_getparam(0)
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(rank))
    try:
        yield
    finally:
        with suppress(PermissionError):
            os.sched_setscheduler(0, policy, own)
