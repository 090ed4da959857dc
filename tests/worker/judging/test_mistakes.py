"""Names of mistakes: said where one explains every case, never wrong, and of several that fit all are said."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case, Stage
from tests.worker.judging.kernels import Kernel
from worker.judging.arrays import Float64, RawTensor
from worker.judging.grader import Arrays, CaseOutcome, Grader
from worker.judging.mistakes import mistakes_of

SEED = "5eed"
HEADS, KV_HEADS, DIM = 8, 2, 64


@pytest.fixture(scope="module")
def stage() -> Stage:
    return load_stage(ROOT / "graders" / "online_attention")


@pytest.fixture(scope="module")
def grader(stage: Stage) -> Grader:
    return Grader(stage)


def short(grader: Grader) -> list[Case]:
    """Enough cases to tell the variants apart, and no more: the block's tail takes most of the time."""
    names = (
        "tokens_1",
        "tokens_2",
        "tokens_31",
        "tokens_33",
        "tokens_65",
        "falling_maximum",
        "large_scores",
        "drawn_4",
    )
    return [case for case in (*grader.stage.spec.cases, *grader.drawn(SEED)) if case.name in names]


@cache
def truth(grader: Grader, stated: str) -> tuple[Arrays, dict[str, Float64]]:
    case = Case.model_validate_json(stated)
    inputs = grader.inputs(case, SEED)
    return inputs, grader.reference(case, inputs)


def outcome(grader: Grader, case: Case, kernel: Kernel) -> CaseOutcome:
    """What a kernel computes for a case of the capstone, judged as a submission's would be."""
    inputs, expected = truth(grader, case.model_dump_json())
    return CaseOutcome(case, inputs, played(grader, case, inputs, kernel), expected)


def played(grader: Grader, case: Case, inputs: Arrays, kernel: Kernel) -> dict[str, RawTensor]:
    qkv = inputs["qkv"]
    heads = [qkv[:, at * DIM : (at + 1) * DIM] for at in range(HEADS + 2 * KV_HEADS)]
    per = HEADS // KV_HEADS
    out = [kernel(heads[h], heads[HEADS + h // per], heads[HEADS + KV_HEADS + h // per]) for h in range(HEADS)]
    judged = grader.finish(case, inputs, {"out": np.concatenate(out, axis=1)})
    return {name: RawTensor(str(each.dtype), each.shape, each.tobytes()) for name, each in judged.items()}


def names(grader: Grader, kernel: Kernel) -> list[str]:
    return [each.name for each in mistakes_of(grader, [outcome(grader, case, kernel) for case in short(grader)])]


def diagonal_but_for_the_first(row: np.ndarray, key: np.ndarray) -> np.ndarray:
    return (key < row) | ((row == 0) & (key == 0))


NAMED = {
    "alpha_missing_on_acc": Kernel(rescale_acc=False),
    "alpha_missing_on_l": Kernel(rescale_l=False),
    "alpha_missing": Kernel(rescale_acc=False, rescale_l=False),
    "tile_maximum": Kernel(maximum="own"),
    "no_maximum": Kernel(maximum="none"),
    "not_normalised": Kernel(divide=False),
    "tail_not_masked": Kernel(padded=True),
    "diagonal_excluded": Kernel(mask=diagonal_but_for_the_first),
    "future_visible_in_tile": Kernel(mask=lambda row, key: key // 32 <= row // 32),
    "scale_forgotten": Kernel(scale=1.0),
    "scale_not_a_root": Kernel(scale=1 / 64),
}
UNKNOWN = {
    "a window cut at tiles": Kernel(mask=lambda row, key: (key <= row) & (key // 32 > row // 32 - 2)),
    "sums begun anew": Kernel(reset_at=32),
    "bf16 scores": Kernel(rounds=lambda values: (values.view(np.uint32) & 0xFFFF0000).view(np.float32)),
    "every second key": Kernel(mask=lambda row, key: (key <= row) & ((key % 2 == 0) | (key == row))),
    "wrong scale": Kernel(scale=0.12),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_mistake_that_is_written_otherwise_is_named(grader: Grader, name: str) -> None:
    assert names(grader, NAMED[name]) == [name]


@pytest.mark.parametrize(("name", "tile"), [("alpha_missing_on_acc", 64), ("tail_not_masked", 32)])
def test_a_family_says_how_large_the_tiles_are(grader: Grader, name: str, tile: int) -> None:
    kernel = replace(NAMED[name], tile=tile)
    (found,) = mistakes_of(grader, [outcome(grader, case, kernel) for case in short(grader)])
    assert found.name == name
    assert re.search(rf"\b{tile}\b(?! or)( keys)?$", found.title), found.title


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_no_variant_computes_gets_no_name(grader: Grader, name: str) -> None:
    assert names(grader, UNKNOWN[name]) == []


def test_a_right_kernel_is_right_here(grader: Grader) -> None:
    """Or the kernels above would prove nothing."""
    for case in short(grader):
        it = outcome(grader, case, Kernel(tile=48))
        allowed = grader.tolerances(case)
        for name, want in it.expected.items():
            assert np.allclose(
                it.outputs[name].numbers(), want, rtol=allowed[name].relative, atol=allowed[name].absolute
            )


def test_several_that_fit_are_all_said(grader: Grader, stage: Stage) -> None:
    """In one tile of 32 keys two tilings are the same or not, and values that are all none are many mistakes'."""
    tokens_64 = next(case for case in stage.spec.cases if case.name == "tokens_64")
    only = [
        outcome(grader, case, Kernel(padded=True, tile=64)) for case in stage.spec.cases if case.name == "tokens_31"
    ]
    assert [each.name for each in mistakes_of(grader, only)] == ["tail_not_masked"]
    falling = next(case for case in stage.spec.cases if case.name == "falling_maximum")
    assert mistakes_of(grader, [outcome(grader, falling, Kernel(maximum="none"))]) == ()
    assert mistakes_of(grader, [outcome(grader, tokens_64, Kernel(maximum="none"))]) == ()


def test_one_more_run_decides_between_those_that_are_left(grader: Grader, stage: Stage) -> None:
    """In a case without a number nothing can be named; the same kernel on other inputs of that size has numbers."""
    falling = next(case for case in stage.spec.cases if case.name == "falling_maximum")
    kernel, asked = Kernel(maximum="none"), []

    def ask(case: Case, inputs: Arrays) -> Mapping[str, RawTensor]:
        asked.append(case.name)
        return played(grader, case, inputs, kernel)

    found = mistakes_of(grader, [outcome(grader, falling, kernel)], ask, SEED)
    assert [each.name for each in found] == ["no_maximum"]
    assert 1 <= len(asked) <= 3


def test_a_file_that_is_wrong_in_a_long_case_alone_is_named_in_a_few_seconds(grader: Grader, stage: Stage) -> None:
    """Most variants fall in the short cases; the long one is asked about those that are left."""
    profile = next(case for case in stage.spec.cases if case.name == "profile")
    profile = profile.model_copy(update={"params": {"tokens": 1060}})
    window = Kernel(tile=64, mask=lambda row, key: (key <= row) & (key > row - 1024))
    outcomes = [outcome(grader, case, window) for case in (*short(grader), profile)]
    began = time.thread_time()
    assert [each.name for each in mistakes_of(grader, outcomes)] == ["window_of_1024"]
    assert time.thread_time() - began < 8
