"""A contest that is revealed step by step, a comment that is answered, a question that all read: their pages, and their use."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pytest
from playwright.sync_api import expect
from sqlalchemy import create_engine, pool
from sqlalchemy.orm import Session

from kernelgate.accounts import create_token, create_user
from kernelgate.contests import Contest
from kernelgate.models import Course, CourseRole, CourseStage, Member, Role, now
from kernelgate.outbox import Delivery, Webhook
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from kernelgate.talk import Comment, Question
from tests.browser.conftest import AXE, Open
from tests.browser.gradings import store
from tests.conftest import Service
from tests.pages import samples

pytestmark = pytest.mark.browser

NAME, SOFTMAX = "final-browser", "online_softmax"
COURSE, BOARD = f"/courses/{NAME}", f"/contests/{NAME}"


class Desk(NamedTuple):
    """Tokens, and a submission of ada's with a comment on it."""

    ines: str
    ada: str
    bob: str
    said: str


@pytest.fixture(scope="module")
def desk(service: Service) -> Desk:
    stages, _ = load_stages(ROOT / "graders")
    engine = create_engine(service.env["KERNELGATE_DATABASE_URL"], poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        ines = create_user(session, "ines_referees", Role.INSTRUCTOR)
        people = [create_user(session, handle) for handle in ("ada_competes", "bob_competes", "eva_competes")]
        course = Course(name=NAME, title="The final of spring", late_days=0)
        session.add(course)
        session.flush()
        session.add(Member(course_id=course.id, user_id=ines.id, role=CourseRole.INSTRUCTOR))
        session.add_all(Member(course_id=course.id, user_id=user.id) for user in people)
        session.add(CourseStage(course_id=course.id, stage=SOFTMAX, points=10))
        begun = now() - timedelta(hours=10)
        session.add(
            Contest(
                course_id=course.id, starts_at=begun, ends_at=begun + timedelta(hours=5),
                freezes_at=begun + timedelta(hours=4), public=True, revealed=0,
            )
        )  # fmt: skip
        stage = stages[SOFTMAX]
        text = (stage.folder / "solution" / stage.spec.file).read_bytes()
        wrong, right = samples.wrong_from_row(stage), samples.accepted(stage)
        said = store(session, people[0], stage, right, text, hours=9)
        for user, result, hours in ((people[1], wrong, 8.5), (people[1], right, 5.5), (people[2], wrong, 5.4)):
            store(session, user, stage, result, text, hours=hours)
        session.add(Comment(submission_id=said.id, line=3, user_id=ines.id, text="Why a copy here, and not in place?"))
        asked = {"course_id": course.id, "user_id": people[0].id}
        session.add(Question(**asked, stage=SOFTMAX, text="May rows be empty?", to_all=False))
        hook = Webhook(
            course_id=course.id, url="https://chat.uni.example/hooks/final", secret="s", created_by="ines_referees",
            events=["first_accepted", "record"], failures=1,
        )  # fmt: skip
        session.add(hook)
        session.flush()
        later = now() + timedelta(hours=2)
        session.add(
            Delivery(webhook_id=hook.id, event="record", body={}, tries=2, answer="answered 503", next_at=later)
        )
        tokens = [create_token(session, user, days=1)[1] for user in (ines, *people[:2])]
        return Desk(*tokens, said.id)


@pytest.mark.timeout(400)
def test_the_pages_fit_and_axe_finds_nothing(visit: Open, desk: Desk) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in web/")
    person = visit()
    found = person.faults(BOARD)
    person.sign_in(desk.ines)
    paths = ("/contest", "/questions", "/webhooks")
    found += [fault for path in paths for fault in person.faults(COURSE + path)]
    found += person.faults(f"/submissions/{desk.said}/source")
    assert found == []


def test_a_contest_is_revealed_from_the_last_place_upwards(visit: Open, desk: Desk) -> None:
    outside, staff = visit(), visit()
    rows = outside.go(BOARD).locator(".contest-board tbody tr")
    expect(rows.nth(1)).to_contain_text("? 1")
    staff.sign_in(desk.ines)
    page = staff.go(BOARD)
    for left in ("bob_competes", None):
        page.get_by_role("button", name="Reveal the next").click()
        if left is not None:
            expect(page.get_by_text("Revealed last")).to_be_visible()
    expect(page.get_by_text("over since")).to_be_visible()
    expect(outside.go(BOARD).locator(".contest-board tbody tr").nth(1)).to_contain_text("bob_competes")


def test_a_comment_is_answered_and_a_question_read_by_all(visit: Open, desk: Desk) -> None:
    ada, ines, bob = visit(), visit(), visit()
    ada.sign_in(desk.ada)
    page = ada.go("/stages")
    page.get_by_role("note").get_by_role("link").click()
    expect(page.locator("#L3 + .said")).to_contain_text("Why a copy here")
    page.get_by_label("Line; empty").fill("3")
    page.get_by_label("Answer or ask").fill("It is read again below.")
    page.get_by_role("button", name="Say it").click()
    expect(page.locator(".said")).to_have_count(2)
    ines.sign_in(desk.ines)
    page = ines.go(f"{COURSE}/questions")
    expect(page.get_by_text("Comments of members that nobody has seen")).to_be_visible()
    page.get_by_label("Answer", exact=True).fill("They may; the sum is then 0.")
    page.get_by_label("to all of the course").check()
    page.get_by_role("button", name="Answer", exact=True).click()
    bob.sign_in(desk.bob)
    page = bob.go(f"{COURSE}/questions")
    expect(page.get_by_text("They may; the sum is then 0.")).to_be_visible()
    expect(page.get_by_text("ada_competes")).to_have_count(0)
