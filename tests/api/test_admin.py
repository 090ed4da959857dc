"""What administrators do, and that it is written down."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from api.schemas import QueueOverview
from kernelgate.db import transaction
from kernelgate.models import EventRow, ResultRow, Role, Submission, now
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, add_worker, problem, result_of

READS = [
    "/admin/users", "/admin/users/ada/tokens", "/admin/invites", "/admin/audit", "/admin/queue", "/admin/stages",
    "/admin/held",
]  # fmt: skip
CHANGES = [
    "/admin/users", "/admin/users/ada", "/admin/users/ada/rename", "/admin/users/ada/remove",
    "/admin/users/ada/tokens", "/admin/tokens/1/revoke", "/admin/invites",
    "/admin/invites/1/revoke", "/admin/stages/reload", "/admin/stages/double", "/admin/stages/double/rejudge",
    "/admin/submissions/x/rejudge", "/admin/submissions/x/hide",
    "/admin/submissions/x/release", "/admin/submissions/x/dismiss",
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), [("GET", path) for path in READS] + [("POST", path) for path in CHANGES])
def test_nobody_else_does_it(api: Api, method: str, path: str) -> None:
    problem(api.client.request(method, path), 401, "not_signed_in")
    for handle, role in (("ada", Role.SUBMITTER), ("teacher", Role.INSTRUCTOR)):
        problem(api.as_(handle, role).request(method, path), 403, "missing_scope")


def audit_of(api: Api) -> list[tuple[str, str, str]]:
    rows = api.as_("root", Role.ADMIN).get("/admin/audit").json()["items"]
    return [(row["actor"], row["action"], row["target"]) for row in rows]


def test_accounts_are_made_changed_listed_and_disabled(api: Api) -> None:
    admin = api.as_("root", Role.ADMIN)
    assert admin.post("/admin/users", json={"handle": "ada"}).status_code == 201
    problem(admin.post("/admin/users", json={"handle": "Ada"}), 409, "handle_taken")
    problem(admin.post("/admin/users", json={"handle": "a b"}), 422, "invalid_field")
    problem(admin.post("/admin/users", json={"handle": "bob", "role": "god"}), 422, "invalid_field")
    assert admin.post("/admin/users/ada", json={"role": "instructor"}).json()["role"] == "instructor"
    assert admin.post("/admin/users/ada", json={"disabled": True}).json()["disabled_at"]
    assert admin.post("/admin/users/ada", json={"disabled": False}).json()["disabled_at"] is None
    problem(admin.post("/admin/users/nobody", json={"disabled": True}), 404, "unknown_user")
    page = admin.get("/admin/users?limit=1").json()
    assert [user["handle"] for user in page["items"]] == ["ada"]
    assert [user["handle"] for user in admin.get(page["next"]).json()["items"]] == ["root"]
    assert [user["handle"] for user in admin.get("/admin/users?search=OO").json()["items"]] == ["root"]
    assert admin.get("/admin/users?search=%25").json()["items"] == []
    assert audit_of(api)[::-1] == [
        ("root", "user.create", "ada"),
        ("root", "user.role", "ada"),
        ("root", "user.disable", "ada"),
        ("root", "user.enable", "ada"),
    ]


def test_the_last_administrator_stays(api: Api) -> None:
    admin = api.as_("root", Role.ADMIN)
    for change in ({"disabled": True}, {"role": "submitter"}):
        problem(admin.post("/admin/users/root", json=change), 409, "last_admin")
    api.token("second", Role.ADMIN)
    assert admin.post("/admin/users/root", json={"role": "submitter"}).status_code == 200


def test_an_administrator_makes_and_revokes_tokens_for_others(api: Api) -> None:
    admin = api.as_("root", Role.ADMIN)
    admin.post("/admin/users", json={"handle": "ada"})
    made = admin.post("/admin/users/ada/tokens", json={"name": "course", "days": 3}).json()
    ada = api.open(Authorization=f"Bearer {made['token']}")
    assert ada.get("/me").json()["handle"] == "ada"
    problem(admin.post("/admin/users/ada/tokens", json={"scopes": ["admin"]}), 422, "invalid_field")
    problem(admin.get("/admin/users/nobody/tokens"), 404, "unknown_user")
    assert [token["name"] for token in admin.get("/admin/users/ada/tokens").json()] == ["course"]
    admin.post(f"/admin/tokens/{made['id']}/revoke")
    problem(ada.get("/me"), 401, "revoked_token")


def test_queue_and_workers_are_shown(api: Api) -> None:
    ada = api.as_("ada")
    running, _ = api.submit(ada)["id"], api.submit(ada)["id"]
    Graded.run(running)
    add_worker("alive")
    add_worker("dead", age_s=3600)
    overview = QueueOverview.model_validate(api.as_("root", Role.ADMIN).get("/admin/queue").json())
    queue = overview.queues[0]
    assert (queue.queue, queue.queued, queue.running, queue.live_workers) == ("cpu", 1, 1, 1)
    assert queue.oldest_queued_s is not None
    assert 0 <= queue.oldest_queued_s < 60
    assert {worker.name: worker.live for worker in overview.workers} == {"alive": True, "dead": False}
    assert [each.id for each in overview.running] == [running]


def test_judging_again_opens_a_round_and_keeps_the_old_result(api: Api) -> None:
    ada, admin = api.as_("ada"), api.as_("root", Role.ADMIN)
    made = api.submit(ada)["id"]
    problem(admin.post(f"/admin/submissions/{made}/rejudge"), 409, "not_final")
    problem(admin.post("/admin/submissions/nothing/rejudge"), 404, "unknown_submission")
    Graded.finish(made, result_of(Verdict.WRONG_ANSWER))
    body = admin.post(f"/admin/submissions/{made}/rejudge").json()
    assert (body["state"], body["round"], body["verdict"]) == ("queued", 2, "wrong_answer")
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    assert ada.get(f"/submissions/{made}").json()["result"]["verdict"] == "accepted"
    with transaction() as session:
        rounds = session.execute(select(ResultRow.round, ResultRow.verdict).order_by(ResultRow.round)).all()
        notes = [row.data.get("note") for row in session.scalars(select(EventRow).where(EventRow.round == 2))]
    assert [tuple(row) for row in rounds] == [(1, "wrong_answer"), (2, "accepted")]
    assert "an administrator had it judged again" in notes


def test_a_whole_stage_is_judged_again_after_a_look(api: Api) -> None:
    ada, admin = api.as_("ada"), api.as_("root", Role.ADMIN)
    failed, right = api.submit(ada)["id"], api.submit(ada)["id"]
    Graded.finish(failed, result_of(Verdict.JUDGE_ERROR))
    Graded.finish(right, result_of(Verdict.ACCEPTED))
    waiting = api.submit(ada)["id"]
    path = "/admin/stages/double/rejudge"
    look = admin.post(path, json={"verdict": "judge_error", "dry_run": True}).json()
    assert look == {"submissions": 1, "ids": [failed]}
    assert ada.get(f"/submissions/{failed}").json()["state"] == "done"
    assert admin.post(path, json={"verdict": "judge_error"}).json() == look
    assert ada.get(f"/submissions/{failed}").json()["round"] == 2
    assert admin.post(path, json={}).json()["ids"] == [right]
    with transaction() as session:
        assert session.get_one(Submission, waiting).round == 1
    problem(admin.post("/admin/stages/nothing/rejudge", json={}), 404, "unknown_stage")


def test_a_rejudged_submission_is_claimable_as_new(api: Api) -> None:
    made = api.submit(api.as_("ada"))["id"]
    Graded.run(made)
    Graded.finish(made, result_of(Verdict.RUNTIME_ERROR))
    with transaction() as session:
        session.execute(update(Submission).values(cancel_requested=True, lease_until=now() - timedelta(hours=1)))
    api.as_("root", Role.ADMIN).post(f"/admin/submissions/{made}/rejudge")
    with transaction() as session:
        row = session.get_one(Submission, made)
        assert (row.attempt, row.lease_owner, row.lease_until, row.cancel_requested) == (0, None, None, False)


def test_hiding_is_written_down_once(api: Api) -> None:
    made = api.submit(api.as_("ada"))["id"]
    admin = api.as_("root", Role.ADMIN)
    for _ in range(2):
        assert admin.post(f"/admin/submissions/{made}/hide", json={}).json()["hidden"] is True
    assert audit_of(api) == [("root", "submission.hide", made)]
    problem(admin.post("/admin/submissions/nothing/hide", json={}), 404, "unknown_submission")


def test_the_audit_log_comes_in_pages(api: Api) -> None:
    admin = api.as_("root", Role.ADMIN)
    for number in range(3):
        admin.post("/admin/users", json={"handle": f"user{number}"})
    page = admin.get("/admin/audit?limit=2").json()
    rest = admin.get(page["next"]).json()
    assert [row["target"] for row in page["items"] + rest["items"]] == ["user2", "user1", "user0"]
    assert rest["next"] is None


def test_an_administrators_form_works_without_script(api: Api) -> None:
    """A browser's form: fields instead of JSON, a redirect instead of an answer."""
    admin = api.as_("root", Role.ADMIN)
    browser = {"Accept": "text/html"}
    answer = admin.post("/admin/users", data={"handle": "ada", "role": "instructor"}, headers=browser)
    assert (answer.status_code, answer.headers["location"]) == (303, "/admin/users")
    assert admin.post("/admin/users/ada", data={"disabled": "true"}).json()["disabled_at"]


def test_a_stages_results_are_a_file_without_formulas(api: Api) -> None:
    made = api.submit(api.as_("ada"))["id"]
    Graded.finish(made, result_of(Verdict.WRONG_ANSWER))
    slow = api.submit(api.as_("bob"))["id"]
    Graded.finish(slow, result_of(Verdict.ACCEPTED, speedup=(2.0, 1.9, 2.1), held="=1+1"), gpu="-H200")
    api.submit(api.as_("eve"))
    answer = api.as_("root", Role.ADMIN).get("/admin/stages/double/results.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["user"], row["verdict"], row["mistake"]) for row in rows] == [
        ("ada", "wrong_answer", "tripled"), ("bob", "accepted", ""), ("eve", "", ""),
    ]  # fmt: skip
    assert (rows[1]["held"], rows[1]["gpu_model"]) == ("'=1+1", "'-H200")
    assert (rows[1]["speedup"], rows[1]["user_ms"], rows[1]["baseline_ms"]) == ("2.0", "1.0", "2.0")
    problem(api.as_("ada").get("/admin/stages/double/results.csv"), 403, "missing_scope")
