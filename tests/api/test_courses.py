"""Courses: joining, times, quotas, extensions, judging again, and that each of it is for those alone whom it is for."""

from __future__ import annotations

from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

import httpx
import pytest
from sqlalchemy import select, update

from api.app import create_app
from kernelgate.accounts import create_user, find_user
from kernelgate.contests import Contest
from kernelgate.db import transaction
from kernelgate.models import (
    Course,
    CourseRole,
    CourseStage,
    Invite,
    Member,
    ResultRow,
    Role,
    Scope,
    Submission,
    now,
)
from kernelgate.verdicts import Verdict
from tests.api.conftest import HONEST, Api, Graded, problem, result_of, verify, write_stage

_numbers = count(1)
DAY = timedelta(days=1)


def course_with(api: Api, *, contest: bool = False, **people: CourseRole) -> str:
    """A course with the stage `double`, and these people in it; with a contest that is over."""
    name = f"course-{next(_numbers)}"
    assert api
    with transaction() as session:
        course = Course(name=name, title=name.title(), late_days=3)
        session.add(course)
        session.flush()
        session.add(CourseStage(course_id=course.id, stage="double"))
        if contest:
            session.add(Contest(course_id=course.id, starts_at=now() - 2 * DAY, ends_at=now() - DAY, public=False))
        for handle, role in people.items():
            user = find_user(session, handle) or create_user(session, handle)
            session.add(Member(course_id=course.id, user_id=user.id, role=role))
    return name


def later(**time: float) -> str:
    return (now() + timedelta(**time)).isoformat()


# ------------------------------------------------------------------------------------------------ who may do what


class Doing(NamedTuple):
    """A route of courses, what it is sent, and the least seat that it asks for."""

    method: str
    path: str
    least: str
    body: dict[str, Any] | None = None


MEMBER, STAFF, INSTRUCTOR = "member", "assistant", "instructor"
HOOK = {"url": "https://hooks.invalid/", "events": ["record"]}
SEATS = (MEMBER, STAFF, INSTRUCTOR)
DOINGS = (
    Doing("GET", "/courses/{course}", MEMBER),
    Doing("POST", "/courses/{course}", INSTRUCTOR, {"title": "Other"}),
    Doing("POST", "/courses/{course}/remove", INSTRUCTOR, {}),
    Doing("GET", "/courses/{course}/members", STAFF),
    Doing("POST", "/courses/{course}/members", INSTRUCTOR, {"lines": "eva@uni.example"}),
    Doing("POST", "/courses/{course}/members/{handle}", INSTRUCTOR, {"team": "red"}),
    Doing("POST", "/courses/{course}/members/{handle}/remove", INSTRUCTOR, {}),
    Doing("POST", "/courses/{course}/invites", INSTRUCTOR, {}),
    Doing("POST", "/courses/{course}/stages/{stage}", INSTRUCTOR, {"points": 3}),
    Doing("POST", "/courses/{course}/stages/{stage}/remove", INSTRUCTOR, {}),
    Doing("POST", "/courses/{course}/stages/{stage}/freeze", STAFF, {"frozen": True}),
    Doing("POST", "/courses/{course}/stages/{stage}/rejudge", STAFF, {"dry_run": True}),
    Doing("GET", "/courses/{course}/extensions", STAFF),
    Doing("POST", "/courses/{course}/stages/{stage}/extensions", STAFF, {"user": "mia", "due_at": later(days=9)}),
    Doing("POST", "/courses/{course}/announcements", STAFF, {"text": "Read chapter 3."}),
    Doing("POST", "/courses/{course}/announcements/{number}/remove", STAFF, {}),
    Doing("POST", "/courses/{course}/submissions/{id}/rejudge", STAFF, {}),
    Doing("POST", "/courses/{course}/submissions/{id}/hide", STAFF, {"hidden": True}),
    Doing("GET", "/courses/{course}/grid", STAFF),
    Doing("GET", "/courses/{course}/points", STAFF),
    Doing("GET", "/courses/{course}/changes", STAFF),
    Doing("GET", "/courses/{course}/people/{handle}", STAFF),
    Doing("GET", "/courses/{course}/people/{handle}/{stage}", STAFF),
    Doing("GET", "/courses/{course}/people/{handle}/{stage}/results.json", STAFF),
    Doing("GET", "/courses/{course}/gradescope.zip", STAFF),
    Doing("GET", "/courses/{course}/stages/{stage}/similarity", STAFF),
    Doing("GET", "/courses/{course}/logs/{handle}", STAFF),
    Doing("POST", "/courses/{course}/people/{handle}/{stage}/points", INSTRUCTOR, {"points": 2, "reason": "shown"}),
    Doing("POST", "/courses/{course}/stages/{stage}/mark", INSTRUCTOR, {}),
    Doing("GET", "/courses/{course}/contest", MEMBER),
    Doing("POST", "/courses/{course}/contest", INSTRUCTOR, {"starts_at": later(days=-9), "ends_at": later(days=1)}),
    Doing("POST", "/courses/{course}/contest/remove", INSTRUCTOR, {}),
    Doing("POST", "/courses/{course}/contest/reveal", STAFF, {"what": "all"}),
    Doing("GET", "/courses/{course}/webhooks", INSTRUCTOR),
    Doing("POST", "/courses/{course}/webhooks", INSTRUCTOR, HOOK),
    Doing("POST", "/courses/{course}/webhooks/{number}/test", INSTRUCTOR, {}),
    Doing("POST", "/courses/{course}/webhooks/{number}/remove", INSTRUCTOR, {}),
    Doing("GET", "/courses/{course}/questions", MEMBER),
    Doing("POST", "/courses/{course}/questions", MEMBER, {"text": "Why?", "stage": "double"}),
    Doing("POST", "/courses/{course}/questions/{number}/answer", STAFF, {"text": "Because."}),
)
ELSEWHERE = {
    "GET /courses", "POST /courses", "POST /join/{secret}",
    "POST /courses/{course}/contest/start", "POST /courses/{course}/feed",
}  # fmt: skip
"""Routes that are of no one course, or for those alone who have a seat; tests of their own."""


def test_the_table_has_every_route_of_courses() -> None:
    paths = create_app().openapi()["paths"]
    there = {
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method in methods
        if path.startswith("/courses")
    }
    assert there | {"POST /join/{secret}"} == {f"{each.method} {each.path}" for each in DOINGS} | ELSEWHERE


@pytest.fixture
def people(api: Api) -> dict[str, httpx.Client]:
    """A client for each seat of a course, for those outside, and for an administrator."""
    return {
        MEMBER: api.as_("paul"), STAFF: api.as_("anna"), INSTRUCTOR: api.as_("ines"),
        "instructor elsewhere": api.as_("egon"), "outsider": api.as_("otto"),
        "instructor of the service": api.as_("greta", Role.INSTRUCTOR), "administrator": api.as_("root", Role.ADMIN),
    }  # fmt: skip


def addressed(doing: Doing, course: str, admin: httpx.Client, made: str) -> str:
    number = "1"
    if "/questions/{number}" in doing.path:
        number = str(admin.post(f"/courses/{course}/questions", json={"text": "Old?"}).json()["id"])
    elif "/webhooks/{number}" in doing.path:
        number = str(admin.post(f"/courses/{course}/webhooks", json=HOOK).json()["id"])
    elif "{number}" in doing.path:
        number = str(admin.post(f"/courses/{course}/announcements", json={"text": "Old."}).json()["id"])
    return doing.path.format(course=course, stage="double", handle="mia", id=made, number=number)


def test_every_route_role_and_course(api: Api, people: dict[str, httpx.Client]) -> None:
    course_with(api, egon=CourseRole.INSTRUCTOR, mia=CourseRole.MEMBER)
    mine = api.submit(api.as_("mia"))["id"]
    wrong = []
    for doing in DOINGS:
        problem(api.client.request(doing.method, doing.path.format(course="x", stage="s", handle="h", id="i", number=1)), 401,
                "not_signed_in")  # fmt: skip
        for who, client in people.items():
            course = course_with(
                api,
                contest=True,
                ines=CourseRole.INSTRUCTOR,
                anna=CourseRole.ASSISTANT,
                paul=CourseRole.MEMBER,
                mia=CourseRole.MEMBER,
            )
            with transaction() as session:
                session.execute(update(Submission).values(state="done", verdict="wrong_answer", hidden=False))
            address = addressed(doing, course, people["administrator"], mine)
            answer = client.request(doing.method, address, json=doing.body)
            if who == "administrator" or (who in SEATS and SEATS.index(who) >= SEATS.index(doing.least)):
                right = answer.is_success
            else:
                codes = ("missing_role", "unknown_member") if who in SEATS else ("unknown_course",)
                right = answer.status_code in (403, 404) and answer.json()["code"] in codes
            wrong += (
                [] if right else [f"{doing.method} {doing.path} as {who}: {answer.status_code} {answer.text[:200]}"]
            )
    assert wrong == []


def test_a_token_that_only_reads_changes_no_course(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR)
    reader = api.as_("ines", scopes=[Scope.READ])
    assert reader.get(f"/courses/{course}").is_success
    for doing in DOINGS:
        if doing.method == "POST":
            address = doing.path.format(course=course, stage="double", handle="ines", id="x", number=1)
            problem(reader.post(address, json=doing.body), 403, "missing_scope")


# ---------------------------------------------------------------------------------------- making, joining, leaving


def test_instructors_of_the_service_make_courses_and_are_their_first_instructors(api: Api) -> None:
    greta, ada = api.as_("greta", Role.INSTRUCTOR), api.as_("ada")
    body = {"name": "gpu-2027", "title": "GPU programming", "late_days": 4}
    problem(ada.post("/courses", json=body), 403, "missing_role")
    made = greta.post("/courses", json=body)
    assert (made.status_code, made.json()["role"], made.json()["late_days"]) == (201, "instructor", 4)
    problem(greta.post("/courses", json=body), 409, "course_taken")
    problem(greta.post("/courses", json={**body, "name": "A b"}), 422, "invalid_field")
    assert [each["name"] for each in greta.get("/courses").json()] == ["gpu-2027"]
    assert ada.get("/courses").json() == []
    assert [each["role"] for each in api.as_("root", Role.ADMIN).get("/courses").json()] == [None]


def test_a_link_lets_those_with_and_without_an_account_join(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR)
    link = api.as_("ines").post(f"/courses/{course}/invites", json={"uses": 2}).json()["url"]
    secret = link.rsplit("/", 1)[1]
    ada = api.as_("ada")
    assert ada.post(f"/join/{secret}").json() == {"course": course, "role": "member"}
    assert ada.post(f"/join/{secret}").is_success, "once more changes nothing"
    new = api.client.post(f"/invite/{secret}", json={"handle": "nina"})
    assert new.status_code == 201
    nina = api.open(Authorization=f"Bearer {new.json()['token']}")
    assert nina.get(f"/courses/{course}").json()["role"] == "member"
    problem(api.as_("late").post(f"/join/{secret}"), 404, "unusable_invite")
    plain = api.as_("root", Role.ADMIN).post("/admin/invites", json={"uses": 5}).json()["url"].rsplit("/", 1)[1]
    problem(ada.post(f"/join/{plain}"), 404, "unusable_invite")


def test_joining_never_raises_what_somebody_is(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER)
    made = api.as_("ines").post(f"/courses/{course}/invites", json={"role": "instructor"}).json()["url"]
    assert api.as_("ada").post(f"/join/{made.rsplit('/', 1)[1]}").json()["role"] == "member"
    with transaction() as session:
        assert session.scalars(select(Invite)).one().uses_left == 1


def test_a_list_makes_a_link_for_each_address_and_teams(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR)
    ines = api.as_("ines")
    lines = 'email,name,team\nada@uni.example,"Lovelace, Ada",red\nbob@uni.example\nnobody at all\nadmin'
    api.token("admin")
    answer = ines.post(f"/courses/{course}/members", json={"lines": lines}).json()
    assert [each["email"] for each in answer["invited"]] == ["ada@uni.example", "bob@uni.example"]
    assert len(answer["skipped"]) == 2, "a handle is put in only by those who see everything anyway"
    ada = api.as_("ada")
    assert ada.post(f"/join/{answer['invited'][0]['url'].rsplit('/', 1)[1]}").is_success
    rows = {row["handle"]: row for row in ines.get(f"/courses/{course}/members").json()}
    assert (rows["ada"]["person"], rows["ada"]["team"], rows["ada"]["email"]) == (
        "Lovelace, Ada",
        "red",
        "ada@uni.example",
    )
    again = ines.post(f"/courses/{course}/members", json={"lines": lines}).json()
    assert [each["email"] for each in again["invited"]] == ["bob@uni.example"]
    old = answer["invited"][1]["url"].rsplit("/", 1)[1]
    problem(api.as_("bob").post(f"/join/{old}"), 404, "unusable_invite")
    teacher = api.as_("greta", Role.INSTRUCTOR)
    own = teacher.post("/courses", json={"name": "own", "title": "Own"}).json()["name"]
    assert teacher.post(f"/courses/{own}/members", json={"lines": "bob\nada"}).json()["added"] == ["bob", "ada"]


def test_roles_teams_and_leaving(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER, bob=CourseRole.MEMBER)
    ines, ada = api.as_("ines"), api.as_("ada")
    problem(ines.post(f"/courses/{course}/members/ines", json={"role": "member"}), 409, "last_instructor")
    problem(ines.post(f"/courses/{course}/members/ines/remove"), 409, "last_instructor")
    problem(ines.post(f"/courses/{course}/members/egon", json={}), 404, "unknown_member")
    assert ines.post(f"/courses/{course}/members/ada", json={"team": "red"}).json()["team"] == "red"
    assert ines.post(f"/courses/{course}/members/ada", json={"team": ""}).json()["team"] is None
    assert ines.post(f"/courses/{course}/members/bob", json={"role": "instructor"}).json()["role"] == "instructor"
    assert ines.post(f"/courses/{course}/members/ines/remove").is_success
    assert ada.post(f"/courses/{course}/members/ada/remove").is_success
    problem(ada.get(f"/courses/{course}"), 404, "unknown_course")


# ------------------------------------------------------------------------------------------ stages, times, quotas


def test_a_stage_has_times_and_rules(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER)
    ines, address = api.as_("ines"), f"/courses/{course}/stages/double"
    body = {"opens_at": "2027-02-01T08:00", "due_at": "2027-02-14T22:00:00+01:00", "late": "days", "late_limit": 3,
            "rule": "thresholds", "steps": "1.8: 8, 0: 4", "quota": 20}  # fmt: skip
    stage = ines.post(address, json=body).json()[0]
    assert (stage["opens_at"], stage["due_at"]) == ("2027-02-01T08:00:00Z", "2027-02-14T21:00:00Z")
    assert (stage["steps"], stage["late_limit"], stage["title"]) == ([[0, 4], [1.8, 8]], 3, "Double")
    for wrong in (
        {"due_at": "2027-01-01T00:00", "opens_at": "2027-02-01T00:00"}, {"rule": "thresholds"}, {"late": "penalty"},
        {"points": -1}, {"quota": 0}, {"steps": "a: b"}, {"points": "nan"}, {"due_at": "soon"}, {"what": 1},
    ):  # fmt: skip
        problem(ines.post(address, json=wrong), 422, "invalid_field")
    problem(ines.post(f"/courses/{course}/stages/nothing", json={}), 404, "unknown_stage")
    assert api.as_("ada").get(f"/courses/{course}").json()["stages"][0]["your_due_at"] == "2027-02-14T21:00:00Z"
    assert ines.post(f"{address}/remove").json() == []


def test_a_stage_that_is_not_open_yet_and_a_quota_refuse_members_alone(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER)
    ines, ada, out = api.as_("ines"), api.as_("ada"), api.as_("otto")
    sent: dict[str, Any] = {"data": {"stage": "double"}, "files": {"file": ("double.py", HONEST)}}
    ines.post(f"/courses/{course}/stages/double", json={"opens_at": later(hours=1)})
    refused = ada.post("/submit", **sent)
    problem(refused, 409, "not_open_yet")
    assert 3500 < int(refused.headers["retry-after"]) <= 3600
    for client in (ines, out):
        assert client.post("/submit", **sent).status_code == 202
    assert ada.post("/submit", data={"stage": "double", "run": "first"}, files=sent["files"]).status_code == 202
    ines.post(f"/courses/{course}/stages/double", json={"opens_at": later(hours=-1), "quota": 2})
    broken = api.submit(ada)["id"]
    Graded.finish(broken, result_of(Verdict.JUDGE_ERROR))
    api.submit(ada)
    api.submit(ada)
    refused = ada.post("/submit", **sent)
    problem(refused, 429, "quota_used")
    assert 86_000 < int(refused.headers["retry-after"]) <= 86_400
    assert out.post("/submit", **sent).status_code == 202


def test_of_several_courses_the_first_to_open_opens_and_the_smallest_quota_holds(api: Api) -> None:
    early, late = (course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER) for _ in range(2))
    ines, ada = api.as_("ines"), api.as_("ada")
    ines.post(f"/courses/{late}/stages/double", json={"opens_at": later(days=1), "quota": 1})
    ines.post(f"/courses/{early}/stages/double", json={"quota": 5})
    api.submit(ada)
    problem(ada.post("/submit", data={"stage": "double"}, files={"file": ("double.py", HONEST)}), 429, "quota_used")


def test_an_extension_is_for_one_person_and_never_shortens(api: Api) -> None:
    course = course_with(
        api, anna=CourseRole.ASSISTANT, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER, bob=CourseRole.MEMBER
    )
    api.as_("ines").post(f"/courses/{course}/stages/double", json={"due_at": "2027-02-14T22:00"})
    anna, address = api.as_("anna"), f"/courses/{course}/stages/double/extensions"
    given = anna.post(address, json={"user": "ada", "due_at": "2027-02-17T22:00", "reason": "ill"}).json()
    assert given == [{"stage": "double", "user": "ada", "due_at": "2027-02-17T22:00:00Z", "reason": "ill"}]
    problem(anna.post(address, json={"user": "ada", "due_at": "2027-02-01T22:00"}), 422, "invalid_field")
    problem(anna.post(address, json={"user": "otto", "due_at": later(days=900)}), 404, "unknown_member")
    due = {who: api.as_(who).get(f"/courses/{course}").json()["stages"][0]["your_due_at"] for who in ("ada", "bob")}
    assert due == {"ada": "2027-02-17T22:00:00Z", "bob": "2027-02-14T22:00:00Z"}
    assert anna.post(address, json={"user": "ada", "due_at": None}).json() == []


# -------------------------------------------------------------------------- what the staff sees and does with it


def test_the_staff_sees_its_members_submissions_to_its_stages_and_no_others(api: Api) -> None:
    verify(write_stage(api.graders, "triple"))
    api.app.state.catalog.reload()
    course_with(
        api, anna=CourseRole.ASSISTANT, ada=CourseRole.MEMBER, paul=CourseRole.MEMBER, ines=CourseRole.INSTRUCTOR
    )
    anna, ada = api.as_("anna"), api.as_("ada")
    seen, elsewhere, outside = (
        api.submit(ada)["id"],
        api.submit(ada, stage="triple")["id"],
        api.submit(api.as_("otto"))["id"],
    )
    run = api.submit(ada, run="first")["id"]
    assert anna.get(f"/submissions/{seen}/source").text == HONEST
    for hidden in (elsewhere, outside, run, api.submit(api.as_("ines"))["id"]):
        problem(anna.get(f"/submissions/{hidden}"), 404, "unknown_submission")
    problem(api.as_("paul").get(f"/submissions/{seen}"), 404, "unknown_submission")


def test_judging_again_takes_up_the_members_of_the_course_alone(api: Api) -> None:
    course = course_with(api, anna=CourseRole.ASSISTANT, ada=CourseRole.MEMBER)
    other = course_with(api, egon=CourseRole.ASSISTANT)
    mine, others = api.submit(api.as_("ada"))["id"], api.submit(api.as_("otto"))["id"]
    for made in (mine, others):
        Graded.finish(made, result_of(Verdict.WRONG_ANSWER))
    anna, address = api.as_("anna"), f"/courses/{course}/stages/double/rejudge"
    assert anna.post(address, json={"dry_run": True}).json() == {"submissions": 1, "ids": [mine]}
    assert anna.post(address, json={"verdict": "accepted"}).json()["ids"] == []
    assert anna.post(address, json={}).json()["ids"] == [mine]
    problem(anna.post(f"/courses/{course}/submissions/{others}/hide", json={}), 404, "unknown_submission")
    problem(anna.post(f"/courses/{course}/submissions/{mine}/rejudge"), 409, "not_final")
    problem(api.as_("egon").post(f"/courses/{other}/submissions/{mine}/hide", json={}), 404, "unknown_submission")
    Graded.finish(mine, result_of(Verdict.ACCEPTED))
    assert anna.post(f"/courses/{course}/submissions/{mine}/rejudge").json()["round"] == 3
    assert anna.post(f"/courses/{course}/submissions/{mine}/hide", json={"hidden": True}).json()["hidden"] is True
    log = [row["action"] for row in api.as_("root", Role.ADMIN).get("/admin/audit").json()["items"]]
    assert {"course.rejudge", "submission.rejudge", "submission.hide"} <= set(log)


def test_removing_a_course_leaves_what_was_submitted(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER)
    ada = api.as_("ada")
    made = api.submit(ada)["id"]
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    assert api.as_("ines").post(f"/courses/{course}/remove").json() == []
    assert ada.get(f"/submissions/{made}").json()["verdict"] == "accepted"
    with transaction() as session:
        assert session.scalars(select(Member)).all() == []
        assert len(session.scalars(select(ResultRow)).all()) == 1


def test_announcements_are_read_by_members_and_taken_back(api: Api) -> None:
    course = course_with(api, anna=CourseRole.ASSISTANT, ada=CourseRole.MEMBER)
    other = course_with(api, egon=CourseRole.INSTRUCTOR)
    anna = api.as_("anna")
    made = anna.post(f"/courses/{course}/announcements", json={"text": "Due on Friday."})
    assert made.status_code == 201
    assert [each["text"] for each in api.as_("ada").get(f"/courses/{course}").json()["announcements"]] == [
        "Due on Friday."
    ]
    taken = f"/announcements/{made.json()['id']}/remove"
    problem(api.as_("egon").post(f"/courses/{other}{taken}"), 404, "not_found")
    assert anna.post(f"/courses/{course}{taken}").json()["announcements"] == []
