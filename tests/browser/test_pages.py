"""Every page at both widths and in both themes: nothing overflows, nothing is out of reach, the policy blocks nothing."""

from __future__ import annotations

import re
from datetime import timedelta

import httpx
import pytest
from playwright.sync_api import expect
from sqlalchemy import create_engine, pool, select
from sqlalchemy.orm import Session

from kernelgate.accounts import create_user
from kernelgate.models import Role, User, WorkerRow, now
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from tests.browser.conftest import AXE, HONEST, VERDICT_MS, WRONG, Open
from tests.browser.gallery import attention, gpu_workers
from tests.browser.gradings import store
from tests.conftest import Service
from tests.pages.samples import wrong_from_row

pytestmark = pytest.mark.browser

OPEN = ("/", "/stages", "/stages/online_softmax", "/stages/online_attention", "/stages/streaming_attention", "/leaderboard",
        "/leaderboard/online_softmax", "/leaderboard/streaming_attention", "/sign-in", "/sign-up", "/nothing",
        "/me/submissions", "/docs", "/docs/measuring", "/docs/submitting")  # fmt: skip
OWN = ("/me/submissions", "/me/tokens", "/people/admin", "/stages/online_softmax/solution")
ADMIN = ("/admin/queue", "/admin/submissions", "/admin/held", "/admin/stages",
         "/admin/stages/online_softmax?preview=1", "/admin/users", "/admin/users/admin",
         "/admin/invites", "/admin/webhooks", "/admin/audit")  # fmt: skip


@pytest.fixture(scope="module")
def graded(service: Service) -> list[str]:
    """The addresses of an accepted and a wrong submission of the administrator, graded by the real worker."""
    found = []
    headers = {"authorization": f"Bearer {service.admin_token}"}
    with httpx.Client(base_url=service.url, headers=headers, timeout=60) as client:
        for path in (HONEST, WRONG):
            fields = {"stage": "online_softmax", "wait": "50"}
            answer = client.post("/submit", data=fields, files={"file": (path.name, path.read_bytes())})
            assert answer.status_code == 200, answer.text
            found.append(f"/submissions/{answer.json()['id']}")
    return found


@pytest.fixture(scope="module")
def measured(service: Service) -> list[str]:
    """A large error map; pages of gradings recorded on a GPU, stored as the administrator's and as those of four others."""
    stages, _ = load_stages(ROOT / "graders")
    engine = create_engine(service.env["KERNELGATE_DATABASE_URL"], poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        root = session.scalars(select(User).where(User.handle == "admin")).one()
        people = [create_user(session, f"measured_{n}", Role.SUBMITTER) for n in range(4)]
        pages = attention(session, stages["online_attention"], root, people)
        session.merge(silent_worker())
        wrong = store(session, root, stages["online_softmax"], wrong_from_row(stages["online_softmax"]), b"", hours=1)
        wrong_page = f"/submissions/{wrong.id}"
    return [wrong_page, pages["accepted"], pages["compared"], "/leaderboard/online_attention"]


def silent_worker() -> WorkerRow:
    """One that reported a GPU yesterday, and whose queue takes no submissions."""
    worker = next(each for each in gpu_workers() if not each.healthy)
    worker.heartbeat_at = now() - timedelta(days=1)
    return worker


@pytest.mark.timeout(400)
@pytest.mark.parametrize("whose", ["open", "own", "administration"])
def test_pages_fit_and_axe_finds_nothing(
    visit: Open, service: Service, graded: list[str], measured: list[str], whose: str
) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: npm ci in web/")
    paths = {"open": OPEN, "own": (*OWN, *graded, f"{graded[1]}/source", *measured), "administration": ADMIN}[whose]
    person = visit()
    if whose != "open":
        person.sign_in(service.admin_token)
    assert [fault for path in paths for fault in person.faults(path)] == []


def test_the_editor_keeps_a_draft_compares_and_resets(visit: Open) -> None:
    person = visit()
    page = person.go("/stages/online_softmax")
    editor = page.locator(".editor .cm-content")
    starter = page.locator("textarea[name=source]").input_value()
    editor.click()
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("# a draft\n")
    expect(page.locator(".bench .status")).to_have_text("Draft kept in this browser")
    page.get_by_label("Compare with").select_option("starter")
    expect(page.locator(".editor .cm-changedLine")).to_contain_text("# a draft")
    page.reload()
    expect(page.locator(".editor .cm-content")).to_contain_text("# a draft")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("textarea[name=source]")).to_have_value(starter)
    expect(page.locator(".editor .cm-content")).not_to_contain_text("# a draft")


def test_what_was_written_before_signing_in_is_there_after_it(visit: Open) -> None:
    """By the button that invites to do so, through making an account and back to the stage."""
    opened = visit()
    page = opened.go("/stages/online_softmax")
    page.locator(".editor .cm-content").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# mine")
    expect(page.locator(".bench .status")).to_have_text("Draft kept in this browser")
    page.get_by_role("link", name="Sign in to submit").click()
    page.get_by_role("link", name="Make an account").click()
    page.get_by_label("Handle").fill("draftsman")
    page.get_by_role("button", name="Make the account").click()
    page.get_by_role("link", name="back to where I was").click()
    expect(page.locator("textarea[name=source]")).to_have_value(re.compile("# mine$"))
    page.locator(".editor .cm-content").click()
    assert page.evaluate("Object.keys(localStorage).filter(key => key.startsWith('draft:'))") == [
        "draft:draftsman:online_softmax"
    ]
    with page.expect_request("**/submit"):
        page.keyboard.press("Control+Enter")
        page.keyboard.press("Control+Enter")
    expect(page.locator("#answer-body")).to_be_visible(timeout=VERDICT_MS)
    expect(opened.go("/me/submissions").locator("tbody tr")).to_have_count(1)


def test_files_that_cannot_be_edited_are_named(visit: Open) -> None:
    page = visit().go("/stages/online_softmax")
    field = page.locator("input[type=file]")
    field.set_input_files({"name": "binary.py", "mimeType": "text/x-python", "buffer": b"\x00\xff\x01"})
    expect(page.locator(".bench .status")).to_contain_text("is not a text file")
    field.set_input_files({"name": "big.py", "mimeType": "text/x-python", "buffer": b"x" * 300_000})
    expect(page.locator(".bench .status")).to_contain_text("at most")


def test_a_file_can_be_dropped(visit: Open) -> None:
    page = visit().go("/stages/online_softmax")
    page.locator(".editor .cm-content").wait_for()
    dropped = page.evaluate_handle(
        "text => { const data = new DataTransfer(); data.items.add(new File([text], 'online_softmax.py')); return data; }",
        HONEST.read_text(),
    )
    page.dispatch_event(".bench", "dragover", {"dataTransfer": dropped})
    page.dispatch_event(".editor .cm-content", "drop", {"dataTransfer": dropped})
    expect(page.locator("textarea[name=source]")).to_have_value(HONEST.read_text())


def test_the_theme_is_kept(visit: Open) -> None:
    person = visit(theme="light")
    page = person.go("/")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    switch = page.get_by_role("button", name="Theme:")
    switch.click()
    switch.click()
    assert page.evaluate(ground) != light
    person.go("/stages")
    assert page.evaluate(ground) != light
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()


def test_answers_are_checked_in_place(visit: Open) -> None:
    page = visit().go("/stages/online_softmax")
    form = page.locator("form[data-index='0']")
    form.get_by_role("textbox").fill("6")
    form.get_by_role("button", name="Check").click()
    expect(form.get_by_role("status")).to_contain_text("Not that")
    form.get_by_role("textbox").fill("5")
    form.get_by_role("button", name="Check").click()
    expect(form.get_by_role("status")).to_contain_text("That is it")
    page.reload()
    expect(page.locator("#done-when li").first).to_have_class("right")


def test_times_are_the_viewers(visit: Open, graded: list[str], service: Service) -> None:
    person = visit()
    person.sign_in(service.admin_token)
    page = person.go(graded[0])
    moment = page.locator("main time").first
    expect(moment).not_to_contain_text("UTC")
    assert "Z)" in (moment.get_attribute("title") or "")


def test_a_wrong_tensor_can_be_pointed_at(visit: Open, graded: list[str], service: Service) -> None:
    person = visit()
    person.sign_in(service.admin_token)
    page = person.go(graded[1])
    page.locator(".error-map image").hover()
    expect(page.locator("[data-under]")).to_contain_text("tolerance")


def test_an_error_map_is_looked_at_closely_with_keys_and_buttons(
    visit: Open, measured: list[str], service: Service
) -> None:
    person = visit()
    person.sign_in(service.admin_token)
    page = person.go(measured[0])
    window, keys = page.locator(".error-map svg.window"), page.keyboard
    whole = str(window.get_attribute("viewBox"))
    page.locator(".error-map .frame").focus()
    keys.press("ArrowDown")
    expect(page.locator("[data-under]")).to_contain_text("tolerance")
    keys.press("+")
    assert window.get_attribute("viewBox") != whole
    keys.press("0")
    assert window.get_attribute("viewBox") == whole
    page.get_by_role("button", name="Zoom to the first wrong cell").click()
    expect(page.locator("[data-under]")).to_contain_text("times the tolerance")


def test_two_submissions_are_picked_and_compared(visit: Open, graded: list[str], service: Service) -> None:
    person = visit()
    person.sign_in(service.admin_token)
    page = person.go("/me/submissions?stage=online_softmax")
    for address in graded:
        page.get_by_label(f"Compare {address.rsplit('/', 1)[1][:8]}").check()
    page.get_by_role("button", name="Compare the two chosen").click()
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    expect(page.locator(".diff-add").first).to_be_visible()


def test_a_place_on_a_board_is_found(visit: Open, measured: list[str], service: Service) -> None:
    person = visit()
    person.sign_in(service.admin_token)
    page = person.go(measured[-1])
    page.get_by_role("link", name="You: ").click()
    expect(page.locator("tr:target")).to_contain_text("admin")
    page.get_by_label("Find a handle").fill("measured_1")
    page.keyboard.press("Enter")
    expect(page.locator(".board tbody tr")).to_have_count(1)


CUT = """
[...document.querySelectorAll("main pre, main .scroll, main .table")].filter(each => each.getClientRects().length
  && (each.scrollHeight > each.clientHeight + 2 && getComputedStyle(each).overflowY !== "visible"
    || each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)).map(each => each.outerHTML.slice(0, 80))
"""
SKIPPED = """
[...document.querySelectorAll(".reading > section, .part")]
  .filter(each => getComputedStyle(each).contentVisibility !== "visible").length
"""
A4_PX = 794


@pytest.mark.parametrize("which", ["graded", "measured"])
def test_evidence_and_tables_are_whole_on_paper(
    visit: Open, service: Service, graded: list[str], measured: list[str], which: str
) -> None:
    person = visit(A4_PX, 1123)
    person.sign_in(service.admin_token)
    page = person.go({"graded": graded[1], "measured": measured[1]}[which])
    page.emulate_media(media="print")
    try:
        assert page.evaluate(CUT) == []
        expect(page.get_by_text("VERDICT", exact=False).first).to_be_visible()
        expect(page.get_by_role("button", name="Copy").first).to_be_hidden()
        expect(page.get_by_role("link", name="Edit and submit again")).to_be_hidden()
    finally:
        page.emulate_media(media="screen")


def test_a_lesson_is_whole_on_paper_and_its_figures_are_dark_in_the_dark(visit: Open) -> None:
    page = visit(A4_PX, 1123, theme="dark").go("/stages/online_softmax")
    looks = "getComputedStyle(document.querySelector('.lesson .figure')).filter"
    assert "invert" in page.evaluate(looks)
    page.emulate_media(media="print")
    try:
        assert page.evaluate(CUT) == []
        assert page.evaluate(SKIPPED) == 0
        assert page.evaluate(looks) == "none"
    finally:
        page.emulate_media(media="screen")
