"""Each change of a submission's life is made from the states that it names, writes its event, and touches nothing else."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from kernelgate.accounts import create_user
from kernelgate.db import transaction
from kernelgate.lifecycle import CALL_OFF, CHANGES, CLAIM, FINISH, GIVE_UP, Change, Graded, change, columns_of
from kernelgate.models import EventRow, ResultRow, Role, Submission
from kernelgate.protocol import EventKind, Result
from kernelgate.reasons import Reason
from kernelgate.stages import Backend
from kernelgate.verdicts import State, Verdict

RESULT = Result(
    verdict=Verdict.ACCEPTED,
    reason=Reason.PASSED,
    message="All cases are right.",
    stage="scaling",
    stage_hash="0" * 16,
    backend=Backend.TORCH,
    seed="5eed",
)


def made(state: State, **columns: object) -> str:
    with transaction() as session:
        user = create_user(session, f"owner-{state}", Role.SUBMITTER)
        row = Submission(
            user_id=user.id,
            stage="scaling",
            stage_hash="0" * 16,
            filename="scaling.py",
            source=b"",
            source_hash="0",
            state=state,
            lease_owner="host:1" if state is State.RUNNING else None,
            **columns,
        )
        session.add(row)
        session.flush()
        return row.id


def events(submission: str) -> list[tuple[str, object]]:
    with transaction() as session:
        rows = session.scalars(select(EventRow).where(EventRow.submission_id == submission).order_by(EventRow.id))
        return [(row.kind, row.data.get("state")) for row in rows]


def row_of(submission: str) -> Submission:
    with transaction() as session:
        return session.get_one(Submission, submission)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("which", CHANGES.values(), ids=CHANGES)
def test_a_change_moves_what_is_where_it_starts(which: Change, state: State) -> None:
    submission, other = made(state), made(State(next(each for each in State if each is not state)))
    with transaction() as session:
        moved = [row.id for row in change(session, which, Submission.id == submission, note="why")]
    row = row_of(submission)
    if state not in which.start:
        assert (moved, row.state, events(submission)) == ([], state, [])
        return
    end = State.CANCELLED if which is CALL_OFF else which.end
    assert (moved, row.state, events(submission)) == ([submission], end, [("state", end)])
    assert (row.finished_at is not None) == State(row.state).final
    assert row.lease_owner is None
    assert events(other) == []


def test_every_state_is_left_and_reached_by_some_change_but_no_end_by_accident() -> None:
    assert {state for each in CHANGES.values() for state in each.start} == set(State)
    assert {name for name, each in CHANGES.items() if each.ends} == {"finish", "give_up", "call_off"}
    assert [name for name, each in CHANGES.items() if State.DONE in each.start] == ["rejudge"]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_rejudging_that_is_called_off_keeps_its_verdict(state: State) -> None:
    submission = made(state, verdict=Verdict.ACCEPTED, round=2, cancel_requested=True)
    with transaction() as session:
        (row,) = change(session, CALL_OFF, Submission.id == submission)
    assert (row.state, row.verdict, row.cancel_requested) == (State.DONE, Verdict.ACCEPTED, False)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("which", [FINISH, GIVE_UP])
def test_a_result_is_told_before_the_state_and_recorded_once(which: Change) -> None:
    submission = made(State.RUNNING, attempt=2)
    graded = Graded(RESULT, "host")
    for _ in range(2):
        with transaction() as session:
            change(session, which, Submission.id == submission, graded=graded, columns=columns_of(RESULT))
    assert [kind for kind, _ in events(submission)] == [EventKind.RESULT, EventKind.STATE]
    with transaction() as session:
        (result,) = session.scalars(select(ResultRow).where(ResultRow.submission_id == submission))
        assert (result.verdict, result.worker, result.attempt, result.round) == (Verdict.ACCEPTED, "host", 2, 1)
    assert row_of(submission).verdict == Verdict.ACCEPTED


@pytest.mark.usefixtures("database")
def test_a_claim_counts_and_a_rejudging_counts_anew() -> None:
    submission = made(State.QUEUED)
    for attempt in (1, 2):
        with transaction() as session:
            (row,) = change(session, CLAIM, Submission.id == submission)
            assert row.attempt == attempt
            change(session, CHANGES["queue_again"], Submission.id == submission)
    with transaction() as session:
        change(session, CALL_OFF, Submission.id == submission)
        (row,) = change(session, CHANGES["rejudge"], Submission.id == submission)
        assert (row.round, row.attempt, row.finished_at, row.claimed_at) == (2, 0, None, None)
