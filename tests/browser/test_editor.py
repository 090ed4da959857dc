"""What the editor offers beyond typing: names of the stage, Vim's keys, checks while typing."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

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


WEIGHT = """
performance.getEntriesByType('resource').filter(each => each.name.includes('/static/'))
  .reduce((sum, each) => sum + each.encodedBodySize, 0)
"""


@pytest.mark.parametrize("stage", ["online_softmax", "online_attention"])
def test_a_page_with_the_editor_is_light(visit: Open, stage: str) -> None:
    """Bytes as they are packed, of all that a stage's page loads once its editor is open."""
    page = visit().go(f"/stages/{stage}")
    page.locator(".editor .cm-content").wait_for()
    assert 100_000 < page.evaluate(WEIGHT) < 250_000


def test_brackets_indentation_search_and_a_word_pointed_at(visit: Open) -> None:
    page = visit().go("/stages/online_attention")
    area, keys = page.locator("textarea[name=source]"), page.keyboard
    write(page, "")
    keys.type("int twice(int x) {\nreturn x;")
    expect(area).to_have_value("int twice(int x) {\n    return x;\n}")
    write(page, "KV_HEADS\nfirst\nsecond\nfirst\n")
    page.locator(".cm-line").first.hover(position={"x": 20, "y": 8})
    expect(page.locator(".cm-about")).to_contain_text("KV_HEADS = 2")
    page.mouse.move(0, 0)
    keys.press("Control+Home")
    keys.press("Control+f")
    keys.type("first")
    expect(page.locator(".cm-searchMatch")).to_have_count(2)
    keys.press("Escape")
    expect(page.locator(".cm-search")).to_have_count(0)


def test_whoever_types_before_the_editor_is_there_goes_on_in_it(visit: Open) -> None:
    person = visit()
    page = person.page
    held: list[Route] = []
    page.route("**/static/build/editor-*.js", lambda route: held.append(route))
    with page.expect_request("**/static/build/editor-*.js"):
        person.go(STAGE)
    area = page.locator("textarea[name=source]")
    area.click()
    page.keyboard.press("Control+Home")
    page.keyboard.type("# early")
    held[0].continue_()
    page.locator(".editor .cm-content").wait_for()
    page.keyboard.type(" and late")
    expect(area).to_have_value(re.compile("^# early and late"))
    page.unroute("**/static/build/editor-*.js")


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
