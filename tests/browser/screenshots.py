"""Takes the pictures of docs/screenshots/: every page, in both themes, some at a phone's width.

    python -m tests.browser.screenshots            # --only home --only wrong for some of them

They show a service of its own (tests/browser/gallery.py) whose timed results are gradings recorded on an H200. Look at what it
wrote before you commit it.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from kernelgate.settings import ROOT
from tests.browser import palette
from tests.browser.conftest import NAMES
from tests.browser.gallery import Gallery, gallery

FOLDER = ROOT / "docs" / "screenshots"
SOFTMAX, ATTENTION, STREAMING = "/stages/online_softmax", "/stages/online_attention", "/stages/streaming_attention"
STRANGERS = {"sign-in": "/sign-in", "sign-up": "/sign-up", "not-found": "/nothing"}
PAGES = {
    "home": "/", "stages": "/stages", "stage": SOFTMAX, "stage-cuda": ATTENTION, "stage-triton": STREAMING,
    "leaderboards": "/leaderboard", "leaderboard": "/leaderboard/online_attention",
    "leaderboard-values": "/leaderboard/online_softmax",
    "mine": "/me/submissions", "account": "/me/tokens", "docs": "/docs/measuring", "admin-queue": "/admin/queue",
    "admin-held": "/admin/held", "admin-submissions": "/admin/submissions",
    "admin-stages": "/admin/stages", "admin-stage": f"/admin{SOFTMAX}?preview=1",
    "admin-users": "/admin/users", "admin-user": "/admin/users/ada", "admin-invites": "/admin/invites",
    "admin-audit": "/admin/audit",
}  # fmt: skip
ON_A_PHONE = ("home", "stage", "wrong", "accepted", "leaderboard", "mine", "running")
HEIGHTS = {
    "wrong": 1180,
    "accepted": 1400,
    "wrong-triton": 1180,
    "admin-queue": 900,
    "leaderboard": 1000,
    "admin-stage": 980,
    "correct": 900,
}


class Picture(NamedTuple):
    """A page and how it is looked at: the window's width and height in CSS pixels."""

    name: str
    path: str
    theme: str
    width: int
    height: int


def pictures(found: Gallery) -> Iterator[Picture]:
    pages = {**STRANGERS, **PAGES, **found.pages}
    for theme in ("light", "dark"):
        for name, path in pages.items():
            yield Picture(f"{name}-{theme}", path, theme, 1280, HEIGHTS.get(name, 800))
        for name in ON_A_PHONE:
            yield Picture(f"{name}-phone-{theme}", pages[name], theme, 390, 844)


def sign_in(context: BrowserContext, found: Gallery) -> Page:
    page = context.new_page()
    page.goto(f"{found.url}/sign-in")
    page.get_by_text("With a token").click()
    page.get_by_label("Token").fill(found.token)
    page.get_by_role("button", name="Use the token").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def take(page: Page, blank: Page, url: str, picture: Picture) -> None:
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.emulate_media(color_scheme="dark" if picture.theme == "dark" else "light")
    page.goto(url + picture.path)
    page.wait_for_timeout(300)  # what a page fetches once it stands: the figure, the error map
    if picture.path.startswith("/stages/") and picture.width > 1180:
        page.locator(".editor .cm-content").wait_for()
    palette.write(blank, page.screenshot(), FOLDER / f"{picture.name}.png")


def take_all(browser: Browser, found: Gallery, only: list[str]) -> None:
    with browser.new_context(reduced_motion="reduce") as signed_in, browser.new_context() as nobody:
        page, stranger, blank = sign_in(signed_in, found), nobody.new_page(), nobody.new_page()
        for picture in pictures(found):
            if only and not any(picture.name.startswith(name) for name in only):
                continue
            take(stranger if picture.path in STRANGERS.values() else page, blank, found.url, picture)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="pictures whose name begins so")
    only = parser.parse_args().only
    chromium = next(path for name in NAMES if (path := shutil.which(name)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with gallery(worker=False) as found, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        take_all(browser, found, only)
        browser.close()


if __name__ == "__main__":
    main()
