"""What a student meets on the way: the first token, lists that say why, boards without a card, what comes after a pass."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from api.pages.onward import next_of
from api.pages.text.changes import changes
from api.pages.text.faults import faults
from kernelgate.db import transaction
from kernelgate.models import now
from kernelgate.protocol import CaseReport
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Verdict
from tests.pages import samples
from tests.pages.conftest import Site, check


def test_the_first_token_is_there_after_a_reload_and_for_nobody_else(site: Site) -> None:
    new = site.visitor()
    shown = new.post("/sign-up", data={"handle": "grace", "next": "/stages/online_softmax"})
    assert shown.url.path == "/welcome"
    secret = re.search(r"kg_[\w-]{32}", check(shown))
    assert secret
    assert secret[0] in check(new.get(str(shown.url)))
    assert 'href="/stages/online_softmax"' in shown.text
    _, other = site.sign_in("other")
    other.cookies.set("kernelgate_welcome", secret[0], path="/welcome")
    assert other.get("/welcome").url.path == "/me/tokens"


def test_a_list_says_which_mistake_and_how_many_cases(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        samples.submission(database, user, site.values, samples.wrong_from_row(site.values))
    text = check(ada.get("/me/submissions"))
    assert "The old normalizer is not rescaled" in text
    assert re.search(r"\d of \d cases right", text)
    assert ">Online softmax</a>" in text


@pytest.mark.parametrize(("chosen", "words"), [(0, "0 were chosen"), (1, "1 was chosen"), (3, "3 were chosen")])
def test_comparing_other_than_two_says_so_on_the_list(site: Site, chosen: int, words: str) -> None:
    _, ada = site.sign_in("ada")
    answer = ada.get("/me/compare", params=[("pick", f"{n:016x}") for n in range(chosen)])
    assert answer.url.path == "/me/submissions"
    assert words in check(answer)


def test_attempts_after_the_pass_are_none(site: Site) -> None:
    user, ada = site.sign_in("ada")
    with transaction() as database:
        for verdict in (Verdict.WRONG_ANSWER, Verdict.ACCEPTED, Verdict.WRONG_ANSWER):
            samples.submission(database, user, site.values, samples.result(site.values, verdict))
    assert "passed with attempt 2" in check(ada.get("/"))


def test_a_speed_board_without_a_card_says_who_was_right(site: Site) -> None:
    ada, _ = site.sign_in("ada")
    bob, client = site.sign_in("bob")
    right = samples.result(site.gated, Verdict.CORRECT, backend=Backend.EMULATOR)
    with transaction() as database:
        for user, minutes in ((ada, 30), (ada, 20), (bob, 10)):
            wrong = samples.result(site.gated, Verdict.WRONG_ANSWER) if (user, minutes) == (ada, 30) else right
            row = samples.submission(database, user, site.gated, wrong)
            row.created_at = now() - timedelta(minutes=minutes)
    text = check(client.get("/leaderboard/online_attention"))
    assert "No speed has been measured yet" in text
    assert re.search(r"ada</th><td class=\"number\">2</td>.*bob", text, re.DOTALL)
    assert "fewest attempts: bob (1), ada (2)" in text
    assert "Right in every value first" in check(client.get("/leaderboard"))


def test_after_a_pass_there_is_a_way_on(site: Site) -> None:
    user, ada = site.sign_in("ada")
    _, bob = site.sign_in("bob")
    with transaction() as database:
        row = samples.submission(database, user, site.values, samples.result(site.values, Verdict.ACCEPTED))
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "You have passed this stage" in text
    assert 'You are <b class="number">1</b> of 1' in text
    assert "Next: Online attention" in text
    assert "/solution" not in text
    check(ada.get("/stages/online_softmax/solution"), 403)
    check(bob.get("/stages/online_softmax/solution"), 403)


def test_what_builds_on_a_stage_comes_before_other_paths(tmp_path: Path) -> None:
    """The last stage of a path says what it leads to; whoever passed it is led there."""
    here, other = samples.write_stages(tmp_path / "graders").values()

    def stage(**changed: object) -> Stage:
        return Stage(other.folder, other.spec.model_copy(update=changed), other.files)

    elsewhere, built = stage(path="elsewhere"), stage(path="elsewhere", needs=(here.name,))
    after = stage(path=here.spec.path, order=here.spec.order + 1)
    assert next_of(here, [elsewhere, built, after]) is after
    assert next_of(here, [elsewhere, built]) is built
    assert next_of(here, [elsewhere]) is elsewhere
    assert next_of(here, []) is None


def test_documents_are_sorted_by_reader_and_browsers_find_what_they_ask_for(site: Site) -> None:
    visitor = site.visitor()
    text = check(visitor.get("/docs"))
    assert text.index("For students") < text.index("/docs/submitting") < text.index("For operators")
    check(visitor.get("/docs/submitting"))
    assert "Disallow: /me" in visitor.get("/robots.txt").text
    assert visitor.get("/favicon.ico").headers["content-type"].startswith("image/svg")
    assert visitor.get("/me").status_code == 401
    assert "header.authorization" not in visitor.get("/me/submissions").text


def test_a_kernels_line_is_found_by_what_triton_quotes(site: Site) -> None:
    source = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    a = tl.exp3(x)\n\n\ndef f(x):\n    kernel[(1,)](x)\n"
    log = (
        'File "f.py", line 10, in f\n    kernel[(1,)](x)\ntriton.compiler.errors.CompilationError: at 2:8:\n'
        "def kernel(x):\n    a = tl.exp3(x)\n        ^\nAttributeError(\"no attribute 'exp3'\")"
    )
    made = samples.result(site.values, Verdict.COMPILE_ERROR).model_copy(update={"reason": "kernel_error", "log": log})
    assert faults(made, "f.py", source) == [(6, "AttributeError(\"no attribute 'exp3'\")")]
    assert [fault.line for fault in faults(made, "f.py")] == [10]


def test_a_comparison_numbers_its_lines_and_skips_what_is_the_same() -> None:
    old = "".join(f"line {n}\n" for n in range(1, 31))
    new = old.replace("line 20\n", "line twenty\n")
    found = changes(old, new)
    assert [(each.sign, each.before, each.after) for each in found if each.sign in "+-…"] == [
        ("…", None, None), ("-", 20, None), ("+", None, 20),
    ]  # fmt: skip
    assert (found[1].before, found[1].after) == (16, 16)
    assert changes(old, old) == []


def test_cases_that_need_a_gpu_are_not_counted_against_a_right_file(site: Site) -> None:
    user, ada = site.sign_in("ada")
    cases = tuple(
        CaseReport(name=f"c{n}", title=f"c{n}", group="T0", state="right" if n < 2 else "not_run") for n in range(5)
    )
    made = samples.result(site.gated, Verdict.CORRECT, backend=Backend.EMULATOR).model_copy(update={"cases": cases})
    with transaction() as database:
        row = samples.submission(database, user, site.gated, made)
    text = check(ada.get(f"/submissions/{row.id}"))
    assert "2 of the 2 that run here; 3 more need a GPU" in text
    assert "2 of 2 right; 3 more need a GPU" in text
    assert "2 of 5" not in text
