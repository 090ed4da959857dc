"""People: signing up and in with a password, with a provider on another site, by keys and without a script; their own page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from api.app import create_app
from kernelgate.db import engine
from kernelgate.settings import settings
from tests.api.conftest import running
from tests.api.provider import CLIENT, serving
from tests.browser.conftest import AXE, Open, Visit
from tests.conftest import Service

pytestmark = pytest.mark.browser
STAGE = "/stages/online_softmax"
PASSWORD = "correct horse battery"


@pytest.mark.parametrize(("width", "script"), [(1440, True), (390, False)])
def test_a_person_signs_up_out_and_in_again_and_shows_a_page(visit: Open, width: int, script: bool) -> None:
    handle = f"person{width}"
    person = visit(width, 844, theme="light" if script else "dark", script=script)
    page = person.go(STAGE)
    page.get_by_role("link", name="Sign in to submit").click()
    page.get_by_role("link", name="Make an account").click()
    page.get_by_label("Handle").fill(handle)
    page.get_by_label("Password").fill("short")
    if not script:  # with one, the browser itself says what is wrong
        page.get_by_label("Password").evaluate("field => field.removeAttribute('minlength')")
        page.get_by_role("button", name="Make the account").click()
        expect(page.get_by_role("alert")).to_contain_text("10 to 200 are accepted")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    page.wait_for_url("**" + STAGE)
    page.get_by_role("button", name="Sign out").click()
    person.go(f"/sign-in?next={STAGE}")
    expect(page.get_by_label("Handle")).to_be_focused()
    page.keyboard.insert_text(handle)
    page.keyboard.press("Tab")
    page.keyboard.insert_text(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**" + STAGE)
    page.get_by_role("link", name=handle).click()
    expect(page.get_by_role("heading", name="Signing in")).to_be_visible()
    page.get_by_role("link", name=handle).last.click()
    page.get_by_role("button", name="Make the page public").click()
    expect(page.get_by_role("note")).to_contain_text(f"/people/{handle}")
    assert person.overflow() == 0
    if AXE.is_file() and script:
        assert person.violations() == []
    stranger = visit(width)
    stranger.go(f"/people/{handle}")
    expect(stranger.page.get_by_role("heading", name=handle)).to_be_visible()


@pytest.mark.parametrize(("width", "script"), [(1440, True), (390, False)])
def test_an_administrators_link_leads_back_to_an_account(
    visit: Open, service: Service, width: int, script: bool
) -> None:
    handle = f"forgetful{width}"
    service.token(handle)
    headers = {"authorization": f"Bearer {service.admin_token}"}
    made = httpx.post(f"{service.url}/admin/users/{handle}/recovery", headers=headers)
    assert made.status_code == 201, made.text
    person = visit(width, 844, theme="light" if script else "dark", script=script)
    page = person.go(made.json()["url"].removeprefix(service.url))
    expect(page.get_by_role("main")).to_contain_text(handle)
    assert person.overflow() == 0
    if AXE.is_file() and script:
        assert person.violations() == []
    page.get_by_label("password").focus()
    page.keyboard.insert_text(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=handle)).to_be_visible()
    person.go(made.json()["url"].removeprefix(service.url))
    expect(page.get_by_role("main")).to_contain_text("link")
    expect(page.get_by_label("password")).to_have_count(0)


@pytest.fixture
def campus(monkeypatch: pytest.MonkeyPatch, database: str) -> Iterator[str]:  # noqa: ARG001
    """A service whose people sign in with a provider; the two are at different sites to a browser."""
    with ExitStack() as stack:
        named = {"issuer": stack.enter_context(serving()), "client_id": CLIENT[0], "client_secret": CLIENT[1]}
        for name, value in {**named, "name": "the campus account", "accounts": "true"}.items():
            monkeypatch.setenv(f"KERNELGATE_OIDC_{name.upper()}", value)
        settings.cache_clear()
        yield stack.enter_context(running(create_app())).replace("127.0.0.1", "localhost")
        engine().dispose()


def through_the_provider(page: Page, name: str) -> None:
    page.locator("input[name=login]").fill(name)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.locator("button[type=submit]").click()


@pytest.mark.parametrize("script", [True, False])
def test_a_person_signs_in_with_a_provider_of_another_site(chromium: Browser, campus: str, script: bool) -> None:
    person = Visit(chromium, campus, script=script)
    person.begin(1440 if script else 390, 900, "dark" if script else "light")
    page = person.go("/sign-in?next=/leaderboard")
    if AXE.is_file() and script:
        assert person.violations() == []
    assert person.overflow() == 0
    page.get_by_role("link", name="Sign in with the campus account").click()
    through_the_provider(page, "grace")
    expect(page.get_by_role("main")).to_contain_text("grace@uni.example")
    expect(page.get_by_label("Handle")).to_have_value("grace")
    if AXE.is_file() and script:
        assert person.violations() == []
    page.get_by_label("Handle").fill("hopper")
    page.get_by_role("button", name="Make the account").click()
    page.wait_for_url(f"{campus}/leaderboard")
    expect(page.get_by_role("link", name="hopper")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    person.go("/sign-in").get_by_role("link", name="Sign in with the campus account").click()
    page.locator("button[type=submit]").click()  # it knows who is there by now, and asks whether to go on
    expect(page.get_by_role("link", name="hopper")).to_be_visible()
    assert [each for each in person.end() if campus in each] == []
    person.context.close()
