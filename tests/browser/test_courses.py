"""A course's pages in the middle of a term, for its staff and for a member: they fit, axe finds nothing, keys do it all."""

from __future__ import annotations

import csv
import re
from datetime import timedelta
from typing import NamedTuple

import pytest
from playwright.sync_api import expect
from sqlalchemy import create_engine, pool
from sqlalchemy.orm import Session

from kernelgate.accounts import create_token, create_user
from kernelgate.models import (
    Course,
    CourseRole,
    CourseStage,
    Extension,
    LateRule,
    Member,
    Override,
    PointsRule,
    ResultRow,
    Role,
    Team,
    User,
    now,
)
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Stage
from kernelgate.talk import Announcement
from kernelgate.verdicts import Verdict
from tests.browser.conftest import AXE, Open
from tests.browser.gradings import store
from tests.conftest import Service
from tests.pages import samples

pytestmark = pytest.mark.browser

COURSE, SOFTMAX, ATTENTION = "/courses/gpu-browser", "online_softmax", "online_attention"
LAST, LONG = "zz_last", "ada_with_a_rather_long_handle"
CROWD = 30


class Taught(NamedTuple):
    """Tokens of its instructor and of a member, and two submissions that are alike."""

    instructor: str
    member: str
    alike: tuple[str, str]


@pytest.fixture(scope="module")
def taught(service: Service) -> Taught:
    stages, _ = load_stages(ROOT / "graders")
    engine = create_engine(service.env["KERNELGATE_DATABASE_URL"], poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        teacher = create_user(session, "ines_teaches", Role.INSTRUCTOR)
        course = Course(name="gpu-browser", title="GPU programming, spring", late_days=4)
        session.add(course)
        session.flush()
        people = enrolled(session, course, teacher)
        scheduled(session, course, people[LONG])
        alike = tried(session, stages, people)
        tokens = [create_token(session, user, days=1)[1] for user in (teacher, people[LONG])]
    return Taught(tokens[0], tokens[1], alike)


def enrolled(session: Session, course: Course, teacher: User) -> dict[str, User]:
    team = Team(course_id=course.id, name="the red team with a long name")
    session.add_all([team, Member(course_id=course.id, user_id=teacher.id, role=CourseRole.INSTRUCTOR)])
    session.flush()
    people = {}
    for handle in (LONG, "bob_late", "eva_stuck", *(f"nobody{n:02}" for n in range(CROWD)), LAST):
        people[handle] = user = create_user(session, handle)
        session.add(
            Member(
                course_id=course.id, user_id=user.id, team_id=team.id if handle == LONG else None,
                person=f"{handle.title()} of <b>", email=f"{handle}@a-university-with-a-long-name.example",
            )
        )  # fmt: skip
    session.add(Announcement(course_id=course.id, text="The second stage is due on Friday.", actor="ines_teaches"))
    return people


def scheduled(session: Session, course: Course, extended: User) -> None:
    over, goes_on = now() - timedelta(days=9), now() + timedelta(days=9)
    softmax = CourseStage(
        course_id=course.id, stage=SOFTMAX, place=1, due_at=over, late=LateRule.DAYS, late_limit=3, points=10
    )
    attention = CourseStage(
        course_id=course.id,
        stage=ATTENTION,
        place=2,
        due_at=goes_on,
        rule=PointsRule.THRESHOLDS,
        steps=[[0, 4], [2, 10]],
    )
    later = over + timedelta(days=2)
    session.add_all([softmax, attention, Extension(
        course_id=course.id, stage=SOFTMAX, user_id=extended.id, due_at=later, reason="ill",
    )])  # fmt: skip
    session.add(
        Override(
            course_id=course.id,
            stage=ATTENTION,
            user_id=extended.id,
            points=7,
            reason="shown <i>",
            actor="ines_teaches",
        )
    )


def tried(session: Session, stages: dict[str, Stage], people: dict[str, User]) -> tuple[str, str]:
    """Somebody who got better, somebody late, somebody stuck, and one who was judged again since it was due."""
    softmax, attention = stages[SOFTMAX], stages[ATTENTION]
    text = (softmax.folder / "solution" / softmax.spec.file).read_bytes()
    ada, bob, eva, last = (people[name] for name in (LONG, "bob_late", "eva_stuck", LAST))
    for n, speedup in enumerate((1.4, 1.9, 2.6)):
        verdict = Verdict.GATE_MISSED if speedup < 1.8 else Verdict.ACCEPTED
        store(session, ada, attention, samples.timed(attention, speedup, verdict), b"// %d\n" % n, hours=50 - n)
    store(session, bob, softmax, samples.accepted(softmax), text, hours=24 * 8)
    for n in range(5):
        store(session, eva, attention, samples.result(attention, Verdict.COMPILE_ERROR), b"// %d\n" % n, hours=110 - n)
    again = store(session, last, softmax, samples.accepted(softmax), b"# mine\n" + text, hours=24 * 10)
    wrong = samples.wrong_from_row(softmax)
    again.round, again.verdict, again.reason = 2, str(wrong.verdict), wrong.reason
    session.add(
        ResultRow(
            submission_id=again.id, round=2, attempt=1, worker="cpu-1", verdict=str(wrong.verdict), reason=wrong.reason,
            stage_hash=softmax.hash, body=wrong.stored(),
        )
    )  # fmt: skip
    first = store(session, ada, softmax, wrong, b"import torch\n", hours=24 * 12)
    second = store(session, ada, softmax, samples.accepted(softmax), text, hours=24 * 11)
    assert first.id != second.id
    return again.id, second.id


PAGES = {
    "grid and people": ("/grid", "/grid?show=stuck", "/grid?search=no_one", f"/people/{LONG}/{ATTENTION}",
                        f"/people/nobody00/{SOFTMAX}", f"/logs/{LONG}", "/changes"),
    "desk": ("", "/members", f"/members/{LONG}", "/settings", f"/stages/{SOFTMAX}?preview=1", f"/stages/{SOFTMAX}/similarity",
             f"/stages/{SOFTMAX}/similarity?one={{}}&other={{}}"),
    "member": ("", f"/people/{LONG}/{ATTENTION}", f"/logs/{LONG}", f"/stages/{ATTENTION}"),
}  # fmt: skip


@pytest.mark.timeout(400)
@pytest.mark.parametrize("part", PAGES)
def test_course_pages_fit_and_axe_finds_nothing(visit: Open, taught: Taught, part: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in web/")
    person = visit()
    person.sign_in(taught.member if part == "member" else taught.instructor)
    assert [fault for path in PAGES[part] for fault in person.faults(COURSE + path.format(*taught.alike))] == []


def test_the_grid_is_used_with_keys(visit: Open, taught: Taught) -> None:
    person = visit()
    person.sign_in(taught.instructor)
    page = person.go(f"{COURSE}/grid")
    last = page.get_by_role("row", name=LAST)
    expect(page.locator(".course-grid tbody tr")).to_have_count(CROWD + 4)
    expect(last).not_to_be_in_viewport()
    page.get_by_role("group", name="Grid").focus()
    page.keyboard.press("End")
    expect(last).to_be_in_viewport()
    page.keyboard.press("Home")
    for name in ("Person", "Team", "Points"):
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=name, exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("sort=points"))
    cells = page.locator(".course-grid td a")
    cells.nth(cells.count() - 2).focus()
    page.keyboard.press("Tab")
    expect(cells.last).to_be_focused()
    expect(cells.last).to_be_in_viewport()
    address = cells.last.get_attribute("href")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"{address}$"))


def test_without_scripts_a_link_shows_the_whole_grid(visit: Open, taught: Taught) -> None:
    person = visit(script=False)
    person.sign_in(taught.instructor)
    page = person.go(f"{COURSE}/grid?sort=points")
    rows = page.locator(".course-grid tbody tr")
    expect(rows).to_have_count(20)
    page.get_by_role("link", name="Show the other 14 people").click()
    expect(rows).to_have_count(CROWD + 4)
    expect(page).to_have_url(re.compile("sort=points"))


def test_a_timeline_is_used_with_keys(visit: Open, taught: Taught) -> None:
    person = visit()
    person.sign_in(taught.instructor)
    page = person.go(f"{COURSE}/people/{LONG}/{ATTENTION}")
    expect(page.get_by_role("img", name="3 timed submissions")).to_be_visible()
    by_hand = page.get_by_text("Points by hand", exact=True)
    by_hand.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Points; none takes them back")).to_be_focused()
    changed = page.get_by_text("lines since the attempt before").first
    changed.focus()
    page.keyboard.press("Space")
    listing = page.get_by_label("Changes from").first
    expect(listing).to_be_visible()
    page.keyboard.press("Tab")
    expect(listing).to_be_focused()


def test_an_instructor_extends_gives_points_hides_and_exports(visit: Open, taught: Taught) -> None:
    person = visit()
    person.sign_in(taught.instructor)
    page = person.go(f"{COURSE}/grid?show=stuck")
    page.get_by_role("row", name="eva_stuck").get_by_role("link").click()
    expect(page.get_by_text("Looks stuck:")).to_be_visible()
    page.locator("summary", has_text="Extend").click()
    page.get_by_label("Due (UTC)").fill((now() + timedelta(days=20)).strftime("%Y-%m-%dT%H:%M"))
    page.locator("#why").fill("was ill")
    page.get_by_role("button", name="Extend").click()
    expect(page.locator(".page-head")).to_contain_text("extended")
    page.get_by_text("Points by hand", exact=True).click()
    page.get_by_label("Points; none takes them back").fill("5")
    page.locator("#reason").fill("=shown in the lab")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Given by hand: =shown in the lab.")).to_be_visible()
    page.get_by_text("Judge again, hide").first.click()
    page.get_by_role("button", name="Hide").first.click()
    expect(page.get_by_text("hidden or held")).to_be_visible()
    page = person.go(f"{COURSE}/grid")
    for link, columns in (
        ("Points as CSV", {"handle", "email", "points"}),
        ("Grid as CSV", {"stage", "verdict", "points"}),
    ):
        with page.expect_download() as started:
            page.get_by_role("link", name=link).click()
        rows = list(csv.DictReader(started.value.path().read_text().splitlines()))
        assert columns <= set(rows[0])
        assert not [cell for row in rows for cell in row.values() if cell.startswith(tuple("=+-@\t"))]
    page = person.go(f"{COURSE}/logs/eva_stuck")
    assert page.pdf()[:5] == b"%PDF-"


def test_a_stage_is_looked_at_before_it_is_judged_again_and_its_files_side_by_side(visit: Open, taught: Taught) -> None:
    person = visit()
    person.sign_in(taught.instructor)
    page = person.go(f"{COURSE}/stages/{SOFTMAX}")
    page.get_by_label("Which").select_option("wrong_answer")
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("2 submissions of 2 people would be judged again.")).to_be_visible()
    page.get_by_role("link", name="Leave it").click()
    page.get_by_role("link", name="Similar submissions").click()
    page.get_by_role("link", name="side by side").first.click()
    expect(page.locator(".line.alike").first).to_be_visible()
    expect(page.locator(".side-by-side > section")).to_have_count(2)


def test_a_course_is_made_and_joined_by_its_link(visit: Open, service: Service) -> None:
    teacher, pupil = visit(), visit()
    teacher.sign_in(service.token("greta_makes", Role.INSTRUCTOR))
    page = teacher.go("/courses")
    page.get_by_label("Name in addresses").fill("made-here")
    page.get_by_label("Title").fill("Made in a browser")
    page.get_by_role("button", name="Make the course").click()
    page.get_by_role("link", name="People").click()
    page.get_by_role("button", name="Make the link").click()
    link = page.locator(".copyable pre").inner_text()
    pupil.sign_in(service.token("paul_joins"))
    joined = pupil.page
    joined.goto(link)
    joined.get_by_role("button", name="Join").click()
    expect(joined.get_by_role("heading", name="Made in a browser")).to_be_visible()
    page = teacher.go("/courses/made-here/members")
    expect(page.get_by_role("row", name="paul_joins")).to_contain_text("member")
    page = teacher.go("/courses/made-here")
    page.get_by_label("To everybody in the course").fill("Welcome.")
    page.get_by_role("button", name="Announce").click()
    pupil.go("/stages")
    expect(joined.get_by_role("note")).to_contain_text("Welcome.")
