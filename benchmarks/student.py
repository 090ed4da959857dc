"""How long somebody waits who works on a stage: its page, a run of the hand-sized case, the first mark at a wrong line.

    .venv/bin/python -m benchmarks.student [--opens N] [--tries N]

Starts a service of its own with a worker and what a term leaves behind, and opens its pages in a real chromium. Prints a table
and writes it to `benchmarks/results/student.md`, with the load of the machine: on a busy one the figures are upper bounds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.processors import settled
from kernelgate.settings import ROOT
from tests.browser.gallery import gallery
from worker.judging.machine import facts

STAGE = "online_softmax"
WRONG = ROOT / "graders" / STAGE / "submissions" / "wrong_answer" / "alpha_missing_on_normalizer.py"
RAISES = (
    "import torch\n\n\ndef online_softmax_update(row_max, normalizer, numerator, scores, values):\n    return missing\n"
)
ASKED = {
    "stage page, load event": 300.0,
    "stage page, first content": 300.0,
    "run of the hand case: answer beside the code": 2000.0,
    "wrong PyTorch file: first mark in the gutter": 3000.0,
}
"""Milliseconds that are asked for, on a quiet machine."""
_PAINT = """(async () => {
  const painted = () => performance.getEntriesByName('first-contentful-paint')[0];
  while (!painted()) await new Promise((next) => setTimeout(next, 20));
  return painted().startTime;
})()"""
_LOAD = "performance.getEntriesByType('navigation')[0].loadEventEnd"


@contextmanager
def browser_page(url: str, token: str) -> Iterator[Page]:
    """A page of a browser that is signed in."""
    chromium = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(f"{url}/sign-in")
        page.get_by_text("With a token").click()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Use the token").click()
        page.get_by_role("button", name="Sign out").wait_for()
        yield page
        browser.close()


def measured(page: Page, url: str, opens: int, tries: int) -> dict[str, list[float]]:
    """Milliseconds of each try. The first run waits until the worker is ready, and is not counted."""
    page.goto(f"{url}/stages/{STAGE}")
    write(page, RAISES)
    page.keyboard.press("Control+Shift+Enter")
    page.locator(".cm-lint-marker-error").first.wait_for(timeout=300_000)
    found: dict[str, list[float]] = {name: [] for name in ASKED}
    for _ in range(opens):
        # From where students come: chromium gives an empty page a process of its own.
        page.goto(f"{url}/stages", wait_until="load")
        settled()
        page.goto(f"{url}/stages/{STAGE}", wait_until="load")
        found["stage page, load event"].append(page.evaluate(_LOAD))
        found["stage page, first content"].append(page.evaluate(_PAINT))
    for name, source, sign in (
        ("run of the hand case: answer beside the code", WRONG.read_text(), "#answer .outcome .verdict"),
        ("wrong PyTorch file: first mark in the gutter", RAISES, ".cm-lint-marker-error"),
    ):
        for number in range(tries):
            page.goto(f"{url}/stages/{STAGE}")
            write(page, f"{source}# {number}\n")
            expect(page.locator(sign)).to_have_count(0)
            begun = time.perf_counter()
            page.keyboard.press("Control+Shift+Enter")
            page.locator(sign).first.wait_for(timeout=60_000)
            found[name].append(1000 * (time.perf_counter() - begun))
    return found


def write(page: Page, text: str) -> None:
    page.locator(".editor .cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.press("Backspace")
    page.keyboard.insert_text(text)
    expect(page.locator(".bench .status")).to_have_text("Draft kept in this browser")


def table(found: dict[str, list[float]], load: tuple[float, float]) -> str:
    machine = ", ".join(f"{name} {value}" for name, value in facts().items())
    rows = [
        f"| {name} | {statistics.median(times):.0f} | {min(times):.0f} to {max(times):.0f} | {len(times)} | {ASKED[name]:.0f} |"
        for name, times in found.items()
    ]
    return "\n".join(
        (
            "# What a student waits for",
            "",
            "Written by `python -m benchmarks.student`: chromium and a worker on one machine, stage `online_softmax`.",
            f"Load average {load[0]:.1f} before, {load[1]:.1f} after, {os.cpu_count()} cores; {machine}.",
            "",
            "| | median, ms | range | times | asked for, on a quiet machine |",
            "|---|---|---|---|---|",
            *rows,
            "",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Times what a student waits for.")
    parser.add_argument("--opens", type=int, default=9)
    parser.add_argument("--tries", type=int, default=5)
    stated = parser.parse_args()
    before = os.getloadavg()[0]
    with gallery(worker=True) as served, browser_page(served.url, served.token) as page:
        found = measured(page, served.url, stated.opens, stated.tries)
    text = table(found, (before, os.getloadavg()[0]))
    (ROOT / "benchmarks" / "results" / "student.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
