"""A wrong file of the CUDA capstone in the browser, graded by the running service on a machine without a GPU."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from kernelgate.settings import ROOT
from kernelgate.stages import Backend
from tests.browser.conftest import Open, choose
from tests.conftest import Service
from worker import backends
from worker.emulator.toolchain import toolchain

FOLDER = ROOT / "graders" / "online_attention" / "submissions"
GRADING_MS = 180_000
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module", autouse=True)
def emulated() -> None:
    """Skips where the service would grade on a GPU, or not at all; builds the emulator before somebody waits for it."""
    missing = backends.missing()
    if Backend.GPU not in missing:
        pytest.skip("this machine has a GPU: the service grades on that")
    if Backend.EMULATOR in missing:
        pytest.skip(missing[Backend.EMULATOR])
    toolchain()


def test_a_wrong_file_is_told_what_is_wrong_and_what_was_not_judged(visit: Open, service: Service) -> None:
    person = visit()
    person.sign_in(service.token("cuda-in-the-browser"))
    page = person.go("/stages/online_attention")
    choose(page, FOLDER / "wrong_answer" / "diagonal_excluded.cu")
    expect(page.locator(".bench .status")).to_contain_text("is in the editor")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".outcome .verdict")).to_contain_text("Wrong answer", timeout=GRADING_MS)
    own_page = page.get_by_role("link", name="Its own page")
    if own_page.count():  # not where the answer could not be shown beside the editor, and its page was opened
        own_page.click()
    page.wait_for_url("**/submissions/*")
    expect(page.get_by_role("heading", name="This looks like: A token does not see itself")).to_be_visible()
    expect(page.get_by_role("heading", name="The earliest wrong tensor: out")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("In case 1 token, element")
    expect(page.get_by_role("heading", name="An emulated run: CUDA C++ on a CPU")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("emulated: speed not judged on this machine")
