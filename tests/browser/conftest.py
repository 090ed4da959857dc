"""A real chromium against the running product: the service's own worker grades what these tests submit."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from kernelgate.settings import ROOT
from tests.conftest import Service

NAMES = ("chromium", "chromium-browser", "google-chrome")
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
STAGE = ROOT / "graders" / "online_softmax"
HONEST = STAGE / "submissions" / "accepted" / "einsum_and_where.py"
WRONG = STAGE / "submissions" / "wrong_answer" / "alpha_missing_on_normalizer.py"
VERDICT_MS = 30_000
PATIENCE_MS = 15_000
"""How long something is waited for that is under way already, on a machine that does much else."""
expect.set_options(timeout=PATIENCE_MS)
LOOKS: tuple[tuple[int, Literal["light", "dark"]], ...] = ((1440, "light"), (390, "dark"))
"""How every page is looked at: its document is the same in all, what fits depends on the width, contrast on the theme."""
_REFUSED = re.compile(r"the server responded with a status of 4\d\d")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed")
    if not (ROOT / "web" / "static" / "build" / "manifest.json").is_file():
        pytest.skip("the pages are not bundled: make web")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Visit:
    """A browser of one person. Whatever its console complains about fails the test: errors, blocked styles and scripts.

    A window of its own for each test would cost more than a second of CPU: a visit that has ended leaves its window empty, with
    neither cookies nor anything stored, and the next one moves in.
    """

    def __init__(self, chromium: Browser, url: str, *, script: bool) -> None:
        self.url = url
        self.script = script
        self.complaints: list[str] = []
        self.context = chromium.new_context(java_script_enabled=script, reduced_motion="reduce")
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(f"{self.page.url}: {error}"))

    def begin(self, width: int, height: int, theme: Literal["light", "dark"]) -> None:
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=theme)

    def end(self) -> list[str]:
        """Forgets the person. Returns the complaints."""
        found, self.complaints = self.complaints, []
        if self.page.url.startswith(self.url):
            self.page.evaluate("sessionStorage.clear()")
        self.page.goto("about:blank")
        self.context.clear_cookies()
        inside = self.context.new_cdp_session(self.page)
        inside.send("Storage.clearDataForOrigin", {"origin": self.url, "storageTypes": "local_storage"})
        inside.detach()
        return found

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning") and not _REFUSED.search(message.text):
            self.complaints.append(f"{self.page.url}: {message.text}")

    def go(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def sign_in(self, token: str) -> None:
        page = self.go("/sign-in")
        page.get_by_text("With a token").click()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Use the token").click()
        expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    def overflow(self) -> int:
        """CSS pixels that the page is wider than the window; it must be 0: only tables and code scroll sideways."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def faults(self, path: str) -> list[str]:
        """What is wrong with a page in each of the LOOKS: that it does not fit, and what axe finds. It is opened once."""
        found = []
        for width, theme in LOOKS:
            self.begin(width, 900, theme)
            if width == LOOKS[0][0]:
                self.go(path)
                if path.startswith("/stages/") and not path.endswith("/solution"):
                    self.page.locator("#submit").scroll_into_view_if_needed()
                    self.page.locator(".editor .cm-content").wait_for()
            if over := self.overflow():
                found.append(f"{path} is {over} px wider than {width} px")
            found += [f"{theme}, {width} px: {each}" for each in self.violations()]
        return found

    def violations(self) -> list[str]:
        """What axe finds on the page as it is now."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("async () => (await axe.run(document, {resultTypes: ['violations']})).violations")
        return [f"{self.page.url} {each['id']}: {[node['target'] for node in each['nodes'][:3]]}" for each in found]


Open = Callable[..., Visit]


@pytest.fixture(scope="session")
def windows() -> list[Visit]:
    """Those that nobody looks at."""
    return []


@pytest.fixture
def visit(chromium: Browser, service: Service, windows: list[Visit]) -> Iterator[Open]:
    """Opens a browser; what it complained about fails the test at its end."""
    opened: list[Visit] = []

    def open_one(
        width: int = 1440, height: int = 900, *, theme: Literal["light", "dark"] = "light", script: bool = True
    ) -> Visit:
        free = next((each for each in windows if each.script is script), None)
        if free is None:
            free = Visit(chromium, service.url, script=script)
        else:
            windows.remove(free)
        opened.append(free)
        free.begin(width, height, theme)
        return free

    yield open_one
    complaints = [complaint for each in opened for complaint in each.end()]
    windows += opened
    assert complaints == []


def choose(page: Page, path: Path) -> None:
    page.locator("input[type=file]").set_input_files(path)
