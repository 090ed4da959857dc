"""Similar submissions: what makes no difference, what is left out, and whose are compared."""

from __future__ import annotations

import re
import subprocess
import sys
from hashlib import sha512

import pytest

from api.courses.similarity import _WORDS, Collection, _kind, tokens
from kernelgate.models import CourseRole, Role
from kernelgate.settings import ROOT
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, result_of
from tests.api.test_courses import course_with

PYTHON = '''
def double(x):
    """Twice."""
    total = x * 0 + {first}
    for index in range(len(x)):
        value = x[index] + x[index]
        total[index] = value if value > 0 else value - 1
    while total is None:
        total = [each for each in x if each]
    return total + (x - x) * 3
'''
RENAMED = (
    PYTHON.replace("total", "acc").replace("index", "i").replace("value", "doubled").replace('"""Twice."""', "# no words")
    .replace("    ", "\t").replace("+ 1", "+  1  # one")
)  # fmt: skip
OTHER = "def double(x):\n    return type(x)([2 * (part) for part in reversed([*reversed(x)])])\n"


def collection(files: dict[str, str], given: tuple[str, ...] = ()) -> Collection:
    return Collection(files, given, python=True)


def test_names_numbers_comments_and_layout_make_no_difference() -> None:
    one, other = tokens(PYTHON.replace('"""Twice."""', ""), python=True), tokens(RENAMED, python=True)
    assert one.kinds == other.kinds
    found = collection({"a": PYTHON, "b": RENAMED, "c": OTHER}).pairs()
    assert [(pair.one, pair.other) for pair in found] == [("a", "b")]
    assert found[0].share > 0.8


def test_what_the_stage_hands_out_is_nobodys() -> None:
    start = "def helper(a, b):\n    c = a * b + a - b\n    return [c, a + b, a - b, c * c, c - a * b + 7]\n"
    files = {"a": start + OTHER, "b": start + "x = {1: 2, 3: [4, 5], 6: (7, 8), 9: {10, 11}}\n"}
    assert collection(files).pairs() != []
    assert collection(files, given=(start,)).pairs() == []


def test_what_many_have_in_common_is_left_out() -> None:
    own = [" ".join("+-*/%,;:|&^~@.<>"[int(digit, 16)] for digit in sha512(bytes([n])).hexdigest()) for n in range(20)]
    many = {str(n): PYTHON + text for n, text in enumerate(own)}
    assert collection(many).pairs() == []
    assert collection({"a": many["0"], "b": many["1"]}).pairs() != []


def test_it_makes_no_difference_what_was_compared_before() -> None:
    """Another process, which met other tokens first, keeps the same parts."""
    code = "import sys; from api.courses.similarity import *; tokens('} else while @ ~', python=False); "
    code += "print(sorted(Collection({'a': sys.stdin.read()}, (), python=True).kept['a'].items()))"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, input=PYTHON, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == str(sorted(collection({"a": PYTHON}).kept["a"].items()))


def test_every_word_and_sign_is_a_kind_of_its_own() -> None:
    long = re.findall(r"\S+", "<<< >>> -> :: -= += *= /= %= == <= >= != &= ^= |= && || ++ -- << >>")
    signs = [*long, *"+-*/%=<>!&|^()[]{}.,;:?@~\\"]
    kinds = [_kind(each) for each in {*_WORDS, *signs, "name", "number", "text"}]
    assert len(set(kinds)) == len(kinds)


def test_the_lines_of_a_common_part_are_marked() -> None:
    found = collection({"a": "import torch\n\n\n" + OTHER + PYTHON, "b": PYTHON})
    one, other = found.lines_alike("a", "b")
    assert min(one) > 4, "what stands before it is its own"
    assert {5, 6, 7} <= other


@pytest.mark.parametrize("language", ["cuda", "python"])
def test_a_file_that_is_no_code_breaks_nothing(language: str) -> None:
    for text in ("", "'''", '"""\n', "/* never closed", "\x00\ufffd\U0001f600" * 40, "(" * 5000, "'\\"):
        assert tokens(text, python=language == "python") is not None
        assert collection({"a": text, "b": text}).pairs() is not None


def test_real_files_of_a_stage_renamed_are_found() -> None:
    files = sorted((ROOT / "graders" / "online_attention").rglob("*.cu"))[:40]
    texts = {path.name + str(n): path.read_text() for n, path in enumerate(files)}
    name = next(key for key, text in texts.items() if len(text) > 3000)
    texts["copy"] = re.sub(r"\b(row|tile|scores|tokens)\b", r"my_\1", texts[name]).replace("    ", "  ")
    found = Collection(texts, (), python=False).lines_alike(name, "copy")
    assert found[0] == found[1]


def test_the_members_of_an_earlier_course_are_compared_for_its_staff_alone(api: Api) -> None:
    course_with(api, anna=CourseRole.ASSISTANT, otto=CourseRole.MEMBER)
    course_with(api, bert=CourseRole.ASSISTANT, paul=CourseRole.MEMBER)
    course = course_with(api, anna=CourseRole.ASSISTANT, bert=CourseRole.ASSISTANT, ada=CourseRole.MEMBER)
    made = {}
    for who, text in (("ada", PYTHON), ("otto", RENAMED), ("paul", OTHER)):
        made[who] = api.submit(api.as_(who), text.format(first=1))["id"]
        Graded.finish(made[who], result_of(Verdict.ACCEPTED))
    address = f"/courses/{course}/stages/double/similarity"
    pairs = [(each["one"]["user"], each["other"]["user"]) for each in api.as_("anna").get(address).json()]
    assert [set(pair) for pair in pairs] == [{"ada", "otto"}]
    assert api.as_("bert").get(address).json() == []
    secret = api.as_("anna").post("/me/tokens", json={"course": course, "scopes": ["read"]}).json()["token"]
    assert api.open(Authorization=f"Bearer {secret}").get(address).json() == []


def test_members_are_compared_and_others_only_for_those_who_read_everything(api: Api) -> None:
    course = course_with(
        api, anna=CourseRole.ASSISTANT, ada=CourseRole.MEMBER, bob=CourseRole.MEMBER, eva=CourseRole.MEMBER
    )
    made = {}
    for who, text in (("ada", PYTHON), ("bob", RENAMED), ("eva", OTHER), ("otto", RENAMED)):
        made[who] = api.submit(api.as_(who), text.format(first=1))["id"]
        Graded.finish(made[who], result_of(Verdict.ACCEPTED))
    address = f"/courses/{course}/stages/double/similarity"
    found = api.as_("anna").get(address).json()
    assert [{each["one"]["user"], each["other"]["user"]} for each in found] == [{"ada", "bob"}]
    everybody = api.as_("root", Role.ADMIN).get(address).json()
    assert {"otto"} < set().union(*({each["one"]["user"], each["other"]["user"]} for each in everybody))
    html = {"Accept": "text/html"}
    side = api.as_("anna").get(address, params={"one": made["ada"], "other": made["bob"]}, headers=html)
    assert side.text.count('class="line alike"') >= 10
    assert (
        api.as_("anna").get(address, params={"one": made["ada"], "other": made["otto"]}, headers=html).status_code
        == 404
    )
