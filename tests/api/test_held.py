"""Results held back for an administrator: they count nowhere until one decides. Fixture data: no code was run for them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from api.leaderboard import Each
from kernelgate.db import transaction
from kernelgate.models import Role, Submission
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, problem, result_of, verify, write_stage

START = datetime(2026, 1, 1, tzinfo=UTC)
WHY = "0.0100 ms is less than the 0.0640 ms that the card needs for these operations at its peak."


@pytest.fixture
def fast(api: Api) -> Api:
    verify(write_stage(api.graders, "fast", ranking="speedup", sources="solvers"))
    api.app.state.catalog.reload()
    return api


def timed(api: Api, handle: str, speedup: float, minute: int, held: str = "") -> str:
    made = api.submit(api.as_(handle), stage="fast")["id"]
    interval = (speedup, speedup - 0.05, speedup + 0.05)
    result = result_of(Verdict.ACCEPTED, speedup=interval, stage="fast", held=held)
    Graded.finish(made, result, gpu="NVIDIA H200", at=START + timedelta(minutes=minute))
    return str(made)


def board(api: Api, stage: str = "fast", **asked: str) -> list[tuple[int, str]]:
    answer = api.client.get(f"/leaderboard/{stage}", params=asked)
    return [(row["rank"], row["user"]) for row in answer.json()["rows"]]


def metric(api: Api, name: str) -> float:
    lines = api.client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[1])


def audited(admin: httpx.Client) -> list[tuple[str, str, dict[str, object]]]:
    rows = admin.get("/admin/audit").json()["items"]
    return [(row["action"], row["target"], row["data"]) for row in rows if row["action"].startswith("submission.")]


def test_a_held_result_stands_on_no_board_and_in_no_file(fast: Api) -> None:
    timed(fast, "ada", 2.0, 1)
    timed(fast, "eve", 77.0, 2, WHY)
    assert board(fast) == board(fast, each=Each.SUBMISSION) == [(1, "ada")]
    assert "eve" not in fast.client.get("/leaderboard/fast?format=csv").text
    home = fast.client.get("/", headers={"Accept": "text/html"}).text
    assert "<b>ada</b>" in home
    assert "<b>eve</b>" not in home


def test_a_held_result_leaves_its_owner_the_place_from_before(fast: Api) -> None:
    timed(fast, "ada", 2.0, 1)
    timed(fast, "ada", 77.0, 2, WHY)
    assert board(fast) == [(1, "ada")]
    assert fast.client.get("/leaderboard/fast").json()["rows"][0]["speedup"] == 2.0


def test_a_held_result_opens_no_sources(fast: Api) -> None:
    other = timed(fast, "ada", 2.0, 1)
    mine = timed(fast, "eve", 77.0, 2, WHY)
    problem(fast.as_("eve").get(f"/submissions/{other}/source"), 404, "unknown_submission")
    timed(fast, "bob", 2.0, 3)
    assert fast.as_("bob").get(f"/submissions/{other}/source").status_code == 200
    problem(fast.as_("bob").get(f"/submissions/{mine}"), 404, "unknown_submission")


def test_its_owner_is_told_why(fast: Api) -> None:
    made = timed(fast, "eve", 77.0, 2, WHY)
    client = fast.as_("eve")
    body = client.get(f"/submissions/{made}").json()
    assert (body["held"], body["verdict"], body["result"]["held"]) == (WHY, "accepted", WHY)
    assert client.get("/me/submissions").json()["items"][0]["held"] == WHY
    assert WHY in client.get(f"/submissions/{made}", headers={"Accept": "text/plain"}).text


def test_released_it_counts_from_then_on_and_ranks_by_when_it_was_submitted(fast: Api) -> None:
    made = timed(fast, "eve", 2.02, 1, WHY)
    timed(fast, "ada", 2.0, 2)
    admin = fast.as_("root", Role.ADMIN)
    (item,) = admin.get("/admin/held").json()["items"]
    assert (item["id"], item["held"], item["gpu_model"], item["user"]) == (made, WHY, "NVIDIA H200", "eve")
    assert item["result"]["timing"]["user_samples_ms"] == [1.0]
    assert admin.get(httpx.URL(item["urls"]["source"]).path).status_code == 200
    assert metric(fast, "kernelgate_held") == 1
    assert admin.post(f"/admin/submissions/{made}/release").json()["held"] is None
    assert board(fast) == [(1, "eve"), (1, "ada")]
    assert admin.get("/admin/held").json()["items"] == []
    assert metric(fast, "kernelgate_held") == 0
    assert fast.as_("eve").get(f"/submissions/{made}").json()["result"]["held"] == ""
    assert "HELD" not in fast.as_("eve").get(f"/submissions/{made}", headers={"Accept": "text/plain"}).text
    assert audited(admin) == [("submission.release", made, {"round": 1, "held": WHY})]


def test_dismissed_it_stays_hidden_and_shown_again_it_waits_again(fast: Api) -> None:
    made = timed(fast, "eve", 77.0, 1, WHY)
    admin = fast.as_("root", Role.ADMIN)
    body = admin.post(f"/admin/submissions/{made}/dismiss").json()
    assert (body["hidden"], body["held"]) == (True, WHY)
    assert board(fast) == []
    assert admin.get("/admin/held").json()["items"] == []
    assert metric(fast, "kernelgate_held") == 0
    for action in ("release", "dismiss"):
        assert "was dismissed" in problem(admin.post(f"/admin/submissions/{made}/{action}"), 409, "not_held")["detail"]
    admin.post(f"/admin/submissions/{made}/hide", json={"hidden": False})
    assert board(fast) == []
    assert [each["id"] for each in admin.get("/admin/held").json()["items"]] == [made]
    assert [row[0] for row in audited(admin)] == ["submission.show", "submission.dismiss"]


def test_what_is_not_held_is_neither_released_nor_dismissed(fast: Api) -> None:
    made = timed(fast, "ada", 2.0, 1)
    admin = fast.as_("root", Role.ADMIN)
    for action in ("release", "dismiss"):
        problem(admin.post(f"/admin/submissions/{made}/{action}"), 409, "not_held")
        problem(admin.post(f"/admin/submissions/x/{action}"), 404, "unknown_submission")
    assert board(fast) == [(1, "ada")]


def test_judged_again_the_new_result_says_whether_it_is_held(fast: Api) -> None:
    """Until it is there the old one stays as it was; released once does not release what comes after."""
    made = timed(fast, "eve", 77.0, 1, WHY)
    admin = fast.as_("root", Role.ADMIN)
    admin.post(f"/admin/submissions/{made}/rejudge")
    assert board(fast) == []
    Graded.finish(made, result_of(Verdict.ACCEPTED, speedup=(1.9, 1.8, 2.0), stage="fast"), gpu="NVIDIA H200")
    assert board(fast) == [(1, "eve")]
    admin.post(f"/admin/submissions/{made}/rejudge")
    again = result_of(Verdict.ACCEPTED, speedup=(77.0, 76.0, 78.0), stage="fast", held=WHY)
    Graded.finish(made, again, gpu="NVIDIA H200")
    assert board(fast) == []
    with transaction() as database:
        assert database.get_one(Submission, made).held == WHY
