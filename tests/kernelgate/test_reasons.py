"""The list of reasons is closed: every word that our programs, stages and attacks use is in it, and every member is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.reasons import Reason, of_contract, rewritten
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.verdicts import Verdict

RAISES = {"Violation": 0, "FaultError": 0, "fault": 0, "RewriteError": None}
"""Calls of programs outside `worker` that state a reason, and where: the first argument, or one named `reason`."""
IN_A_FAULT = {"memory"}
"""The interpreter's words which `worker/triton/interpret.py` gives their reason."""


def our_programs() -> Iterator[Path]:
    for folder in ("sandboxed", "kernels"):
        yield from (ROOT / folder).rglob("*.py")
    yield from (ROOT / "graders").glob("*/driver.py")
    yield from (ROOT / "tests" / "exploits" / "stages").glob("*/driver.py")


def stated(path: Path) -> set[str]:
    """The reasons that a program names as literals."""
    words = set()
    for call in ast.walk(ast.parse(path.read_text())):
        if not isinstance(call, ast.Call):
            continue
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        values = [word.value for word in call.keywords if word.arg == "reason"]
        if RAISES.get(name) is not None:
            values += call.args[:1]
        if name in RAISES:
            words |= {each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return words


def recorder_words() -> set[str]:
    texts = [path.read_text() for path in (ROOT / "sandboxed" / "recorder").glob("*.cpp")]
    return {word for text in texts for word in re.findall(r'\bviolation\("(\w+)"', text)}


def used_by_the_worker() -> set[str]:
    """Members that the worker names as `Reason.MEMBER`."""
    return {
        node.attr.lower()
        for path in (ROOT / "worker").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason"
    }


def test_every_word_of_our_programs_is_a_reason() -> None:
    words = {path: stated(path) for path in our_programs()}
    assert len(set().union(*words.values())) > 20, "the walk finds no literals any more"
    for path, said in words.items():
        assert said - IN_A_FAULT - set(Reason) == set(), path
    assert recorder_words()
    assert recorder_words() <= set(Reason)


def test_every_reason_is_given_by_something() -> None:
    given = used_by_the_worker() | recorder_words() | set().union(*(stated(path) for path in our_programs()))
    assert set(Reason) - given == {Reason.VIOLATION}, "VIOLATION is given by `of_contract`; the others have to be used"


def test_every_attack_and_every_shipped_file_expects_one() -> None:
    corpus = [path for path in (ROOT / "tests" / "exploits").rglob("*") if path.suffix in {".py", ".cu"}]
    stated = {word for path in corpus for word in re.findall(r"^(?:#|//) reason: (\w+)", path.read_text(), re.M)}
    assert len(stated) > 20
    assert stated <= set(Reason)
    stages = [load_stage(path.parent) for path in (ROOT / "graders").glob("[a-z]*/stage.py")]
    wrong = [
        example.path
        for stage in stages
        for example in stage.examples()
        if example.reason and example.verdict not in example.reason.verdicts
    ]
    assert wrong == [], "no result can have both the folder's verdict and that reason"


@pytest.mark.parametrize("reason", Reason)
def test_each_has_a_sentence_and_its_verdicts(reason: Reason) -> None:
    assert reason.name.lower() == reason
    assert reason.meaning[0].isupper()
    assert reason.meaning.endswith(".")
    assert reason.verdicts
    assert set(reason.verdicts) <= set(Verdict)


def test_every_verdict_has_a_reason() -> None:
    assert {verdict for reason in Reason for verdict in reason.verdicts} == set(Verdict)


def test_a_sandbox_chooses_among_contract_violations_alone() -> None:
    """What it may say is a word of the list for breaking the contract: no praise, no other fault, no word of its own."""
    assert of_contract("no_gradient") is Reason.NO_GRADIENT
    for word in ("passed", "wrong_value", "judge_failed", "accepted by the judges", "No_Gradient", "", "x" * 60):
        assert of_contract(word) is Reason.VIOLATION, word


def test_the_table_in_the_documents_is_what_the_code_says() -> None:
    page = (ROOT / "docs" / "grading.md").read_text()
    assert page == rewritten(page), "write it again: python -m kernelgate.reasons"
