"""From nothing to a place on the leaderboard: with a mouse, without a script, and with the keyboard alone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import HONEST, VERDICT_MS, WRONG, Open, choose
from tests.conftest import Service

pytestmark = pytest.mark.browser


def same_document(page: Page) -> bool:
    return bool(page.evaluate("window.stayed === true"))


def test_sign_up_submit_and_watch_the_verdict_arrive(visit: Open) -> None:
    watcher = visit().go("/leaderboard/online_softmax")
    watcher.evaluate("window.stayed = true")

    page = visit().go("/sign-up")
    page.get_by_label("Handle").fill("grace")
    page.get_by_role("button", name="Make the account").click()
    expect(page.get_by_role("heading", name="Welcome, grace")).to_be_visible()
    page.get_by_role("link", name="show me the stages").click()
    page.locator('a.stage-card[href="/stages/online_softmax"]').click()

    choose(page, WRONG)
    expect(page.locator(".bench .status")).to_contain_text("is in the editor")
    page.evaluate("window.stayed = true")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("#answer .outcome .verdict")).to_contain_text("Wrong answer", timeout=VERDICT_MS)
    assert same_document(page), "the verdict came by a reload"
    expect(page.get_by_role("heading", name="This looks like")).to_be_visible()
    expect(page.locator("#announcer")).to_have_text("Wrong answer")
    assert page.title().startswith("Wrong answer")
    expect(page.locator("#numbers-title")).to_contain_text("checked by hand")

    page.get_by_role("link", name="Its own page").click()
    tried = page.url.rsplit("/", 1)[1]
    page.get_by_role("link", name="Edit and submit again").click()
    expect(page.locator("textarea[name=source]")).to_have_value(WRONG.read_text())
    expect(page.locator("#answer").get_by_role("heading", name="This looks like")).to_be_visible()
    choose(page, HONEST)
    expect(page.locator(".bench .status")).to_contain_text("is in the editor")
    page.get_by_label("Compare with").select_option(tried)
    expect(page.locator(".editor .cm-changedLine").first).to_be_visible()
    page.get_by_role("button", name="Submit").click()
    expect(page.locator("#answer .outcome .verdict")).to_contain_text("Accepted", timeout=VERDICT_MS)
    for place in ("#best-so-far", "#last-try"):
        expect(page.locator(place)).to_contain_text("Accepted")
    expect(page.locator(".case.right").first).to_be_visible()
    expect(page.locator(".since")).to_contain_text("right now")

    expect(watcher.locator("#board")).to_contain_text("grace", timeout=15_000)
    assert same_document(watcher), "the board changed by a reload"


def test_without_a_script_everything_needed_works(visit: Open, service: Service) -> None:
    person = visit(width=390, height=844, script=False)
    person.sign_in(service.token("noscript"))
    page = person.go("/stages/online_softmax")
    expect(page.get_by_role("button", name="Reset")).to_be_hidden()
    choose(page, HONEST)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**/submissions/*")
    expect(page.locator(".outcome .verdict")).to_contain_text("Accepted", timeout=VERDICT_MS)
    page.get_by_role("link", name="My submissions").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.goto(person.url + "/leaderboard/online_softmax")
    expect(page.get_by_role("main")).to_contain_text("noscript")


def test_the_keyboard_is_enough(visit: Open, service: Service) -> None:
    person = visit()
    page, keys = person.page, person.page.keyboard

    def reach(name: str) -> None:
        """Presses Tab until what has the focus is called `name`."""
        for _ in range(60):
            if page.evaluate("document.activeElement.closest('.editor') !== null"):
                keys.press("Escape")  # the first one may have closed a list of completions
            keys.press("Tab")
            called = page.evaluate(
                "(e => e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || '')(document.activeElement)"
            )
            if name in called:
                return
        raise AssertionError(f"{name} cannot be reached with Tab on {page.url}")

    person.go("/sign-in?next=/stages/online_softmax")
    expect(page.get_by_label("Handle")).to_be_focused()
    reach("With a token")
    keys.press("Enter")
    keys.press("Tab")
    expect(page.get_by_label("Token")).to_be_focused()
    keys.insert_text(service.token("keys"))
    keys.press("Enter")
    page.wait_for_url("**/stages/online_softmax")
    page.locator(".editor").wait_for()
    keys.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    for _ in range(80):
        keys.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('editor')"):
            break
    keys.press("Control+A")
    keys.press("Backspace")
    keys.insert_text(HONEST.read_text())
    keys.press("Escape")
    reach("Submit")
    keys.press("Enter")
    expect(page.locator(".outcome .verdict")).to_contain_text("Accepted", timeout=VERDICT_MS)
