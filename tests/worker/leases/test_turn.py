"""Who is next: fair between people, the same for workers and for the place that a page tells."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import select

from api.submissions import queue_position
from kernelgate.accounts import create_user, find_user
from kernelgate.db import transaction
from kernelgate.models import Submission, now
from kernelgate.verdicts import State
from worker.leases.lease import claim
from worker.leases.turn import claim_next

QUEUES = ("cpu",)


def send(handle: str, seconds_ago: float, queue: str = "cpu") -> str:
    with transaction() as session:
        user = find_user(session, handle) or create_user(session, handle)
        session.flush()
        row = Submission(
            user_id=user.id, stage="s", stage_hash="h", filename="s.py", source=b"x", source_hash="", queue=queue
        )
        row.created_at = now() - timedelta(seconds=seconds_ago)
        session.add(row)
        session.flush()
        return row.id


def claimed() -> list[str]:
    order = []
    while (lease := claim_next(QUEUES, f"worker{len(order)}")) is not None:
        order.append(lease.submission_id)
        with transaction() as session:
            row = session.get_one(Submission, lease.submission_id)
            row.state, row.lease_owner = State.CANCELLED, None
    return order


@pytest.mark.usefixtures("database")
def test_who_has_one_waiting_goes_before_who_has_five() -> None:
    ada = [send("ada", 60 - number) for number in range(5)]
    bob, eve = send("bob", 20), send("eve", 10)
    send("zoe", 90, queue="gpu-x")
    with transaction() as session:
        rows = {row.id: queue_position(session, row) for row in session.scalars(select(Submission))}
    assert [rows[each] for each in (ada[0], bob, eve, *ada[1:])] == [1, 2, 3, 4, 5, 6, 7]
    assert claimed() == [ada[0], bob, eve, *ada[1:]]


@pytest.mark.usefixtures("database")
def test_what_runs_counts_as_a_turn() -> None:
    running, second = send("ada", 60), send("ada", 50)
    bob = [send("bob", 40), send("bob", 30)]
    assert claim(running, "somebody") is not None
    assert claimed() == [bob[0], second, bob[1]]


@pytest.mark.usefixtures("database")
def test_workers_at_once_take_different_ones() -> None:
    sent = {send(f"user{number % 3}", 60 - number) for number in range(12)}
    with ThreadPoolExecutor(4) as pool:
        leases = list(pool.map(lambda number: claim_next(QUEUES, f"worker{number}"), range(12)))
    taken = [lease.submission_id for lease in leases if lease is not None]
    assert len(taken) == len(set(taken))
    assert set(taken) <= sent
    assert len(taken) + len(claimed()) == 12


@pytest.mark.usefixtures("database")
def test_nothing_that_waits_is_nothing_to_claim() -> None:
    send("ada", 10, queue="gpu-x")
    assert claim_next(QUEUES, "worker") is None
