"""A stage.py is read without being run, and what is wrong with one is told in a sentence with its line."""

from __future__ import annotations

import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from kernelgate import edit_lines
from kernelgate.case_lines import read
from kernelgate.refusals import refusals_of
from kernelgate.seams import SeamError, parse, size_of
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import StageError
from kernelgate.verdicts import Verdict

SHIPPED = sorted(path for path in (ROOT / "tests" / "stages").iterdir() if path.is_dir())
SEAM = "rmsNorm(x: f32[rows, width], w: f32[width], rows: int, width: int, eps: float) -> y: f32[rows, width]"


def test_a_seam_says_the_signature_the_contract_and_the_sizes() -> None:
    seam = parse(SEAM)
    assert seam.c_signature() == (
        'extern "C" void rmsNorm(const float* x, const float* w, float* y, int rows, int width, float eps, cudaStream_t stream)'
    )
    assert seam.python_signature() == "rmsNorm(x, w, rows, width, eps) -> y"
    assert seam.sizes == ("rows", "width")
    assert seam.contract(cuda=True)["y"] == "float32 [rows, width], row-major; every value must be written"


def test_what_is_changed_in_place_is_no_constant_and_is_judged_under_a_name_of_its_own() -> None:
    seam = parse("rope(inout qkv: bf16[tokens, 2 * width + 64], tokens: int, width: int)")
    assert "(__nv_bfloat16* qkv, int tokens" in seam.c_signature()
    assert [each.judged for each in seam.judged] == ["qkv_after"]
    assert seam.arrays[0].shape({"tokens": 3, "width": 8}) == (3, 80)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rmsNorm", "accepted is name("),
        ("f(x: f31[n], n: int) -> y: f32[n]", "no dtype 'f31'"),
        ("f(x: f32[n], x: f32[n]) -> y: f32[n]", "'x' stands twice"),
        ("f(x: f32[n], n: int)", "gives nothing back"),
        ("f(x: f32[n], n: float) -> y: f32[n]", "n is a size and float"),
        ("f(x: f32[import os], n: int) -> y: f32[n]", "no formula of sizes"),
        ("f(x: f32[n()], n: int) -> y: f32[n]", "no formula of sizes"),
        ("f(x: tensor) -> y: f32[1]", "what has no [sizes] is a number"),
    ],
)
def test_a_seam_that_cannot_be_read_says_which_part(text: str, words: str) -> None:
    with pytest.raises(SeamError) as error:
        parse(text)
    assert words in str(error.value)


def test_a_cuda_seam_writes_its_sizes_out() -> None:
    with pytest.raises(SeamError) as error:
        parse("f(x: f32[rows, width], rows: int) -> y: f32[rows]").c_signature()
    assert "width: int is missing" in str(error.value)


def test_a_size_is_a_whole_number() -> None:
    assert size_of("n // 2 + 1", {"n": 7}) == 4
    with pytest.raises(SeamError):
        size_of("n - 8", {"n": 7})


def test_numbers_of_a_python_seam_have_defaults_and_names() -> None:
    seam = parse(
        "f(x: T[rows, sum(blocks)], blocks: list, *, causal: bool = False, tile: int = 32) -> y: T[blocks, rows]"
    )
    assert seam.python_signature() == "f(x, blocks, *, causal=False, tile=32) -> y"
    assert seam.sizes == ("rows",)
    assert seam.arrays[0].shape({"rows": 2, "blocks": [3, 4, 2]}) == (2, 9)
    assert seam.results[0].shape({"rows": 2, "blocks": [3, 4, 2]}) == (3, 2)
    with pytest.raises(SeamError, match="a CUDA seam's numbers are int or float"):
        parse("f(x: f32[n], n: int, causal: bool) -> y: f32[n]").c_signature()


def test_lines_share_what_stands_above_them_and_make_a_case_of_each_dtype() -> None:
    text = (
        'defaults n=2 title="{n} of {dtype}"\na dtype=f32,f64\ndefaults n=3\nb dtype=f32 at=[1..8, p|q]\ntimed n=1..9'
    )
    lines = {line.name: line for line in read(text, ["n", "at"])}
    assert list(lines) == ["a", "a_f64", "b", "timed"]
    assert [line.values["n"] for line in list(lines.values())[:3]] == [2, 2, 3]
    assert (lines["a_f64"].dtype, lines["a"].drawn, lines["b"].drawn) == ("f64", False, True)


def test_a_number_that_is_no_size_has_its_row_in_the_contract() -> None:
    contract = load_stage(ROOT / "graders" / "rms_norm").spec.seam.contract
    assert contract["eps"] == "float: from case to case, 1e-05, 0.5"
    assert load_stage(ROOT / "graders" / "streaming_attention").spec.seam.contract["causal"].startswith("Row i sees")


def test_wrong_files_as_lines() -> None:
    text = r"""
    eps_outside wrong_answer: rsqrtf(m + e) => 1 / (sqrtf(m) + e)
    no_barrier wrong_answer race: "  sync();\n" =>
    turned runtime_error of starter illegal_address: a => b
        ;; "c\n"
        "d" => "for (;;) e"
    """
    found = {each.name: each for each in edit_lines.read(dedent(text), ["eps_outside"])}
    assert found["eps_outside"].changes == (("rsqrtf(m + e)", "1 / (sqrtf(m) + e)"),)
    assert found["eps_outside"].expected == {"mistake": "eps_outside"}
    assert found["no_barrier"].changes == (("  sync();\n", ""),)
    assert found["no_barrier"].expected == {"reason": "race"}
    assert (found["turned"].of, found["turned"].changes) == ("starter", (("a", "b"), ("c\nd", "for (;;) e")))
    for wrong, words in {
        "eps wrong_answer old => new": "accepted is NAME VERDICT",
        "eps wrong_answer: old, new": "accepted is NAME VERDICT",
        'eps wrong_answer: "old => new': "begins as a quoted text and is none",
    }.items():
        with pytest.raises(edit_lines.EditLineError, match=words):
            edit_lines.read(wrong, [])


def test_a_call_that_has_to_be_refused() -> None:
    seam = parse("f(x: T[rows, dim], n: int = 3) -> y: T[rows]")
    (call,) = refusals_of({"turned": "x: f16[3, 4] transposed, n=5"}, seam)
    assert call["arrays"]["x"] == {"shape": [3, 4], "dtype": "float16", "layout": "transposed"}
    assert call["numbers"] == {"n": 5}
    with pytest.raises(SeamError, match=r"refused: wide: 'z: f16\[3\]'; accepted are"):
        refusals_of({"wide": "z: f16[3]"}, seam)


def test_a_way_of_calling_is_a_function_of_driver_py(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ROOT / "graders" / "online_softmax", tmp_path / "online_softmax"))
    driver = folder / "driver.py"
    driver.write_text(driver.read_text().replace("def trace(", "def traced("))
    with pytest.raises(StageError, match=r"ways: driver\.py defines no function trace"):
        load_stage(folder)
    driver.unlink()
    with pytest.raises(StageError, match=r"ways: driver\.py is missing; it defines attention"):
        load_stage(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(ROOT / "tests" / "stages" / "histogram", tmp_path / "histogram"))


def test_what_is_not_there_is_derived(folder: Path) -> None:
    stage = load_stage(folder)
    assert stage.provided["histogram.h"].endswith(
        "void histogram(const int* x, int* counts, int count, cudaStream_t stream);\n"
    )
    assert "__global__ void histogramKernel(int* counts)" in stage.starter
    assert [case.name for case in stage.spec.cases] == ["by_hand", "many", "ties"], "a drawn line is no listed case"
    examples = {example.path.name: example for example in stage.examples()}
    assert examples["not_atomic.cu"].reason == "race"
    assert b"counts[x[at]] += 1" in stage.files["submissions/wrong_answer/not_atomic.cu"]
    assert {example.verdict for example in examples.values()} == {Verdict.WRONG_ANSWER}


def test_nothing_of_it_is_run_when_it_is_read(folder: Path) -> None:
    path = folder / "stage.py"
    path.write_text(path.read_text() + "\n\nraise SystemExit('run')\n")
    assert load_stage(folder).spec.title == "Histogram"


BROKEN = {
    "no python": ("def reference(x):", "def reference(x:", "line "),
    "a value that must be run": (
        'title, path, order = "Histogram"',
        'title, path, order = str("Histogram")',
        "without running it",
    ),
    "a misspelt name": ("mistakes = {", "mistaks = {", "did you mean mistakes?"),
    "no language": ('"cuda"', '"rust"', "no language 'rust'; known: pytorch, triton, cuda"),
    "a reference that asks for too much": (
        "def reference(x):",
        "def reference(x, w):",
        "asks for 'w'; the seam has x, count",
    ),
    "no reference": ("def reference(x):", "def truth(x):", "no function reference is defined"),
    "a case without a size": ("many     count=3001", "many", "count has no value; the case needs count="),
    "a case with a word nobody knows": ("many     count=3001", "many count=3001 rows=3", "nothing is called 'rows'"),
    "a mark nobody knows": (
        "many     count=3001",
        "many count=3001 mesured",
        "no mark 'mesured'; accepted are measured",
    ),
    "a case twice": ("many     count=3001", "by_hand count=3001", "'by_hand' stands twice"),
    "a list that is none": ("x=[3,3,0,15]", "x=[3,3,", "is no list"),
    "no dtype": ("x: i32[count]", "x: int32[count]", "no dtype 'int32'; accepted are f16"),
    "an edit of text that is gone": ('"at < count",', '"at <= count",', "'at <= count' does not stand in the solution"),
    "an edit with a verdict nobody knows": (
        '"not_atomic": ("wrong_answer"',
        '"not_atomic": ("wrong"',
        "no verdict 'wrong'",
    ),
    "an edit with half a change": (
        ', "at < count - 1", {"mistake": "last_dropped"}',
        "",
        "accepted is (verdict, old text, new text)",
    ),
    "a mistake without a hint": (', "The grid ends too early."', "", "accepted is (function, title, hint)"),
    "a measured case without a baseline": (
        "many     count=3001",
        "many count=3001 measured",
        "baseline.cu is missing; case many is measured, and a time is of a baseline's",
    ),
    "a rule for several measured cases that nobody knows": (
        'language = "cuda"',
        'language, measured = "cuda", "best"',
        "measured: Input should be 'mean' or 'worst'",
    ),
    "a gate without a baseline": (
        'language = "cuda"',
        'language, gate = "cuda", 1.5',
        "baseline.cu is missing; a gate of 1.5x",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_wrong_is_one_sentence(folder: Path, what: str) -> None:
    old, new, words = BROKEN[what]
    path = folder / "stage.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(StageError) as error:
        load_stage(folder)
    assert str(error.value).startswith("stage histogram: ")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_long_form_beside_it_is_refused(folder: Path) -> None:
    (folder / "grader.py").write_text("")
    with pytest.raises(StageError, match=r"grader\.py stands beside stage\.py"):
        load_stage(folder)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_stage_takes_at_most_45_lines(path: Path) -> None:
    lines = [line for line in (path / "stage.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 45


FAMILY = 'mistakes = {"cut": (lambda x, n: x[:n], "Only %s counted", "Loop.", {"n": %s})}\n\n\nORIGINAL = {'


@pytest.mark.parametrize(
    ("title", "values", "words"),
    [
        ("{m}", "(1, 2)", "the title names 'm'; the values are of n"),
        ("{n}", "(1,)", "2 to 24 combinations of values are accepted"),
        ("{n}", "tuple_of_25", "2 to 24 combinations of values are accepted"),
    ],
)
def test_a_family_of_mistakes_that_cannot_be_is_told(folder: Path, title: str, values: str, words: str) -> None:
    path = folder / "stage.py"
    stated = values.replace("tuple_of_25", str(tuple(range(25))))
    path.write_text(path.read_text().replace("mistakes = {", FAMILY % (title, stated)))
    with pytest.raises(StageError, match=words):
        load_stage(folder)


def test_a_familys_title_says_all_values_and_those_that_fit(folder: Path) -> None:
    path = folder / "stage.py"
    path.write_text(
        path.read_text()
        .replace("lambda x: reference(x[:-1])", "lambda x, n: reference(x[:-n])")
        .replace('"The last value is', '"The last {n} values are')
        .replace('"The grid ends too early.")', '"The grid ends too early.", {"n": (1, 2, 4)})')
    )
    mistake = load_stage(folder).mistake("last_dropped(n=2)")
    assert mistake.title == "The last 1, 2 or 4 values are not counted"
    assert list(mistake.members) == ["last_dropped(n=1)", "last_dropped(n=2)", "last_dropped(n=4)"]
    assert mistake.said_of(["last_dropped(n=2)"]) == "The last 2 values are not counted"
    assert mistake.said_of(["last_dropped(n=1)", "last_dropped(n=4)"]) == "The last 1 or 4 values are not counted"
