"""What is derived from a stage.py: inputs, drawn cases, tolerances, other right answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case, StageError
from worker.judging.arrays import RawTensor, numbers_of, stored_as
from worker.judging.grader import CaseOutcome, Grader
from worker.judging.judge import comparisons, judge_case
from worker.judging.tolerances import InSequence, Spread

STAGES = ROOT / "tests" / "stages"
STAGE = '''"""Row sums of products."""
import numpy as np
from kernelgate.inputs import mixture, normal, constant

title, path, order, language = "Sums", "Practice", 1, "pytorch"
seam = "sums(x: f32[rows, width], scale: float) -> y: f32[rows], z: f64[rows]"
inputs = {"x": mixture(normal(), normal(100), constant(1))}


def reference(x, scale):
    return scale * x.sum(axis=1), x.sum(axis=1)


cases = """
defaults  scale=2.0
listed    rows=3 width=4000
large     rows=3 width=4000 x=normal(100)
written   rows=1 width=2 x=[[1,2]]
drawn     rows=1..9 width=rows..99 scale=0.5..8.0 times=7
secret    rows=5 width=6 hidden
"""
'''


def grader_of(tmp_path: Path, text: str = STAGE) -> Grader:
    folder = tmp_path / "sums"
    (folder / "solution").mkdir(parents=True, exist_ok=True)
    (folder / "solution" / "sums.py").write_text(
        "def sums(x, scale):\n    return scale * x.sum(1), x.double().sum(1)\n"
    )
    (folder / "lesson.md").write_text("# Sums\n")
    (folder / "stage.py").write_text(text)
    return Grader(load_stage(folder))


def case_of(grader: Grader, name: str) -> Case:
    return next(case for case in grader.stage.spec.cases if case.name == name)


def outcome(grader: Grader, case: Case, **changed: object) -> CaseOutcome:
    """The right answer of a case, rounded to its dtypes, with some tensors replaced."""
    inputs = grader.inputs(case, "5eed")
    expected = grader.reference(case, inputs)
    outputs = {}
    for name, want in expected.items():
        dtype = grader.stage.dtype(case, name)
        stored = stored_as(np.asarray(changed.get(name, want)), dtype)
        outputs[name] = RawTensor(dtype, stored.shape, stored.tobytes())
    return CaseOutcome(case, inputs, outputs, expected)


def test_inputs_are_the_seams_and_what_the_line_says(tmp_path: Path) -> None:
    grader = grader_of(tmp_path)
    made = grader.inputs(case_of(grader, "written"), "5eed")
    np.testing.assert_array_equal(made["x"], np.array([[1, 2]], np.float32))
    wide = grader.inputs(case_of(grader, "large"), "5eed")["x"]
    assert wide.dtype == np.float32
    assert 90 < wide.std() < 110


@pytest.mark.parametrize(
    ("where", "written"), [("x", "x=[[4,5e18]]"), ("y", "x=[[9000000000000000,9000000000000000]]")]
)
def test_whole_numbers_that_are_not_told_apart_are_refused(tmp_path: Path, where: str, written: str) -> None:
    text = STAGE.replace("x: f32[rows, width]", "x: i64[rows, width]").replace("y: f32[rows]", "y: i64[rows]")
    text = (
        text.replace("inputs = {", "unused = {").replace("x=normal(100)", "x=constant(3)").replace("x=[[1,2]]", written)
    )
    grader = grader_of(tmp_path, text)
    case = case_of(grader, "written")
    with pytest.raises(StageError, match=f"case written: {where} holds .*accepted below 2\\^53"):
        grader.reference(case, grader.inputs(case, "5eed"))


def test_drawn_cases_are_of_the_ranges_and_differ_by_seed(tmp_path: Path) -> None:
    grader = grader_of(tmp_path)
    first, second = grader.drawn("aa"), grader.drawn("bb")
    assert len(first) == 8
    assert all(1 <= int(str(case.params["rows"])) <= 9 for case in first)
    assert all(int(str(case.params["rows"])) <= int(str(case.params["width"])) <= 99 for case in first[:7])
    assert first != second
    assert first == grader.drawn("aa")
    assert {str(case.data["x"]) for case in first} <= {"normal()", "normal(100)", "constant(1)"}
    assert first[-1].title == "a hidden case"
    assert "rows" in first[0].title


def test_a_tolerance_is_derived_for_each_tensor_and_case(tmp_path: Path) -> None:
    grader = grader_of(tmp_path)
    ordinary, large = (grader.tolerances(case_of(grader, name)) for name in ("listed", "large"))
    assert ordinary["z"].absolute < 1e-12 < ordinary["y"].absolute
    assert ordinary["y"].absolute < large["y"].absolute
    assert "sums in sequence" in ordinary["y"].why


def test_a_sum_that_cancels_is_allowed_the_error_of_its_terms(tmp_path: Path) -> None:
    """A value near 0 is as far off as any other: large terms went into it."""
    grader = grader_of(tmp_path)
    case = case_of(grader, "large")
    x = np.random.default_rng(2).standard_normal((3, 4000)).astype(np.float32) * np.float32(100)
    x[:, -1] -= x.sum(axis=1, dtype=np.float64).astype(np.float32)
    want = {"y": 2 * x.astype(np.float64).sum(axis=1), "z": x.astype(np.float64).sum(axis=1)}
    got = (2 * x.reshape(3, 40, 100).sum(axis=2, dtype=np.float32).sum(axis=1, dtype=np.float32)).astype(np.float32)
    outputs = {
        "y": RawTensor("float32", (3,), got.tobytes()),
        "z": RawTensor("float64", (3,), want["z"].tobytes()),
    }
    assert np.abs(want["y"]).max() < 1
    assert judge_case(grader, CaseOutcome(case, {"x": x}, outputs, want), None)[1] is None


def test_values_that_underflow_make_no_tolerance_wide() -> None:
    """Most values of a steep softmax are 0 in 16 bits: all of what they were is lost, and nothing of what counts."""
    grader = Grader(load_stage(STAGES / "row_softmax"))
    case = case_of(grader, "small").model_copy(update={"dtype": "float16", "data": {"x": "normal(20)"}})
    tolerance = grader.tolerances(case)["y"]
    assert tolerance.relative < 0.01
    assert tolerance.absolute < 0.01


def test_sums_in_another_order_pass_and_a_lost_term_does_not(tmp_path: Path) -> None:
    grader = grader_of(tmp_path)
    case = case_of(grader, "listed")
    x = grader.inputs(case, "5eed")["x"]
    backwards = 2.0 * np.cumsum(x[:, ::-1], axis=1, dtype=np.float32)[:, -1]
    assert judge_case(grader, outcome(grader, case, y=backwards), None)[1] is None
    lost = 2.0 * x[:, 1:].astype(np.float64).sum(axis=1)
    wrong = judge_case(grader, outcome(grader, case, y=lost), None)[1]
    assert wrong is not None
    assert (wrong.tensor, wrong.axes) == ("y", ("row",))


def test_a_fast_exponential_is_right_far_below_the_largest_value() -> None:
    """__expf(x) is off by 2 + |1.16 x| units in the last place (CUDA C++ Programming Guide)."""
    x = np.array([0.0, *np.linspace(-100, -0.1, 60)])
    want = np.exp(x)
    spread = Spread("float32")
    spread.add(want.astype(np.float32), want)
    fast = want * (1 + (2 + np.abs(1.16 * x)) * 2.0**-23)
    allowed = spread.allowed()
    small = want < 1e-3
    assert (np.abs(fast - want)[small] <= allowed.absolute + allowed.relative * want[small]).all()
    assert allowed.absolute < 1e-8


def test_a_stages_own_tolerances(tmp_path: Path) -> None:
    own = STAGE + 'tolerance = {"y": (0.5, 0.0, "stated"), "z": (lambda x: abs(x).sum(axis=1) * 0 + 3, "by element")}\n'
    grader = grader_of(tmp_path, own)
    case = case_of(grader, "written")
    right = outcome(grader, case, y=np.array([6.4]), z=np.array([5.9]))
    assert not any(each.wrong.any() for each in comparisons(grader, right).values())
    assert comparisons(grader, outcome(grader, case, y=np.array([6.6])))["y"].wrong.any()
    assert comparisons(grader, outcome(grader, case, z=np.array([6.1])))["z"].wrong.any()


def test_a_share_of_the_values_may_be_further_off_up_to_a_cap(tmp_path: Path) -> None:
    own = STAGE + 'tolerance = {"y": (1.0, 0.0, "stated")}\nshare = {"y": (0.6, 5)}\n'
    grader = grader_of(tmp_path, own)
    case = case_of(grader, "listed")
    want = grader.reference(case, grader.inputs(case, "5eed"))["y"]
    assert not comparisons(grader, outcome(grader, case, y=want + np.array([4, 0, 0])))["y"].wrong.any()
    assert comparisons(grader, outcome(grader, case, y=want + np.array([6, 0, 0])))["y"].wrong.sum() == 1
    assert comparisons(grader, outcome(grader, case, y=want + np.array([4, 4, 0])))["y"].wrong.sum() == 2


@pytest.mark.parametrize(
    ("places", "right"),
    [([[1, 2]], True), ([[2, 1]], True), ([[1, 1]], False), ([[1, 0]], False), ([[1, 99]], False), ([[-1, 2]], False)],
)
def test_a_checker_accepts_every_order_of_ties_and_no_place_twice(places: list[list[int]], right: bool) -> None:
    grader = Grader(load_stage(STAGES / "top_rows"))
    case = case_of(grader, "by_hand").model_copy(
        update={"params": {"rows": 1, "width": 3, "k": 2}, "data": {"x": "[[3, 5, 5]]"}}
    )
    judged = judge_case(grader, outcome(grader, case, places=np.array(places)), None)[1]
    assert (judged is None) is right


def test_a_checker_that_fails_on_hostile_values_accepts_none(tmp_path: Path) -> None:
    grader = grader_of(tmp_path, STAGE + "\n\ndef accept(got, want, x):\n    raise IndexError('hostile')\n")
    case = case_of(grader, "written")
    assert judge_case(grader, outcome(grader, case, y=np.array([1.0])), None)[1] is not None
    assert judge_case(grader, outcome(grader, case), None)[1] is None


def test_a_reference_of_another_shape_is_told_in_words(tmp_path: Path) -> None:
    grader = grader_of(tmp_path, STAGE.replace("return scale * x.sum(axis=1),", "return scale * x,"))
    with pytest.raises(StageError, match=r"gives y the shape \[3, 4000\]; the seam has \[rows\], here \[3\]"):
        grader.check(case_of(grader, "listed"))


def test_an_array_written_out_in_another_shape_is_told_in_words(tmp_path: Path) -> None:
    grader = grader_of(tmp_path, STAGE.replace("x=[[1,2]]", "x=[[1,2,3]]"))
    with pytest.raises(StageError, match=r"x has shape \[1, 3\]; the seam has \[rows, width\], here \[1, 2\]"):
        grader.inputs(case_of(grader, "written"), "5eed")


def test_bfloat16_is_rounded_to_the_nearest_even() -> None:
    values = np.array([1.0, 1.00390625, 1.01171875, -2.5, np.inf, np.nan])
    np.testing.assert_array_equal(
        numbers_of(stored_as(values, "bfloat16"), "bfloat16"), [1.0, 1.0, 1.015625, -2.5, np.inf, np.nan]
    )


def test_sums_in_sequence_are_those_of_a_loop() -> None:
    x = np.random.default_rng(1).standard_normal((3, 257)).astype(np.float32)
    total = np.zeros(3, np.float32)
    for column in x.T:
        total = total + column
    in_sequence = x.view(InSequence)
    np.testing.assert_array_equal(np.asarray(in_sequence.sum(axis=1)), total)
    np.testing.assert_array_equal(np.asarray(in_sequence @ np.ones((257, 1), np.float32).view(InSequence))[:, 0], total)
    np.testing.assert_array_equal(np.asarray(in_sequence.mean(axis=1)), total / np.float32(257))
