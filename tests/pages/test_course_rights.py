"""Every page of a course, for everybody who may want to look at it: for whom it is, and nothing of it for the others."""

from __future__ import annotations

from datetime import timedelta

import httpx

from api.pages import contests, course_grid, course_similarity, courses, talking, webhooks
from kernelgate.contests import Contest
from kernelgate.db import transaction
from kernelgate.models import Course, CourseRole, CourseStage, Member, Role, now
from tests.pages import samples
from tests.pages.conftest import Site

SEATS = (CourseRole.MEMBER, CourseRole.ASSISTANT, CourseRole.INSTRUCTOR)
PAGES = {
    "/courses/{course}": CourseRole.MEMBER,
    "/courses/{course}/stages/{stage}": CourseRole.MEMBER,
    "/courses/{course}/questions": CourseRole.MEMBER,
    "/courses/{course}/contest": CourseRole.MEMBER,
    "/courses/{course}/grid": CourseRole.ASSISTANT,
    "/courses/{course}/changes": CourseRole.ASSISTANT,
    "/courses/{course}/members": CourseRole.ASSISTANT,
    "/courses/{course}/settings": CourseRole.ASSISTANT,
    "/courses/{course}/people/{handle}/{stage}": CourseRole.ASSISTANT,
    "/courses/{course}/logs/{handle}": CourseRole.ASSISTANT,
    "/courses/{course}/stages/{stage}/similarity": CourseRole.ASSISTANT,
    "/courses/{course}/members/{handle}": CourseRole.INSTRUCTOR,
    "/courses/{course}/webhooks": CourseRole.INSTRUCTOR,
}
"""By address, the least seat; `handle` is another member's. The course has a contest, which is over."""


def test_the_table_has_every_page_of_a_course() -> None:
    modules = (contests, course_grid, course_similarity, courses, talking, webhooks)
    there = {
        route.path  # type: ignore[attr-defined]
        for module in modules
        for route in module.router.routes
        if "GET" in (getattr(route, "methods", None) or ())
    }
    assert {path for path in there if path.startswith("/courses/{course}")} == set(PAGES)


def test_every_page_role_and_course(site: Site) -> None:
    people = {who: site.sign_in(who) for who in ("mia", "paul", "anna", "ines", "egon", "otto")}
    clients = {who: client for who, (_, client) in people.items()}
    clients["greta"] = site.sign_in("greta", Role.INSTRUCTOR)[1]
    clients["root"] = site.sign_in("root", Role.ADMIN)[1]
    seats = {"mia": SEATS[0], "paul": SEATS[0], "anna": SEATS[1], "ines": SEATS[2]}
    with transaction() as database:
        held = (("gpu", seats), ("other", {"egon": CourseRole.INSTRUCTOR}))
        for name, seated in held:
            course = Course(name=name, title=f"Course {name}", late_days=1)
            database.add(course)
            database.flush()
            database.add(CourseStage(course_id=course.id, stage="online_attention"))
            starts = now() - timedelta(days=2)
            database.add(
                Contest(course_id=course.id, starts_at=starts, ends_at=starts + timedelta(days=1), public=False)
            )
            for who, role in seated.items():
                database.add(Member(course_id=course.id, user_id=people[who][0].id, role=role))
        samples.submission(database, people["mia"][0], site.gated, samples.timed(site.gated, 2.0))
    visitor = site.visitor()
    wrong = []
    for path, least in PAGES.items():
        address = path.format(course="gpu", stage="online_attention", handle="mia")
        for who in ("paul", "anna", "ines", "egon", "otto", "greta", "root"):
            seat = seats.get(who)
            opens = who == "root" or (seat is not None and SEATS.index(seat) >= SEATS.index(least))
            if not answers(clients[who], address, opens=opens, seated=seat is not None):
                wrong.append(f"{address} as {who}")
        if visitor.get(address, follow_redirects=False).status_code not in (303, 401):
            wrong.append(f"{address} signed out")
    assert wrong == []


def answers(client: httpx.Client, address: str, *, opens: bool, seated: bool) -> bool:
    """Whether the page opens for those for whom it is, and to others shows nothing of the course they do not know of."""
    answer = client.get(address)
    if opens:
        return answer.status_code == 200
    return answer.status_code in (403, 404) and (seated or "Course gpu" not in answer.text)
