"""Exports of a course, read by what reads them: Gradescope's documented schema, ZIP, Markdown."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict

from kernelgate.protocol import CaseReport
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, result_of
from tests.api.test_course_marks import RIGHT, Desk, timed


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Text = Literal["text", "html", "simple_format", "md", "ansi"]
Seen = Literal["hidden", "after_due_date", "after_published", "visible"]


class Test(Strict):
    """A test of results.json, as the specification of its autograders has it. All of it is optional."""

    __test__ = False
    score: float | None = None
    max_score: float | None = None
    status: Literal["passed", "failed"] | None = None
    name: str | None = None
    name_format: Text | None = None
    number: str | None = None
    output: str | None = None
    output_format: Text | None = None
    tags: list[str] | None = None
    visibility: Seen | None = None
    extra_data: dict[str, Any] | None = None


class Column(Strict):
    name: str
    value: float | str
    order: Literal["asc", "desc"] = "desc"


class ResultsJson(Strict):
    """`score` is required where no test has one."""

    score: float
    execution_time: float | None = None
    output: str | None = None
    output_format: Text | None = None
    test_output_format: Text | None = None
    test_name_format: Text | None = None
    visibility: Seen | None = None
    stdout_visibility: Seen | None = None
    extra_data: dict[str, Any] | None = None
    tests: list[Test] = []
    leaderboard: list[Column] = []


CASES = tuple(
    CaseReport(name=f"c{n}", title=f"Case {n}", group="T", state=state)
    for n, state in enumerate(("right", "wrong", "not_run"))
)


@pytest.fixture
def desk(api: Api) -> Desk:
    return Desk(api)


def results(desk: Desk, who: str, stage: str = "double") -> dict[str, Any]:
    found: dict[str, Any] = desk.ines.get(f"/courses/{desk.name}/people/{who}/{stage}/results.json").json()
    ResultsJson.model_validate(found)
    return found


def test_results_json_is_what_the_specification_says(desk: Desk) -> None:
    desk.rules("double", rule="cases", points=9)
    desk.rules("fast", rule="thresholds", steps=[[0, 4], [2, 10]])
    made = desk.tried("ada", result_of(Verdict.WRONG_ANSWER, cases=CASES))
    desk.tried("ada", timed(2.5), stage="fast")
    found = results(desk, "ada")
    assert (found["score"], found["extra_data"]["submission"]) == (3, made)
    assert [test.get("status") for test in found["tests"]] == ["passed", "failed", None]
    assert "VERDICT" in found["output"]
    fast = results(desk, "ada", "fast")
    assert (fast["score"], fast["leaderboard"]) == (10, [{"name": "Speedup", "value": 2.5, "order": "desc"}])
    assert results(desk, "bob") == {
        "score": 0, "visibility": "visible", "stdout_visibility": "hidden", "output_format": "text", "tests": [],
        "output": "Nothing that counts was submitted.",
    }  # fmt: skip


def test_the_judging_that_counts_is_exported_and_not_a_later_one(desk: Desk) -> None:
    desk.rules("double", points=9)
    made = desk.tried("ada", RIGHT)
    desk.ines.post(f"/courses/{desk.name}/submissions/{made}/rejudge")
    Graded.finish(made, result_of(Verdict.WRONG_ANSWER))
    found = results(desk, "ada")
    assert (found["score"], found["extra_data"]["verdict"]) == (9, "accepted")


def test_all_of_them_in_one_file(desk: Desk) -> None:
    desk.rules("double", points=9)
    desk.rules("fast")
    desk.tried("ada", RIGHT)
    desk.ines.post(f"/courses/{desk.name}/members/ada", json={"email": "ada@uni.example"})
    answer = desk.ines.get(f"/courses/{desk.name}/gradescope.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        names = packed.namelist()
        assert sorted(names) == sorted(
            ["points.csv", *(f"{stage}/{who}/results.json" for stage in ("double", "fast") for who in ("ada", "bob"))]
        )
        for name in names[1:]:
            ResultsJson.model_validate_json(packed.read(name))
        assert json.loads(packed.read("double/ada/results.json"))["score"] == 9
        assert "ada@uni.example" in packed.read("points.csv").decode()


def test_the_work_log_is_markdown_in_which_nothing_is_markup(desk: Desk) -> None:
    desk.rules("double", points=9)
    made = desk.tried("ada", RIGHT)
    desk.ines.post(f"/courses/{desk.name}/members/ada", json={"person": "Ada | [x](http://x) <b>"})
    text = desk.clients["ada"].get(f"/courses/{desk.name}/logs/ada").text
    assert text.startswith("# Course")
    assert r"Ada \| \[x\]\(http://x\) \<b\>" in text
    assert f"{made}, counts |" in text
    assert "1 attempts, 9 points." in text
