"""The place to work: run, submit, and read the answer beside the code; nothing that was typed is lost."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import AXE, HONEST, VERDICT_MS, WRONG, Open, choose
from tests.conftest import Service

pytestmark = pytest.mark.browser

STAGE = "/stages/online_softmax"
RAISES = (
    "import torch\n\n\ndef online_softmax_update(row_max, normalizer, numerator, scores, values):\n    return missing\n"
)


def write(page: Page, text: str) -> None:
    """Into the editor, as somebody does who pastes."""
    page.locator(".editor .cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Backspace")
    page.keyboard.insert_text(text)


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_a_run_shows_its_numbers_and_takes_others(
    visit: Open, service: Service, width: int, theme: Literal["light", "dark"]
) -> None:
    person = visit(width, 900, theme=theme)
    person.sign_in(service.token(f"runner{width}"))
    page = person.go(STAGE)
    choose(page, WRONG)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#answer .outcome .verdict")).to_have_text(re.compile("Wrong answer"), timeout=VERDICT_MS)
    expect(page.get_by_role("heading", name="Run ")).to_be_visible()
    assert page.locator(".cells td.error").count() == 1
    page.get_by_role("button", name="Change them and run").click()
    own = page.get_by_label("Values of the case’s inputs, as JSON")
    expect(own).to_have_value(re.compile('"row_max": \\['))
    own.fill('{"row_max": [9, 9]}')
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#answer .outcome .verdict")).to_have_text(re.compile("This case is right"), timeout=VERDICT_MS)
    expect(page.locator(".array").first).to_contain_text("9")
    expect(page.locator(".since")).to_contain_text("1 case right now")
    assert person.overflow() == 0
    if AXE.is_file():
        assert person.violations() == []
    person.go("/me/submissions")
    expect(page.get_by_role("main")).to_contain_text("Nothing submitted yet")


def test_lines_are_marked_where_they_are_by_now_and_led_to(visit: Open, service: Service) -> None:
    person = visit()
    person.sign_in(service.token("marked"))
    page = person.go(STAGE)
    write(page, RAISES)
    page.keyboard.press("Control+Shift+Enter")
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("# a line above\n")
    expect(page.locator("#answer .outcome .verdict")).to_contain_text("Runtime error", timeout=VERDICT_MS)
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    page.get_by_role("link", name="line 5").first.click()
    expect(page.locator(".cm-activeLine")).to_have_text("    return missing")


def test_on_a_phone_code_and_answer_are_tabs(visit: Open, service: Service) -> None:
    person = visit(390, 844)
    person.sign_in(service.token("phone"))
    page = person.go(STAGE)
    choose(page, WRONG)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#answer-body")).to_be_visible(timeout=VERDICT_MS)
    expect(page.locator("#submit")).to_be_hidden()
    page.get_by_role("button", name="Code").click()
    expect(page.locator("#answer")).to_be_hidden()
    expect(page.locator(".editor")).to_be_visible()
    expect(page.locator("#last-try")).to_contain_text("Wrong answer", timeout=VERDICT_MS)
    page.get_by_role("link", name="Why").click()
    expect(page.locator("#answer .outcome")).to_be_visible()
    page.get_by_role("button", name="Lesson").click()
    expect(page.locator("#lesson")).to_be_visible()


def test_without_a_script_a_run_has_a_page_and_a_way_back_with_the_answer(visit: Open, service: Service) -> None:
    person = visit(script=False)
    person.sign_in(service.token("runs-plain"))
    page = person.go(STAGE)
    page.locator("textarea[name=source]").fill(WRONG.read_text())
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_url("**/submissions/*")
    expect(page.get_by_role("heading", name="Run of one case")).to_be_visible()
    expect(page.locator(".outcome .verdict")).to_contain_text("Wrong answer", timeout=VERDICT_MS)
    page.get_by_role("link", name="Edit and submit again").click()
    expect(page.locator("textarea[name=source]")).to_have_value(WRONG.read_text())
    expect(page.locator("#answer").get_by_role("heading", name="This looks like")).to_be_visible()
    expect(page.locator("#lesson")).to_be_visible()


def test_what_was_made_of_a_submission_is_there_after_a_reload(visit: Open, service: Service) -> None:
    person = visit()
    person.sign_in(service.token("goes-on"))
    page = person.go(STAGE)
    choose(page, HONEST)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#answer .outcome .verdict")).to_contain_text("This case is right", timeout=VERDICT_MS)
    made = page.url.rsplit("=", 1)[1]
    page.goto(f"{person.url}{STAGE}?from={made}#submit")
    write(page, "# further\n")
    expect(page.locator(".bench .status")).to_have_text("Draft kept in this browser")
    page.reload()
    expect(page.locator("textarea[name=source]")).to_have_value("# further\n")
    expect(page.locator("#answer .outcome .verdict")).to_contain_text("This case is right")


def test_two_tabs_keep_what_was_typed_in_each(visit: Open, service: Service) -> None:
    person = visit()
    person.sign_in(service.token("tabs"))
    page = person.go(STAGE)
    other = person.context.new_page()
    other.goto(person.url + STAGE)
    for tab, text in ((page, "# the first\n"), (other, "# the second\n")):
        tab.bring_to_front()
        write(tab, text)
        expect(tab.locator(".bench .status")).to_have_text("Draft kept in this browser")
    for tab, text in ((page, "# the first\n"), (other, "# the second\n")):
        tab.reload()
        expect(tab.locator("textarea[name=source]")).to_have_value(text)
    other.close()


def test_a_session_that_ended_says_so_and_loses_nothing(visit: Open, service: Service) -> None:
    person = visit()
    token = service.token("expired")
    person.sign_in(token)
    page = person.go(STAGE)
    write(page, HONEST.read_text())
    person.context.clear_cookies()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".bench .status")).to_contain_text("You are signed out by now.")
    page.get_by_role("link", name="Sign in again").click()
    page.get_by_text("With a token").click()
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Use the token").click()
    page.wait_for_url("**" + STAGE)
    expect(page.locator("textarea[name=source]")).to_have_value(HONEST.read_text())
