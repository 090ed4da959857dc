"""Leases on a real Postgres: one worker at a time, results written once, nothing written by a worker that lost."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update

from kernelgate.accounts import create_user
from kernelgate.db import transaction
from kernelgate.models import EventRow, ResultRow, Submission, now
from kernelgate.protocol import Result
from kernelgate.stages import Backend
from kernelgate.verdicts import State, Verdict
from worker.leases import sweep as sweeping
from worker.leases.identity import host_name, is_dead, owner_name
from worker.leases.lease import Lease, LeaseLostError, cancel, claim, finish, give_back, renew, wanted

HOST = host_name()


def a_result(verdict: Verdict = Verdict.ACCEPTED) -> Result:
    return Result(
        verdict=verdict, reason="passed", message="", stage="s", stage_hash="h", backend=Backend.TORCH, seed="00"
    )


@pytest.fixture
def submission(database: str) -> str:
    del database
    return make_submission()


def make_submission(**columns: object) -> str:
    with transaction() as session:
        count = session.scalar(select(func.count()).select_from(Submission)) or 0
        user = create_user(session, f"user{count}")
        row = Submission(
            user_id=user.id, stage="s", stage_hash="h", filename="s.py", source=b"x", source_hash="", **columns
        )
        row.created_at = now() - timedelta(minutes=1)
        session.add(row)
        session.flush()
        return row.id


def load(submission_id: str) -> Submission:
    with transaction() as session:
        return session.get_one(Submission, submission_id)


def set_columns(submission_id: str, **values: object) -> None:
    with transaction() as session:
        session.execute(update(Submission).where(Submission.id == submission_id).values(**values))


def results(submission_id: str) -> list[ResultRow]:
    with transaction() as session:
        return list(session.scalars(select(ResultRow).where(ResultRow.submission_id == submission_id)))


def claimed(submission_id: str) -> Lease:
    lease = claim(submission_id, owner_name())
    assert lease is not None
    return lease


def test_of_many_claims_one_gets_it(submission: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        leases = list(pool.map(lambda number: claim(submission, f"w{number}:1:1"), range(8)))
    assert sum(lease is not None for lease in leases) == 1
    assert load(submission).attempt == 1


def test_a_finished_submission_has_its_result_and_no_lease(submission: str) -> None:
    finish(claimed(submission), a_result(), "w")
    row = load(submission)
    assert (row.state, row.verdict, row.lease_owner) == (State.DONE, Verdict.ACCEPTED, None)
    assert [result.attempt for result in results(submission)] == [1]
    assert claim(submission, "late:1:1") is None


def test_a_held_result_is_marked_with_it_and_the_next_result_takes_the_mark_away(submission: str) -> None:
    finish(claimed(submission), a_result().model_copy(update={"held": "Faster than the card can be."}), "w")
    assert (load(submission).verdict, load(submission).held) == (Verdict.ACCEPTED, "Faster than the card can be.")
    set_columns(submission, state=State.QUEUED, round=2, attempt=0)
    assert load(submission).held
    finish(claimed(submission), a_result(), "w")
    assert load(submission).held is None


@pytest.mark.parametrize(
    "write", [lambda lease: finish(lease, a_result(), "w"), renew, cancel], ids=["finish", "renew", "cancel"]
)
def test_a_worker_that_lost_its_lease_writes_nothing(submission: str, write: Callable[[Lease], object]) -> None:
    old = claimed(submission)
    set_columns(submission, lease_until=now() - timedelta(seconds=1))
    sweeping.sweep(lambda *_: None, host="elsewhere")
    new = claimed(submission)
    with pytest.raises(LeaseLostError):
        write(old)
    assert not results(submission)
    finish(new, a_result(Verdict.WRONG_ANSWER), "w")
    assert [result.verdict for result in results(submission)] == [Verdict.WRONG_ANSWER]


def test_cancelling_is_seen_and_ends_without_a_verdict(submission: str) -> None:
    lease = claimed(submission)
    assert wanted(lease)
    set_columns(submission, cancel_requested=True)
    assert not wanted(lease)
    assert renew(lease) is False
    assert cancel(lease) is State.CANCELLED
    assert load(submission).verdict is None


def test_a_cancelled_rejudging_keeps_the_verdict_it_had(submission: str) -> None:
    finish(claimed(submission), a_result(), "w")
    set_columns(submission, state=State.QUEUED, round=2, attempt=0)
    assert cancel(claimed(submission)) is State.DONE
    assert load(submission).verdict == Verdict.ACCEPTED


def test_a_submission_that_was_cancelled_while_queued_is_not_claimed(submission: str) -> None:
    set_columns(submission, cancel_requested=True)
    assert claim(submission, "w:1:1") is None


def test_an_expired_lease_is_tried_three_times_and_then_ends_as_our_fault(submission: str) -> None:
    for attempt in (1, 2, 3):
        assert claimed(submission).attempt == attempt
        set_columns(submission, lease_until=now() - timedelta(seconds=1))
        sweeping.sweep(lambda *_: None, host="elsewhere")
    row = load(submission)
    assert (row.state, row.verdict) == (State.DONE, Verdict.JUDGE_ERROR)
    assert [result.reason for result in results(submission)] == ["judge_failed"]
    assert "does not count" in results(submission)[0].body["message"]
    assert Result.model_validate(results(submission)[0].body).backend is None, "no backend ever saw it"


def test_a_dead_process_of_this_host_is_noticed_before_its_lease_runs_out(submission: str) -> None:
    assert claim(submission, f"{HOST}:999999999:1") is not None
    swept = sweeping.sweep(lambda *_: None, host=HOST)
    assert swept is not None
    assert swept.requeued == [submission]


def test_other_hosts_and_living_processes_are_left_alone(submission: str) -> None:
    assert not is_dead(owner_name(), HOST)
    assert not is_dead("elsewhere:999999999:1", HOST)
    assert is_dead(owner_name().rsplit(":", 1)[0] + ":12", HOST), "a reused pid is another process"
    claimed(submission)
    swept = sweeping.sweep(lambda *_: None, host=HOST)
    assert swept is not None
    assert swept.requeued == []


def test_a_bell_that_nobody_heard_is_rung_again(submission: str) -> None:
    rung: list[tuple[str, str]] = []
    sweeping.sweep(lambda *bell: rung.append(bell), host=HOST)
    sweeping.sweep(lambda *bell: rung.append(bell), host=HOST)
    assert rung == [(submission, "cpu")]
    set_columns(submission, rung_at=now() - timedelta(minutes=1))
    sweeping.sweep(lambda *bell: rung.append(bell), host=HOST)
    assert len(rung) == 2


def test_a_submission_given_back_three_times_is_given_up(submission: str) -> None:
    for _ in range(3):
        give_back(claimed(submission), "the worker failed")
    sweeping.sweep(lambda *_: None, host=HOST)
    assert load(submission).verdict == Verdict.JUDGE_ERROR


def test_a_cancelled_submission_of_a_dead_worker_ends_cancelled(submission: str) -> None:
    claim(submission, f"{HOST}:999999999:1")
    set_columns(submission, cancel_requested=True)
    sweeping.sweep(lambda *_: None, host=HOST)
    assert load(submission).state == State.CANCELLED


def test_every_step_is_an_event_in_order(submission: str) -> None:
    lease = claimed(submission)
    give_back(lease, "why")
    finish(claimed(submission), a_result(), "w")
    with transaction() as session:
        rows = session.scalars(select(EventRow).where(EventRow.submission_id == submission).order_by(EventRow.id))
        told = [(row.kind, row.data.get("state")) for row in rows]
    assert told == [
        ("state", "running"),
        ("state", "queued"),
        ("state", "running"),
        ("result", None),
        ("state", "done"),
    ]
