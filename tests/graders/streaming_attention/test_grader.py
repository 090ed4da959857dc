"""The data of the stage: its oracle, its hand trace, its covering list of cases, and tolerances that follow from dtypes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from worker.judging.grader import Grader

LENGTHS = [1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 255, 1000, 2047, 2048]
FACTORS = {
    "rows": LENGTHS,
    "dim": [16, 32, 64],
    "dtype": ["bfloat16", "float16"],
    "block_n": [32, 64],
    "causal": [False, True],
}


@pytest.fixture(scope="module")
def stage() -> Stage:
    return load_stage(settings().graders_dir / "streaming_attention")


@pytest.fixture(scope="module")
def grader(stage: Stage) -> Grader:
    return Grader(stage)


def test_all_pairs_of_lengths_head_sizes_dtypes_tiles_and_masks_are_covered(stage: Stage) -> None:
    rows = [{**case.params, **case.data, "dtype": case.dtype} for case in stage.spec.cases if not case.refused]
    for (a, of_a), (b, of_b) in combinations(FACTORS.items(), 2):
        found = {(row[a], row[b]) for row in rows}
        assert {(x, y) for x in of_a for y in of_b} <= found, (a, b)


def test_without_a_gpu_every_value_but_the_longest_lengths_is_still_met(stage: Stage) -> None:
    rows = [{**case.params, **case.data, "dtype": case.dtype} for case in stage.spec.cases if not case.needs_gpu]
    for name in ("dim", "dtype", "block_n", "causal"):
        assert set(FACTORS[name]) <= {row[name] for row in rows}, name
    assert any(case.refused and not case.needs_gpu for case in stage.spec.cases)
    assert any("changed_from" in row for row in rows)


@pytest.mark.parametrize(
    ("mistake", "answer"), [(None, 6.0), ("numerator_not_rescaled", 7.0), ("denominator_not_rescaled", 4.0)]
)
def test_the_hand_trace(stage: Stage, grader: Grader, mistake: str | None, answer: float) -> None:
    case = next(case for case in stage.spec.cases if case.name == "hand_trace")
    out = grader.reference(case, grader.inputs(case, "aa"), mistake)["out"]
    np.testing.assert_allclose(out[:, 0], answer, atol=2e-3)
    assert (out[:, 1:] == 0).all()


def test_values_of_later_rows_change_and_earlier_answers_do_not(stage: Stage, grader: Grader) -> None:
    for case in (case for case in stage.spec.cases if "changed_from" in case.data):
        first = int(str(case.data["changed_from"]))
        inputs = grader.inputs(case, "aa")
        assert (inputs["v"][:first] == inputs["v_changed"][:first]).all()
        assert (inputs["v"][first:] != inputs["v_changed"][first:]).any(axis=1).all()
        tensors = grader.reference(case, inputs)
        assert not tensors["kept"].any()
        assert (tensors["out"][first:] != tensors["out_changed"][first:]).any(axis=1).all()


@pytest.mark.parametrize(("dtype", "unit"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_tolerances_are_those_of_two_roundings(grader: Grader, dtype: str, unit: float) -> None:
    case = next(case for case in grader.stage.spec.cases if case.dtype == dtype and case.data["plant"] == "plain")
    tolerance = grader.tolerances(case)["out"]
    assert 4 * unit <= tolerance.absolute <= 1.05 * 4 * unit
    assert unit <= tolerance.relative <= 1.05 * unit


def test_the_workspace_holds_six_splits_and_no_score_matrix(stage: Stage, grader: Grader) -> None:
    case = next(case for case in stage.spec.cases if case.name == "profile_b32")
    assert 6 * 2048 * 66 * 4 <= grader.workspace(case) < 2048 * 2048
