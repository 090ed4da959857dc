"""What the editor offers beyond typing: names of the stage, Vim's keys, checks while typing."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import VERDICT_MS, Open
from tests.browser.test_bench import RAISES, STAGE, write
from tests.conftest import Service

pytestmark = pytest.mark.browser


def test_names_of_the_stage_are_offered_with_their_values(visit: Open) -> None:
    page = visit().go("/stages/online_attention")
    write(page, "KV_HEA")
    offered = page.locator(".cm-tooltip-autocomplete")
    expect(offered).not_to_be_visible()  # what is pasted asks for nothing
    page.keyboard.type("D")
    expect(offered).to_contain_text("KV_HEADS = 2")


def test_vim_keys_are_loaded_for_whoever_wants_them_and_kept(visit: Open) -> None:
    person = visit()
    loaded: list[str] = []
    person.page.on("request", lambda request: loaded.append(request.url))
    page = person.go(STAGE)
    page.locator(".editor .cm-content").wait_for()
    before = sum("/static/build/" in each for each in loaded)
    page.get_by_text("Editor", exact=True).click()
    page.get_by_label("Vim keys").check()
    expect(page.locator(".cm-vim-panel")).to_be_visible()
    assert sum("/static/build/" in each for each in loaded) > before
    page.locator(".editor .cm-content").click()
    page.keyboard.type("ggOfirst\n")
    page.keyboard.type("second")
    page.keyboard.press("Escape")
    page.keyboard.type("dd")
    expect(page.locator("textarea[name=source]")).to_have_value(re.compile("^first\n"))
    page.reload()
    expect(page.locator(".cm-vim-panel")).to_be_visible()
    page.get_by_text("Editor", exact=True).click()
    page.get_by_label("Vim keys").uncheck()
    expect(page.locator(".cm-vim-panel")).to_have_count(0)


def test_a_check_while_typing_marks_the_line_and_counts_nowhere(visit: Open, service: Service) -> None:
    person = visit()
    person.sign_in(service.token("checked"))
    page = person.go(STAGE)
    page.locator(".editor .cm-content").wait_for()
    page.get_by_text("Editor", exact=True).click()
    box = page.get_by_label("Check while typing")
    expect(box).not_to_be_checked()
    box.check()
    write(page, RAISES)
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1, timeout=VERDICT_MS)
    expect(page.locator(".bench .status")).to_contain_text("Checked: line 5")
    expect(page.locator("#lesson")).to_be_visible()
    write(page, RAISES.replace("missing", "row_max, normalizer, numerator"))
    expect(page.locator(".cm-lint-marker-error")).to_have_count(0, timeout=VERDICT_MS)
    expect(person.go("/me/submissions").get_by_role("main")).to_contain_text("Nothing submitted yet")
