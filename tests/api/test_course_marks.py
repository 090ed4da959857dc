"""What attempts in a course are worth: rules, late days and their best use, teams, what a due time fixes, who looks stuck."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.courses.points import Mark, spend
from kernelgate.models import CourseRole, Role, now
from kernelgate.protocol import CaseReport, NamedMistake
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, problem, result_of, verify, write_stage
from tests.api.test_courses import course_with

RIGHT, WRONG = result_of(Verdict.ACCEPTED), result_of(Verdict.WRONG_ANSWER)
DUE = now() - timedelta(days=10)


class Desk:
    """A course with the stages `double` and `fast`, which has a gate; ines teaches it, ada and bob are in it."""

    def __init__(self, api: Api) -> None:
        verify(write_stage(api.graders, "fast", gate=1.8, ranking="speedup"))
        api.app.state.catalog.reload()
        self.api = api
        self.name = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER, bob=CourseRole.MEMBER)
        self.ines = api.as_("ines")
        self.clients = {"ada": api.as_("ada"), "bob": api.as_("bob")}

    def rules(self, stage: str, **rules: Any) -> None:
        body = {"due_at": DUE.isoformat(), **rules}
        assert self.ines.post(f"/courses/{self.name}/stages/{stage}", json=body).is_success

    def tried(self, who: str, result: Any, *, late: float = -1, stage: str = "double", gpu: str | None = None) -> str:
        """A submission that was judged; `late` days after the due time."""
        made = str(self.api.submit(self.clients[who], stage=stage)["id"])
        Graded.finish(made, result, gpu=gpu, at=DUE + timedelta(days=late))
        return made

    def cell(self, who: str, stage: str = "double") -> dict[str, Any]:
        row = self.ines.get(f"/courses/{self.name}/people/{who}").json()
        return next(cell for cell in row["cells"] if cell["stage"] == stage)

    def points(self, who: str, stage: str = "double") -> float:
        return float(self.cell(who, stage)["points"])


@pytest.fixture
def desk(api: Api) -> Desk:
    return Desk(api)


def timed(speedup: float, verdict: Verdict = Verdict.ACCEPTED) -> Any:
    return result_of(verdict, speedup=(speedup, speedup, speedup))


def test_passing_earns_the_points_and_a_wrong_or_hidden_one_nothing(desk: Desk) -> None:
    desk.rules("double", points=8)
    desk.tried("ada", WRONG)
    assert desk.points("ada") == 0
    made = desk.tried("ada", RIGHT)
    desk.tried("ada", WRONG)
    cell = desk.cell("ada")
    assert (cell["points"], cell["verdict"], cell["attempts"], cell["counts"]) == (8, "accepted", 3, made)
    desk.ines.post(f"/courses/{desk.name}/submissions/{made}/hide", json={"hidden": True})
    assert desk.points("ada") == 0
    assert desk.points("bob") == 0


def test_speedups_reached_earn_their_step(desk: Desk) -> None:
    desk.rules("fast", rule="thresholds", steps=[[0, 4], [1.2, 2], [2.5, 10]])
    desk.tried("ada", timed(1.3, Verdict.GATE_MISSED), stage="fast")
    assert desk.points("ada", "fast") == 2
    desk.tried("ada", timed(2.0), stage="fast")
    assert desk.points("ada", "fast") == 4
    desk.tried("ada", timed(2.5), stage="fast")
    assert desk.points("ada", "fast") == 10
    desk.tried("bob", result_of(Verdict.CORRECT), stage="fast")
    assert desk.points("bob", "fast") == 0, "with the gate left open, right values do not pass"


def test_a_ratio_compares_with_the_fastest_of_the_course_on_the_same_card(desk: Desk) -> None:
    desk.rules("fast", rule="ratio", points=10)
    desk.tried("ada", timed(4.0), stage="fast", gpu="H200")
    desk.tried("bob", timed(3.0), stage="fast", gpu="H200")
    assert (desk.points("ada", "fast"), desk.points("bob", "fast")) == (10, 7.5)
    desk.tried("bob", timed(1.9), stage="fast", gpu="T4")
    assert desk.points("bob", "fast") == 10


def test_the_share_of_right_cases(desk: Desk) -> None:
    desk.rules("double", rule="cases", points=10)
    states = ("right", "right", "right", "wrong")
    cases = tuple(CaseReport(name=f"c{n}", title="c", group="T", state=state) for n, state in enumerate(states))
    desk.tried("ada", result_of(Verdict.WRONG_ANSWER, cases=cases))
    desk.tried("bob", RIGHT)
    assert (desk.points("ada"), desk.points("bob")) == (7.5, 10)


def test_late_is_nothing_less_or_paid(desk: Desk) -> None:
    desk.rules("double", points=10)
    desk.tried("ada", RIGHT, late=0.5)
    assert desk.points("ada") == 0
    desk.rules("double", points=10, late="penalty", late_percent=15, late_limit=2)
    assert (desk.points("ada"), desk.cell("ada")["late"]) == (8.5, 1)
    desk.tried("bob", RIGHT, late=2.5)
    assert desk.points("bob") == 0, "beyond the days at most"
    desk.rules("double", points=10, late="days", late_limit=2)
    assert (desk.points("ada"), desk.cell("ada")["late_days"]) == (10, 1)


def test_an_extension_moves_lateness_for_one(desk: Desk) -> None:
    desk.rules("double", points=10)
    for who in ("ada", "bob"):
        desk.tried(who, RIGHT, late=1.5)
    until = (DUE + timedelta(days=2)).isoformat()
    desk.ines.post(f"/courses/{desk.name}/stages/double/extensions", json={"user": "ada", "due_at": until})
    assert (desk.points("ada"), desk.points("bob")) == (10, 0)


def test_late_days_are_spent_where_they_give_most(desk: Desk) -> None:
    """Three days: two for eight points beat one for five and one for three."""
    desk.rules("double", points=5, late="days", late_limit=3)
    desk.rules("fast", late="days", late_limit=3, rule="thresholds", steps=[[0, 1], [2, 8]])
    desk.tried("ada", RIGHT, late=1.5)
    desk.tried("ada", timed(1.9), late=0.5, stage="fast")
    desk.tried("ada", timed(2.2), late=1.5, stage="fast")
    assert (desk.points("ada"), desk.points("ada", "fast")) == (0, 8)
    desk.ines.post(f"/courses/{desk.name}", json={"late_days": 4})
    row = desk.ines.get(f"/courses/{desk.name}/people/ada").json()
    assert (row["points"], row["late_days"]) == (13, 4)


option = st.builds(lambda points, days: Mark(float(points), None, days), st.integers(0, 9), st.integers(0, 4))


@given(st.lists(st.lists(option, max_size=3), max_size=5), st.integers(0, 6))
def test_the_best_use_is_that_of_trying_every_way(stages: list[list[Mark]], budget: int) -> None:
    options = [[Mark(0.0), *marks] for marks in stages]
    chosen = spend(options, budget)
    ways = [way for way in product(*options) if sum(mark.days for mark in way) <= budget]
    best = max((sum(mark.points for mark in way), -sum(mark.days for mark in way)) for way in ways)
    assert (sum(mark.points for mark in chosen), -sum(mark.days for mark in chosen)) == best


def test_a_team_earns_and_pays_jointly(desk: Desk) -> None:
    desk.rules("double", points=6, joint=True, late="days", late_limit=3)
    desk.tried("ada", RIGHT, late=1.5)
    assert (desk.points("ada"), desk.points("bob")) == (6, 0)
    for who in ("ada", "bob"):
        desk.ines.post(f"/courses/{desk.name}/members/{who}", json={"team": "red"})
    assert (desk.points("ada"), desk.points("bob"), desk.cell("bob")["late_days"]) == (6, 6, 2)


def test_a_due_time_fixes_what_counts_until_an_instructor_takes_newer_judgings_over(desk: Desk) -> None:
    desk.rules("double", points=6)
    made = desk.tried("ada", WRONG)
    desk.ines.post(f"/courses/{desk.name}/submissions/{made}/rejudge")
    Graded.finish(made, RIGHT)
    assert (desk.points("ada"), desk.cell("ada")["verdict"]) == (0, "accepted")
    found = desk.ines.get(f"/courses/{desk.name}/people/ada/double").json()["attempts"][0]
    assert (found["verdict"], found["counted_as"]) == ("accepted", "wrong_answer")
    change = {"stage": "double", "user": "ada", "before": 0, "after": 6}
    assert desk.ines.get(f"/courses/{desk.name}/changes").json() == [change]
    assert desk.ines.post(f"/courses/{desk.name}/stages/double/mark").json() == []
    assert desk.points("ada") == 6


def test_our_own_failure_never_counts_and_a_judging_after_it_does(desk: Desk) -> None:
    desk.rules("double", points=6)
    made = desk.tried("ada", result_of(Verdict.JUDGE_ERROR))
    assert (desk.points("ada"), desk.cell("ada")["attempts"]) == (0, 0)
    desk.ines.post(f"/courses/{desk.name}/submissions/{made}/rejudge")
    Graded.finish(made, RIGHT)
    assert desk.points("ada") == 6


def test_points_by_hand_need_a_reason_and_can_be_taken_back(desk: Desk) -> None:
    desk.rules("double", points=6)
    desk.tried("ada", RIGHT)
    address = f"/courses/{desk.name}/people/ada/double/points"
    problem(desk.ines.post(address, json={"points": 3}), 422, "invalid_field")
    cell = desk.ines.post(address, json={"points": 3.5, "reason": "copied a line"}).json()["cell"]
    assert (cell["points"], cell["override"]) == (3.5, "copied a line")
    own = desk.clients["ada"].get(f"/courses/{desk.name}/people/ada/double").json()["cell"]
    assert own["override"] == "copied a line", "the person reads why"
    desk.ines.post(address, json={"points": None})
    assert desk.points("ada") == 6
    actions = [row["action"] for row in desk.api.as_("root", Role.ADMIN).get("/admin/audit").json()["items"]]
    assert actions.count("course.points") == 2


def attempt_now(desk: Desk, days_ago: float, result: Any) -> None:
    made = str(desk.api.submit(desk.clients["ada"])["id"])
    Graded.finish(made, result, at=now() - timedelta(days=days_ago))


def test_the_same_mistake_five_times_and_three_days_without_progress_stand_out(desk: Desk) -> None:
    desk.rules("double", due_at=(now() + timedelta(days=30)).isoformat())
    for n in range(4):
        attempt_now(desk, 1 - n / 10, WRONG)
    assert desk.cell("ada")["stuck"] is None
    attempt_now(desk, 0.1, WRONG)
    assert desk.cell("ada")["stuck"] == "5 times: Tripled"
    other = result_of(Verdict.WRONG_ANSWER, mistake=NamedMistake(name="other", title="Other", hint="h"))
    attempt_now(desk, 0.05, other)
    assert desk.cell("ada")["stuck"] is None
    attempt_now(desk, 5, result_of(Verdict.WRONG_ANSWER, mistake=None))
    assert desk.cell("ada")["stuck"] == "no progress for 5 days"
    attempt_now(desk, 0.01, RIGHT)
    assert desk.cell("ada")["stuck"] is None


def test_the_grid_follows_what_is_judged_and_changed(desk: Desk) -> None:
    """It is kept between looks; nothing old may be shown."""
    desk.rules("double", points=2)
    desk.tried("ada", RIGHT)
    assert desk.points("ada") == 2
    desk.rules("double", points=3)
    assert desk.points("ada") == 3
    desk.tried("bob", RIGHT)
    assert desk.points("bob") == 3
    desk.ines.post(f"/courses/{desk.name}/members/bob/remove")
    rows = desk.ines.get(f"/courses/{desk.name}/grid").json()["rows"]
    assert [row["handle"] for row in rows] == ["ada"]


def test_csv_has_no_formulas(desk: Desk) -> None:
    desk.rules("double", points=2)
    desk.tried("ada", RIGHT)
    desk.ines.post(
        f"/courses/{desk.name}/members/ada", json={"person": "=HYPERLINK(1)", "team": "@cmd", "email": "+1@x"}
    )
    for form in ("points", "grid"):
        text = desk.ines.get(f"/courses/{desk.name}/{form}?format=csv").text
        rows = list(csv.DictReader(io.StringIO(text)))
        assert rows[0]["handle"] == "ada"
        assert not [cell for row in rows for cell in row.values() if cell and cell[0] in "=+-@\t\r"]
        assert rows[0]["name"] == "'=HYPERLINK(1)"
        assert rows[0].get("double", "2.0") == "2.0"


def test_members_see_their_own_row_and_timeline_alone(desk: Desk) -> None:
    desk.rules("double", points=2)
    desk.tried("bob", RIGHT)
    ada: httpx.Client = desk.clients["ada"]
    assert ada.get(f"/courses/{desk.name}/people/ada").json()["handle"] == "ada"
    assert ada.get(f"/courses/{desk.name}/people/ada/double").json()["attempts"] == []
    for address in ("people/bob", "people/bob/double"):
        problem(ada.get(f"/courses/{desk.name}/{address}"), 404, "unknown_member")
    shown = desk.clients["bob"].get(f"/courses/{desk.name}/people/bob/double").json()
    assert [each["added"] for each in shown["attempts"]] == [2]
    assert datetime.fromisoformat(shown["due_at"]) == DUE
