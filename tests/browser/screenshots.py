"""Takes the pictures of docs/screenshots/ from a running service, in both themes and at both widths.

    python -m tests.browser.screenshots http://127.0.0.1:8000 kg_…

The token is an administrator's. Two shipped files are submitted to `online_softmax`, a wrong one and an honest one, so the
service should be one whose board may show them. Look at what it wrote before you commit it.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import NamedTuple

import httpx
from playwright.sync_api import Browser, sync_playwright

from kernelgate.settings import ROOT
from tests.browser.conftest import HONEST, NAMES, WRONG

FOLDER = ROOT / "docs" / "screenshots"


class Picture(NamedTuple):
    """A page and how it is looked at: the window's width and height in CSS pixels."""

    name: str
    path: str
    theme: str
    width: int
    height: int


def pictures(wrong: str, accepted: str) -> list[Picture]:
    stage = "/stages/online_softmax"
    return [
        Picture("home-light", "/", "light", 1280, 800),
        Picture("home-dark", "/", "dark", 1280, 800),
        Picture("stage-light", stage, "light", 1280, 720),
        Picture("stage-dark", stage, "dark", 1280, 720),
        Picture("stage-phone-dark", stage, "dark", 390, 844),
        Picture("wrong-answer-light", wrong, "light", 1280, 1060),
        Picture("wrong-answer-phone-light", wrong, "light", 390, 844),
        Picture("accepted-dark", accepted, "dark", 1280, 800),
        Picture("leaderboard-dark", "/leaderboard/online_softmax", "dark", 1280, 560),
        Picture("admin-stage-light", f"/admin{stage}", "light", 1280, 720),
    ]


def submit(client: httpx.Client, path: Path) -> str:
    """The address of the graded submission of a shipped file."""
    fields = {"stage": "online_softmax", "wait": "60"}
    answer = client.post("/submit", data=fields, files={"file": ("online_softmax.py", path.read_bytes())})
    answer.raise_for_status()
    return f"/submissions/{answer.json()['id']}"


def take(browser: Browser, url: str, token: str, picture: Picture) -> None:
    viewport = {"width": picture.width, "height": picture.height}
    with browser.new_context(color_scheme=picture.theme, viewport=viewport, reduced_motion="reduce") as context:
        page = context.new_page()
        page.goto(f"{url}/sign-in?next={picture.path}")
        page.get_by_label("Token").fill(token)
        page.get_by_role("main").get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{url}{picture.path}")
        page.wait_for_load_state("networkidle")
        if picture.path.startswith("/stages/") and picture.width > 1180:
            page.locator(".editor .cm-content").wait_for()
        page.screenshot(path=FOLDER / f"{picture.name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    asked = parser.parse_args()
    found = next(path for name in NAMES if (path := shutil.which(name)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with httpx.Client(base_url=asked.url, headers={"authorization": f"Bearer {asked.token}"}, timeout=90) as client:
        wrong, accepted = submit(client, WRONG), submit(client, HONEST)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for picture in pictures(wrong, accepted):
            take(browser, asked.url, asked.token, picture)
        browser.close()


if __name__ == "__main__":
    main()
