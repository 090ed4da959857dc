"""Contests: points, time and penalties, a board that freezes and is revealed step by step, starts of people's own."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from kernelgate.contests import Contest, ContestStart
from kernelgate.db import transaction
from kernelgate.models import CourseRole, Submission, now
from kernelgate.verdicts import Verdict
from tests.api.conftest import HONEST, Api, Graded, problem, result_of, verify, write_stage
from tests.api.test_courses import course_with

RIGHT, WRONG = result_of(Verdict.ACCEPTED), result_of(Verdict.WRONG_ANSWER)
BROKEN, OURS = result_of(Verdict.COMPILE_ERROR), result_of(Verdict.JUDGE_ERROR)
PEOPLE = ("ada", "bob", "eva")


class Match:
    """A contest of five hours over `double` and `other`, frozen for its last hour; it began `ago` hours ago."""

    def __init__(self, api: Api) -> None:
        verify(write_stage(api.graders, "other", order=2))
        api.app.state.catalog.reload()
        self.api = api
        self.name = course_with(api, ines=CourseRole.INSTRUCTOR, **dict.fromkeys(PEOPLE, CourseRole.MEMBER))
        self.ines = api.as_("ines")
        self.clients = {who: api.as_(who) for who in PEOPLE}
        for place, stage in enumerate(("double", "other")):
            assert self.ines.post(
                f"/courses/{self.name}/stages/{stage}", json={"points": 10, "place": place}
            ).is_success

    def set(self, ago: float, **changes: Any) -> httpx.Response:
        self.begun = now() - timedelta(hours=ago)
        times = {"starts_at": self.at(0), "ends_at": self.at(5), "freezes_at": self.at(4)}
        return self.ines.post(f"/courses/{self.name}/contest", json={**times, "public": True, **changes})

    def at(self, hours: float) -> str:
        return (self.begun + timedelta(hours=hours)).isoformat()

    def tried(self, who: str, result: Any, minute: float, stage: str = "double") -> str:
        made = str(self.api.submit(self.clients[who], stage=stage)["id"])
        Graded.finish(made, result, at=self.begun + timedelta(minutes=minute))
        return made

    def board(self, client: httpx.Client | None = None) -> dict[str, Any]:
        found: dict[str, Any] = (client or self.api.client).get(f"/contests/{self.name}").json()
        return found

    def lines(self, client: httpx.Client | None = None) -> list[tuple[int, str, float, int]]:
        return [(row["rank"], row["name"], row["points"], row["minutes"]) for row in self.board(client)["rows"]]

    def reveal(self, what: str = "next") -> dict[str, Any]:
        answer = self.ines.post(f"/courses/{self.name}/contest/reveal", json={"what": what})
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def match(api: Api) -> Match:
    return Match(api)


def test_points_first_then_time_with_penalties(match: Match) -> None:
    assert match.set(ago=3.5).json()["state"] == "running"
    match.tried("ada", WRONG, 10)
    match.tried("ada", BROKEN, 11)
    match.tried("ada", OURS, 12)
    match.tried("ada", RIGHT, 30)
    match.tried("bob", RIGHT, 45)
    match.tried("bob", RIGHT, 50)
    match.tried("eva", RIGHT, -5)
    assert match.lines() == [(1, "bob", 10, 45), (2, "ada", 10, 50), (3, "eva", 0, 0)]
    ada = match.board()["rows"][1]["cells"][0]
    assert (ada["tries"], ada["minutes"]) == (2, 50), "what does not compile, and our own failure, cost nothing"
    match.tried("ada", RIGHT, 90, "other")
    assert match.lines()[0] == (1, "ada", 20, 140)


def test_equal_points_in_equal_time_share_a_rank(match: Match) -> None:
    match.set(ago=3)
    for who in PEOPLE[:2]:
        match.tried(who, RIGHT, 20)
    assert [(line[0], line[1]) for line in match.lines()] == [(1, "ada"), (1, "bob"), (3, "eva")]


def test_the_frozen_board_keeps_results_back_and_is_revealed_from_below(match: Match) -> None:
    match.set(ago=4.5)
    match.tried("ada", RIGHT, 20)
    match.tried("bob", RIGHT, 40)
    match.tried("eva", WRONG, 245)
    match.tried("eva", RIGHT, 250)
    match.tried("eva", RIGHT, 255, "other")
    match.tried("bob", WRONG, 260, "other")
    frozen = match.board()
    assert (frozen["state"], frozen["to_reveal"]) == ("frozen", 3)
    assert match.lines() == [(1, "ada", 10, 20), (2, "bob", 10, 40), (3, "eva", 0, 0)]
    assert [cell["hidden"] for cell in frozen["rows"][2]["cells"]] == [2, 1]
    whole = match.ines.get(f"/courses/{match.name}/contest").json()
    assert whole["rows"][0]["name"] == "eva", "the staff sees everything"
    assert match.clients["eva"].get(f"/courses/{match.name}/contest").json()["rows"][0]["name"] == "ada"
    problem(match.ines.post(f"/courses/{match.name}/contest/reveal", json={"what": "next"}), 409, "contest_runs")
    with transaction() as session:
        session.execute(update(Contest).values(ends_at=now() - timedelta(minutes=1)))
    assert match.board()["state"] == "kept_back"
    first = match.reveal()
    assert (first["last"], first["to_reveal"]) == (["eva", "double"], 2)
    assert match.lines()[2] == (3, "eva", 10, 270)
    assert match.reveal()["last"] == ["eva", "other"]
    assert match.lines()[0][:3] == (1, "eva", 20)
    assert match.reveal()["last"] is None, "the last result is out, and with it the whole board"
    assert match.board()["state"] == "over"
    match.reveal("none")
    assert match.board()["to_reveal"] == 3
    assert match.reveal("all")["state"] == "over"
    again = match.tried("bob", RIGHT, 262, "other")
    assert match.board()["state"] == "over", "what is judged afterwards keeps nothing back again"
    assert again


def test_a_frozen_contest_freezes_the_boards_of_its_stages(match: Match) -> None:
    match.set(ago=4.5)
    match.tried("ada", RIGHT, 20)
    match.tried("eva", RIGHT, 250)
    page = match.clients["ada"].get(f"/courses/{match.name}/stages/double", headers={"Accept": "text/html"}).text
    assert ">ada</th>" in page
    assert ">eva</th>" not in page


def test_nobody_of_the_course_submits_before_the_start(match: Match) -> None:
    match.set(ago=-1)
    assert match.board()["state"] == "before"
    assert (match.board()["rows"], match.board()["stages"]) == ([], {})
    sent: dict[str, Any] = {"data": {"stage": "double"}, "files": {"file": ("double.py", HONEST)}}
    problem(match.clients["ada"].post("/submit", **sent), 409, "not_open_yet")
    assert match.ines.post("/submit", **sent).status_code == 202


def test_a_latecomer_has_a_clock_of_their_own_once(match: Match) -> None:
    match.set(ago=10, virtual=True)
    match.reveal("all")
    match.tried("ada", RIGHT, 30)
    address = f"/courses/{match.name}/contest/start"
    problem(match.clients["ada"].post(address), 409, "no_own_start")
    problem(match.ines.post(address), 409, "no_own_start")
    assert match.clients["eva"].get(f"/courses/{match.name}/contest").json()["may_start"] is True
    view = match.clients["eva"].post(address).json()
    assert datetime.fromisoformat(view["your_end"]) > now() + timedelta(hours=4.9)
    assert view["rows"][0]["points"] == 0, "after no time of her own, nobody has done anything"
    problem(match.clients["eva"].post(address), 409, "no_own_start")
    with transaction() as session:
        session.execute(update(ContestStart).values(started_at=now() - timedelta(minutes=40)))
    made = str(match.api.submit(match.clients["eva"])["id"])
    Graded.finish(made, RIGHT, at=now() - timedelta(minutes=20))
    lines = match.lines(match.clients["eva"])
    assert [line[:3] for line in lines[:2]] == [(1, "eva", 10), (2, "ada", 10)]
    assert match.board()["rows"][0]["virtual"] is True
    match.set(ago=10, virtual=False)
    problem(match.clients["bob"].post(address), 409, "no_own_start")


def test_a_team_stands_together_and_starts_together(match: Match) -> None:
    match.set(ago=10, virtual=True, freezes_at=None)
    for who in ("bob", "eva"):
        match.ines.post(f"/courses/{match.name}/members/{who}", json={"team": "ada"})
    match.tried("ada", RIGHT, 30)
    assert match.clients["bob"].post(f"/courses/{match.name}/contest/start").is_success
    problem(match.clients["eva"].post(f"/courses/{match.name}/contest/start"), 409, "no_own_start")
    rows = match.board()["rows"]
    assert [(row["name"], row["points"], row["virtual"]) for row in rows] == [("ada", 10, False), ("ada", 0, True)]


def test_a_board_is_public_only_where_the_instructor_says_so(match: Match) -> None:
    outside = match.api.as_("otto")
    problem(outside.get(f"/contests/{match.name}"), 404, "no_contest")
    match.set(ago=3, public=False)
    for client in (match.api.client, outside):
        problem(client.get(f"/contests/{match.name}"), 404, "no_contest")
    assert match.clients["ada"].get(f"/contests/{match.name}").is_success
    match.set(ago=3, public=True)
    page = match.api.client.get(f"/contests/{match.name}", headers={"Accept": "text/html"})
    assert (page.status_code, ">ada<" in page.text) == (200, True)
    assert "@" not in page.text, "no address of the roster"


def test_the_board_as_csv_has_no_formula(match: Match) -> None:
    match.set(ago=3)
    match.ines.post(f"/courses/{match.name}/members/ada", json={"team": "=1+1"})
    match.tried("ada", RIGHT, 30)
    text = match.api.client.get(f"/contests/{match.name}?format=csv").text
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][:5] == ["rank", "name", "points", "minutes", "double points"]
    assert rows[1][:6] == ["1", "'=1+1", "10.0", "30", "10.0", "30"]
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)


@pytest.mark.parametrize(
    "wrong",
    [{"ends_at": None}, {"penalty": -1}, {"freezes_at": "2020-01-01T00:00Z"}, {"starts_at": "2099-01-01T00:00"}],
)
def test_times_that_fit_nowhere_are_refused(match: Match, wrong: dict[str, Any]) -> None:
    problem(match.set(ago=1, **wrong), 422, "invalid_field")


def test_a_contest_ends_with_its_row_and_hides_nothing_more(match: Match) -> None:
    match.set(ago=4.5)
    match.tried("ada", RIGHT, 250)
    assert match.ines.post(f"/courses/{match.name}/contest/remove").status_code == 204
    problem(match.ines.get(f"/courses/{match.name}/contest"), 404, "no_contest")
    with transaction() as session:
        assert session.query(Submission).count() == 1
