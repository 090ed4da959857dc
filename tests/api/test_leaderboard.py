"""Leaderboards: who stands where, and who does not stand there."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from api.leaderboard import Entry, ranked
from kernelgate.db import transaction
from kernelgate.models import Role
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, problem, result_of, verify, write_stage

START = datetime(2026, 1, 1, tzinfo=UTC)


def grade(api: Api, handle: str, verdict: Verdict, minute: int, stage: str = "double") -> str:
    """A submission made and judged at a minute after START; fixture data."""
    made = api.submit(api.as_(handle), stage=stage)
    Graded.finish(made["id"], result_of(verdict, stage=stage), at=START + timedelta(minutes=minute))
    return str(made["id"])


def timed(api: Api, handle: str, speedup: tuple[float, float, float], minute: int, gpu: str = "NVIDIA H200") -> str:
    made = api.submit(api.as_(handle), stage="fast")
    at = START + timedelta(minutes=minute)
    Graded.finish(made["id"], result_of(Verdict.ACCEPTED, speedup=speedup, stage="fast"), gpu=gpu, at=at)
    return str(made["id"])


@pytest.fixture
def fast(api: Api) -> Api:
    """The API with a stage that ranks by speedup."""
    verify(write_stage(api.graders, "fast", ranking="speedup"))
    api.app.state.catalog.reload()
    return api


def test_first_accepted_ranks_by_the_first_and_counts_attempts(api: Api) -> None:
    grade(api, "ada", Verdict.WRONG_ANSWER, 1)
    grade(api, "ada", Verdict.JUDGE_ERROR, 2)
    first = grade(api, "ada", Verdict.ACCEPTED, 5)
    grade(api, "ada", Verdict.ACCEPTED, 6)
    grade(api, "bob", Verdict.ACCEPTED, 3)
    grade(api, "eve", Verdict.WRONG_ANSWER, 1)
    board = api.client.get("/leaderboard/double").json()
    assert [(row["rank"], row["user"], row["attempts"]) for row in board["rows"]] == [(1, "bob", 1), (2, "ada", 2)]
    assert board["rows"][1]["submission"] == first
    assert (board["ranking"], board["total"], board["next"]) == ("first_accepted", 2, None)


def test_correct_without_a_judged_speed_is_not_accepted(api: Api) -> None:
    grade(api, "ada", Verdict.CORRECT, 1)
    assert api.client.get("/leaderboard/double").json()["rows"] == []


def test_hidden_submissions_and_disabled_accounts_do_not_stand(api: Api) -> None:
    hidden = grade(api, "ada", Verdict.ACCEPTED, 1)
    grade(api, "bob", Verdict.ACCEPTED, 2)
    grade(api, "eve", Verdict.ACCEPTED, 3)
    admin = api.as_("root", Role.ADMIN)
    admin.post(f"/admin/submissions/{hidden}/hide", json={"hidden": True})
    admin.post("/admin/users/bob", json={"disabled": True})
    assert [row["user"] for row in api.client.get("/leaderboard/double").json()["rows"]] == ["eve"]
    admin.post(f"/admin/submissions/{hidden}/hide", json={"hidden": False})
    assert [row["user"] for row in api.client.get("/leaderboard/double").json()["rows"]] == ["ada", "eve"]


def test_a_frozen_board_shows_what_was_accepted_until_then(api: Api) -> None:
    first = grade(api, "ada", Verdict.ACCEPTED, 1)
    admin = api.as_("root", Role.ADMIN)
    assert admin.post("/admin/stages/double", json={"frozen": True}).json()["frozen_at"]
    later = api.submit(api.as_("bob"))["id"]
    Graded.finish(later, result_of(Verdict.ACCEPTED))
    board = api.client.get("/leaderboard/double").json()
    assert [row["submission"] for row in board["rows"]] == [first]
    assert board["frozen_at"]
    admin.post(f"/admin/submissions/{first}/rejudge")
    Graded.finish(first, result_of(Verdict.WRONG_ANSWER))
    assert [row["submission"] for row in api.client.get("/leaderboard/double").json()["rows"]] == [first]
    admin.post("/admin/stages/double", json={"frozen": False})
    assert [row["submission"] for row in api.client.get("/leaderboard/double").json()["rows"]] == [later]


def test_speedup_ranks_each_users_best_and_shares_ranks(fast: Api) -> None:
    timed(fast, "ada", (2.0, 1.95, 2.05), 4)
    timed(fast, "ada", (1.5, 1.45, 1.55), 1)
    timed(fast, "bob", (1.97, 1.92, 2.02), 2)
    timed(fast, "eve", (1.9, 1.88, 1.92), 3)
    board = fast.client.get("/leaderboard/fast").json()
    assert [(row["rank"], row["user"]) for row in board["rows"]] == [(1, "bob"), (1, "ada"), (3, "eve")]
    row = board["rows"][1]
    assert (row["speedup"], row["speedup_low"], row["user_ms"], row["baseline_ms"]) == (2.0, 1.95, 1.0, 2.0)
    assert row["attempts"] == 2


def test_a_board_is_put_together_again_when_it_changes(fast: Api) -> None:
    """It is kept between requests: a result, a hidden submission and a disabled account must each show at once."""

    def people(**asked: str) -> list[str]:
        return [row["user"] for row in fast.client.get("/leaderboard/fast", params=asked).json()["rows"]]

    admin = fast.as_("root", Role.ADMIN)
    first = timed(fast, "ada", (2.0, 1.95, 2.05), 1)
    assert people() == ["ada"]
    timed(fast, "ada", (3.0, 2.95, 3.05), 2)
    timed(fast, "bob", (2.5, 2.45, 2.55), 3)
    assert people() == ["ada", "bob"]
    assert people(each="submission") == ["ada", "bob", "ada"]
    admin.post(f"/admin/submissions/{first}/hide", json={"hidden": True})
    assert people(each="submission") == ["ada", "bob"]
    admin.post("/admin/users/ada", json={"disabled": True})
    assert people() == ["bob"]


def test_swaps_that_leave_every_count_as_it_was_show_at_once(fast: Api) -> None:
    """Attacks on a kept board: whoever compares how many are hidden or disabled sees no difference."""

    def people() -> set[str]:
        return {row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]}

    admin = fast.as_("root", Role.ADMIN)
    of = {handle: timed(fast, handle, (2.0, 1.95, 2.05), minute) for minute, handle in enumerate(("ada", "bob"), 1)}

    def hide(handle: str, hidden: bool) -> None:
        admin.post(f"/admin/submissions/{of[handle]}/hide", json={"hidden": hidden}).raise_for_status()

    def disable(handle: str, disabled: bool) -> None:
        admin.post(f"/admin/users/{handle}", json={"disabled": disabled}).raise_for_status()

    for change in (hide, disable):
        change("ada", True)
        assert people() == {"bob"}
        change("ada", False)
        change("bob", True)
        assert people() == {"ada"}
        change("bob", False)
        assert people() == {"ada", "bob"}


def test_a_swap_in_one_transaction_shows_at_once(fast: Api) -> None:
    """By whoever has a shell on the database, too."""
    ada = timed(fast, "ada", (2.0, 1.95, 2.05), 1)
    bob = timed(fast, "bob", (2.0, 1.95, 2.05), 2)
    with transaction() as database:
        database.execute(text("UPDATE submissions SET hidden = true WHERE id = :id"), {"id": ada})
    assert [row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]] == ["bob"]
    with transaction() as database:
        database.execute(text("UPDATE submissions SET hidden = NOT hidden WHERE id IN (:a, :b)"), {"a": ada, "b": bob})
    assert [row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]] == ["ada"]


def test_a_handle_that_changes_and_a_result_that_goes_show_at_once(fast: Api) -> None:
    ada = timed(fast, "ada", (2.0, 1.95, 2.05), 1)
    timed(fast, "bob", (2.0, 1.95, 2.05), 2)
    assert len(fast.client.get("/leaderboard/fast").json()["rows"]) == 2
    with transaction() as database:
        database.execute(text("UPDATE users SET handle = 'bobby' WHERE handle = 'bob'"))
        database.execute(text("DELETE FROM submissions WHERE id = :id"), {"id": ada})
    assert [row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]] == ["bobby"]


def test_a_rejudging_that_ends_shows_at_once_and_one_that_only_begins_changes_nothing(fast: Api) -> None:
    ada = timed(fast, "ada", (2.0, 1.95, 2.05), 1)
    rows = fast.client.get("/leaderboard/fast").json()["rows"]
    fast.as_("root", Role.ADMIN).post(f"/admin/submissions/{ada}/rejudge").raise_for_status()
    assert fast.client.get("/leaderboard/fast").json()["rows"] == rows
    Graded.finish(ada, result_of(Verdict.GATE_MISSED, speedup=(1.2, 1.1, 1.3), stage="fast"), gpu="NVIDIA H200")
    assert fast.client.get("/leaderboard/fast").json()["rows"] == []


def test_a_new_version_of_a_stage_ranks_as_it_says_at_once(fast: Api) -> None:
    timed(fast, "ada", (2.0, 1.95, 2.05), 1)
    timed(fast, "bob", (3.0, 2.95, 3.05), 2)
    assert [row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]] == ["bob", "ada"]
    verify(write_stage(fast.graders, "fast", ranking="first_accepted"))
    fast.app.state.catalog.reload()
    assert [row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]] == ["ada", "bob"]


def test_a_change_that_began_first_and_ends_last_is_not_lost(fast: Api) -> None:
    """Looked at before, between and after: an order of numbers would say that nothing came after the second."""
    of = {handle: timed(fast, handle, (2.0, 1.95, 2.05), minute) for minute, handle in enumerate(("ada", "bob"), 1)}

    def people() -> set[str]:
        return {row["user"] for row in fast.client.get("/leaderboard/fast").json()["rows"]}

    hiding = text("UPDATE submissions SET hidden = true WHERE id = :id")
    with transaction() as first:
        first.execute(hiding, {"id": of["ada"]})
        assert people() == {"ada", "bob"}
        with transaction() as second:
            second.execute(hiding, {"id": of["bob"]})
        assert people() == {"ada"}
    assert people() == set()


def test_each_gpu_model_has_its_own_board(fast: Api) -> None:
    timed(fast, "ada", (2.0, 1.9, 2.1), 1)
    timed(fast, "bob", (2.0, 1.9, 2.1), 2)
    timed(fast, "eve", (9.0, 8.9, 9.1), 3, gpu="NVIDIA A100")
    board = fast.client.get("/leaderboard/fast").json()
    assert (board["gpu_model"], board["gpu_models"]) == ("NVIDIA H200", ["NVIDIA H200", "NVIDIA A100"])
    assert [row["user"] for row in board["rows"]] == ["ada", "bob"]
    other = fast.client.get("/leaderboard/fast", params={"gpu": "NVIDIA A100"}).json()
    assert [row["user"] for row in other["rows"]] == ["eve"]
    body = problem(fast.client.get("/leaderboard/fast?gpu=TPU"), 422, "invalid_field")
    assert body["errors"][0]["accepted"] == "NVIDIA H200, NVIDIA A100"


def entry(user: str, speedup: float, half: float, minute: int) -> Entry:
    at = START + timedelta(minutes=minute)
    return Entry(0, user, user, at, 1, "x", speedup, speedup - half, speedup + half)


def test_overlap_is_with_the_ranks_best_and_not_with_the_neighbour() -> None:
    """a reaches b and b reaches c, but a is clearly faster than c."""
    placed = ranked([entry("a", 2.0, 0.05, 1), entry("b", 1.93, 0.05, 2), entry("c", 1.86, 0.05, 3)])
    assert [(each.user, each.rank) for each in placed] == [("a", 1), ("b", 1), ("c", 3)]


def test_boards_come_in_pages_and_as_csv(api: Api) -> None:
    for minute, handle in enumerate(("ada", "bob", "eve")):
        grade(api, handle, Verdict.ACCEPTED, minute)
    page = api.client.get("/leaderboard/double?limit=2").json()
    assert (len(page["rows"]), page["total"]) == (2, 3)
    assert [row["user"] for row in api.client.get(page["next"]).json()["rows"]] == ["eve"]
    for answer in (
        api.client.get("/leaderboard/double", headers={"Accept": "text/csv"}),
        api.client.get("/leaderboard/double?format=csv"),
    ):
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert [(row["rank"], row["user"]) for row in rows] == [("1", "ada"), ("2", "bob"), ("3", "eve")]


@pytest.mark.parametrize("query", ["limit=0", "limit=100000", "offset=-1", "format=xml"])
def test_a_page_that_cannot_be_is_refused(api: Api, query: str) -> None:
    problem(api.client.get(f"/leaderboard/double?{query}"), 422, "invalid_field")


def test_an_unknown_board_is_said(api: Api) -> None:
    problem(api.client.get("/leaderboard/duoble"), 404, "unknown_stage")


def test_ten_thousand_rows_are_ranked_in_time(fast: Api, limits: Callable[..., None]) -> None:
    assert limits
    with transaction() as session:
        session.execute(
            text("INSERT INTO users (handle, role) SELECT 'u' || n, 'submitter' FROM generate_series(1, 10000) n")
        )
        session.execute(
            text(
                "INSERT INTO submissions (id, user_id, stage, stage_hash, filename, source, source_hash, via, created_at,"
                " state, queue, round, attempt, cancel_requested, hidden, verdict, gpu_model, speedup)"
                " SELECT md5(u.id::text), u.id, 'fast', '0', 'f.py', '', '', 'api', now(), 'done', 'cpu', 1, 1, false, false,"
                " 'accepted', 'NVIDIA H200', 1 + random() FROM users u WHERE u.handle LIKE 'u%'"
            )
        )
        session.execute(
            text(
                "INSERT INTO results (submission_id, round, attempt, worker, verdict, reason, stage_hash, speedup, speedup_low,"
                " speedup_high, body) SELECT id, 1, 1, 'fixture', 'accepted', 'passed', '0', speedup, speedup - 0.001,"
                " speedup + 0.001, '{}' FROM submissions"
            )
        )
        session.execute(text("ANALYZE"))
    fast.client.get("/leaderboard/fast")
    answer = fast.client.get("/leaderboard/fast?limit=1000&offset=9000")
    assert len(answer.json()["rows"]) == 1000
    assert answer.elapsed < timedelta(seconds=3), "two busy cores; 0.3 s on an idle one"
