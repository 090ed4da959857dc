"""A token of one course is good for that course alone, on every route that there is."""

from __future__ import annotations

import re

from api.app import create_app
from kernelgate.db import transaction
from kernelgate.models import CourseRole, Role, Token
from tests.api.conftest import Api, problem
from tests.api.test_courses import course_with

OPEN = {"/healthz", "/readyz", "/metrics", "/openapi.json", "/stages", "/stages/{name}", "/leaderboard/{stage}"}


def test_such_a_token_opens_its_course_and_nothing_else(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER)
    other = course_with(api, ines=CourseRole.INSTRUCTOR)
    ines = api.as_("ines")
    made = ines.post("/me/tokens", json={"name": "grades", "course": course})
    assert (made.status_code, made.json()["course"]) == (201, course)
    bot = api.open(Authorization=f"Bearer {made.json()['token']}")
    assert bot.get(f"/courses/{course}/grid").is_success
    assert bot.post(f"/courses/{course}/announcements", json={"text": "Graded."}).status_code == 201
    for path in (f"/courses/{other}/grid", "/courses", "/me", "/me/tokens", "/me/submissions"):
        problem(bot.get(path), 403, "missing_scope")
    problem(bot.post("/me/tokens", json={}), 403, "missing_scope")
    problem(bot.post("/submit", data={"stage": "double"}, files={"file": ("double.py", "x")}), 403, "missing_scope")
    problem(api.client.post("/sign-in", json={"token": made.json()["token"]}), 403, "missing_scope")
    answers = {}
    for path, methods in create_app().openapi()["paths"].items():
        if "{course}" not in path:
            address = re.sub(r"{[^}]*}", "1", path)
            answers |= {f"{method} {path}": bot.request(method, address).status_code for method in methods}
    needing = {key: status for key, status in answers.items() if status < 400}
    unsigned = {
        f"{method} {path}"
        for path, methods in create_app().openapi()["paths"].items()
        for method in methods
        if api.client.request(method, re.sub(r"{[^}]*}", "1", path)).status_code < 400
    }
    assert set(needing) <= unsigned, "whatever answers such a token answers a stranger as well"


def test_it_is_for_those_in_the_course_and_ends_with_it(api: Api) -> None:
    course = course_with(api, ines=CourseRole.INSTRUCTOR)
    problem(api.as_("otto").post("/me/tokens", json={"course": course}), 404, "unknown_course")
    root = api.as_("root", Role.ADMIN)
    problem(root.post("/admin/users/otto/tokens", json={"course": course}), 404, "unknown_course")
    assert root.post("/admin/users/ines/tokens", json={"course": course}).json()["course"] == course
    secret = api.as_("ines").post("/me/tokens", json={"course": course}).json()["token"]
    assert api.as_("ines").post(f"/courses/{course}/remove").is_success
    problem(api.open(Authorization=f"Bearer {secret}").get(f"/courses/{course}"), 401, "unknown_token")
    with transaction() as session:
        assert session.query(Token).filter(Token.course.is_not(None)).count() == 0
