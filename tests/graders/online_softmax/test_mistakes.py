"""Named mistakes of online_softmax: each stands out, no two look alike, and each is what its shipped file really does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from worker.judging.comparison import compare
from worker.judging.grader import Grader
from worker.judging.mistakes import WIDER

STAGE = load_stage(ROOT / "graders" / "online_softmax")
GRADER = Grader(STAGE)
SEEDS = ("5eed", "beef", "cafe")
BY_GRADIENT = ("previous_blocks_detached", "old_sums_detached")
BY_VALUE = [each.name for each in STAGE.spec.mistakes if each.violation is None and each.name not in BY_GRADIENT]


def case_named(name: str) -> Case:
    return next(case for case in STAGE.spec.cases if case.name == name)


def apart(case: Case, left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> float:
    """The largest difference of two sets of tensors, in tolerances of the case; NaN in one alone is infinitely far."""
    worst = 0.0
    for name, want in right.items():
        if (np.isnan(left[name]) != np.isnan(want)).any():
            return float("inf")
        excess = compare(left[name], want, GRADER.tolerances(case)[name]).excess
        worst = max(worst, float(np.nanmax(excess, initial=0.0)))
    return worst


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["hand_update", "hand_update_f64"])
def test_the_first_case_tells_every_mistake_of_the_values(name: str, seed: str) -> None:
    case = case_named(name)
    inputs = GRADER.inputs(case, seed)
    truth = GRADER.reference(case, inputs)
    variants = {mistake: GRADER.reference(case, inputs, mistake) for mistake in BY_VALUE}
    assert {mistake for mistake, variant in variants.items() if apart(case, variant, truth) < 10} == set()
    alike = {pair for pair in combinations(BY_VALUE, 2) if apart(case, variants[pair[0]], variants[pair[1]]) < 10}
    assert alike == set()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", BY_GRADIENT)
def test_detaching_leaves_values_alone_and_shows_in_every_gradient_case(mistake: str, seed: str) -> None:
    for case in STAGE.spec.cases:
        inputs = GRADER.inputs(case, seed)
        truth, variant = GRADER.reference(case, inputs), GRADER.reference(case, inputs, mistake)
        values = {name: want for name, want in truth.items() if "grad" not in name}
        assert apart(case, variant, values) == 0
        if len(values) < len(truth):
            assert apart(case, variant, truth) >= 10, case.name


def test_an_update_in_place_is_told_by_the_inputs_and_not_by_values() -> None:
    assert STAGE.mistake("argument_updated_in_place").violation == "inputs_changed"
    for case in STAGE.spec.cases:
        inputs = GRADER.inputs(case, SEEDS[0])
        variant = GRADER.reference(case, inputs, "argument_updated_in_place")
        assert apart(case, variant, GRADER.reference(case, inputs)) == 0


@pytest.mark.parametrize("mistake", [*BY_VALUE, *BY_GRADIENT])
def test_the_shipped_file_does_in_torch_what_the_reference_says(mistake: str, drive: Callable[..., Any]) -> None:
    """All cases but gradients of wrong values, which are not modelled, and scores whose exponentials leave float32."""
    run = drive(STAGE, STAGE.folder / "submissions" / "wrong_answer" / f"{mistake}.py")
    shown = 0
    for case in STAGE.spec.cases:
        largest = max((abs(float(str(level))) for level in case.data.get("levels", ())), default=0.0)  # type: ignore[union-attr]
        extreme = largest > 80 or float(str(case.data.get("spread", 0))) > 80 or "reach" in case.data
        if extreme or ("gradient" in case.name and mistake in BY_VALUE):
            continue
        inputs = GRADER.inputs(case, SEEDS[0])
        outputs = run(case, inputs)
        for name, want in GRADER.reference(case, inputs, mistake).items():
            comparison = compare(outputs[name], want, GRADER.tolerances(case)[name], widened=WIDER)
            same_holes = np.isnan(outputs[name]) & np.isnan(want)
            assert not (comparison.wrong & ~same_holes).any(), (case.name, name)
        shown += 1
    assert shown > 20


def test_every_mistake_ships_with_a_file() -> None:
    files = {example.path.stem: example for example in STAGE.examples()}
    for mistake in (*BY_VALUE, *BY_GRADIENT):
        assert files[mistake].mistake == mistake
    assert files["state_updated_in_place"].mistake == "argument_updated_in_place"
    assert all(Path(example.path).is_file() for example in files.values())
