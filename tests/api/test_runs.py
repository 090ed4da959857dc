"""Runs of one case: what is asked for, and that nothing anywhere counts them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from kernelgate.db import transaction
from kernelgate.models import ResultRow, Role, Submission, now
from kernelgate.protocol import Result
from kernelgate.verdicts import State, Verdict
from tests.api.conftest import HONEST, Api, result_of
from tests.api.test_submit import problem
from worker.leases.lease import claim, finish


def finish_run(submission_id: str, result: Result) -> None:
    """As a worker does it."""
    lease = claim(submission_id, "fixture")
    assert lease is not None
    assert lease.trial is not None
    finish(lease, result, "fixture")


def test_a_run_names_its_case_and_takes_values_in_rows(api: Api) -> None:
    client = api.as_("ada")
    body = {"stage": "double", "source": HONEST, "run": "first", "inputs": {"x": [[1, 2], [3, "Infinity"]]}}
    by_json = client.post("/submit", json=body).json()
    assert by_json["run"] == {"case": "small", "inputs": {"x": [1.0, 2.0, 3.0, "Infinity"]}}
    by_form = api.submit(client, run="small", inputs='{"x": [1, 2]}')
    assert by_form["run"] == {"case": "small", "inputs": {"x": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        ({"run": "profile"}, "first, small"),
        ({"inputs": '{"x": [1]}'}, "with `run`"),
        ({"run": "first", "inputs": '{"x": ['}, None),
        ({"run": "first", "inputs": '{"x": ["one"]}'}, None),
        ({"run": "first", "inputs": "[" * 100_000}, None),
        ({"run": "first", "inputs": '{"x": [' + "1," * 5000 + "1]}"}, None),
    ],
)
def test_what_cannot_be_run_is_refused(api: Api, fields: dict[str, str], accepted: str | None) -> None:
    answer = api.as_("ada").post("/submit", data={"stage": "double", **fields}, files={"file": ("double.py", HONEST)})
    body = problem(answer, 422, "invalid_field")
    assert accepted is None or body["errors"][0]["accepted"] == accepted


def test_a_right_run_counts_nowhere(api: Api) -> None:
    client, admin = api.as_("ada"), api.as_("root", Role.ADMIN)
    made = api.submit(client, run="first")["id"]
    finish_run(made, result_of(Verdict.CORRECT, reason="case_right"))
    shown = client.get(f"/submissions/{made}").json()
    assert (shown["verdict"], shown["reason"], shown["state"]) == ("correct", "case_right", "done")
    assert client.get("/me/submissions").json()["items"] == []
    assert client.get("/leaderboard/double").json()["rows"] == []
    assert admin.get("/admin/users").json()["items"][0]["submissions"] == 0
    assert made not in admin.get("/admin/stages/double/results.csv").text
    problem(admin.post(f"/admin/submissions/{made}/rejudge"), 409, "not_final")
    assert admin.post("/admin/stages/double/rejudge", json={}).json()["submissions"] == 0
    problem(api.as_("bob").get(f"/submissions/{made}"), 404, "unknown_submission")


def test_even_a_result_that_says_accepted_counts_nowhere(api: Api) -> None:
    """A worker never writes one for a run; the board does not depend on that."""
    client = api.as_("ada")
    made = api.submit(client, run="first")["id"]
    finish_run(made, result_of(Verdict.ACCEPTED))
    assert client.get("/leaderboard/double").json()["rows"] == []
    with transaction() as database, pytest.raises(IntegrityError), database.begin_nested():
        database.execute(update(Submission).where(Submission.id == made).values(verdict="accepted"))


def test_runs_and_submissions_are_limited_each_by_itself(api: Api, limits: Callable[..., None]) -> None:
    limits(pending_limit=1, run_pending_limit=1, run_hourly_limit=2)
    client = api.as_("ada")
    made = api.submit(client, run="first")["id"]
    api.submit(client)
    refused = {"stage": "double", "source": HONEST, "run": "first"}
    assert "1 runs" in problem(client.post("/submit", json=refused), 429, "too_many_pending")["detail"]
    finish_run(made, result_of(Verdict.CORRECT))
    finish_run(api.submit(client, run="first")["id"], result_of(Verdict.CORRECT))
    assert "2 runs" in problem(client.post("/submit", json=refused), 429, "too_many_per_hour")["detail"]
    assert client.get("/me").json()["pending"] == 1


def test_a_key_tells_a_run_from_a_submission(api: Api) -> None:
    client = api.as_("ada")
    body = {"stage": "double", "source": HONEST}
    key = {"Idempotency-Key": "k"}
    first = client.post("/submit", json={**body, "run": "first"}, headers=key).json()["id"]
    assert client.post("/submit", json={**body, "run": "first"}, headers=key).json()["id"] == first
    problem(client.post("/submit", json=body, headers=key), 422, "idempotency_mismatch")


def test_runs_are_forgotten_a_day_after_they_ended(api: Api) -> None:
    client = api.as_("ada")
    old = api.submit(client, run="first")["id"]
    finish_run(old, result_of(Verdict.CORRECT))
    with transaction() as database:
        database.get_one(Submission, old).finished_at = now() - timedelta(hours=25)
    kept = api.submit(client)["id"]
    new = api.submit(client, run="first")["id"]
    with transaction() as database:
        assert {*database.scalars(select(Submission.id))} == {kept, new}
        assert database.scalar(select(func.count()).select_from(ResultRow)) == 0


def test_a_cancelled_run_ends_without_a_result(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client, run="first")["id"]
    assert client.post(f"/submissions/{made}/cancel").json()["state"] == State.CANCELLED
