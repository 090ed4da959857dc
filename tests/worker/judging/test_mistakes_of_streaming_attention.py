"""The same for attention in half precision: every mistake of the stage, written otherwise, has its name, and no other one."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from tests.worker.judging.kernels import Kernel, Mask
from worker.judging.arrays import RawTensor
from worker.judging.grader import CaseOutcome, Grader
from worker.judging.mistakes import mistakes_of

SEED = "5eed"
STAGE = load_stage(ROOT / "graders" / "streaming_attention")
GRADER = Grader(STAGE)
LONGEST = 260


@cache
def cases() -> list[Case]:
    """The short cases of values alone: what is drawn among them tells small things apart."""
    every = (*STAGE.spec.cases, *GRADER.drawn(SEED))
    return [
        case
        for case in every
        if not case.refused and int(str(case.params["rows"])) <= LONGEST and "changed_from" not in case.data
    ]


def read(stored: np.ndarray) -> np.ndarray:
    return (stored.astype(np.uint32) << 16).view(np.float32) if stored.dtype == np.uint16 else stored.astype(np.float32)


def written(values: np.ndarray, dtype: str) -> RawTensor:
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return RawTensor(dtype, values.shape, values.astype(np.float16).tobytes())
    bits = values.astype(np.float32).view(np.uint32)
    rounded = np.where(np.isnan(values), 0x7FC0, (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return RawTensor(dtype, values.shape, rounded.tobytes())


def every(row: np.ndarray, key: np.ndarray) -> np.ndarray:
    return (row >= 0) & (key >= 0)


def outcome(case: Case, kernel: Kernel, mask: Mask | None, scale: float | None) -> CaseOutcome:
    """scale: of the scores' own, in place of 1."""
    inputs = GRADER.inputs(case, SEED)
    q, k, v = (read(inputs[name]) for name in "qkv")
    causal = bool(case.params["causal"])
    changes = {"tile": int(str(case.params["block_n"])), "padded": kernel.padded and not causal}
    changes |= {} if scale is None else {"scale": scale / np.sqrt(q.shape[1])}
    changes |= {"mask": every} if not causal else {"mask": mask} if mask else {}
    out = replace(kernel, **changes)(q, k, v)
    return CaseOutcome(case, inputs, {"out": written(out, case.dtype)}, GRADER.reference(case, inputs))


def names(kernel: Kernel, mask: Mask | None = None, scale: float | None = None) -> list[str]:
    return [each.name for each in mistakes_of(GRADER, [outcome(case, kernel, mask, scale) for case in cases()])]


BY_KERNEL = {
    "numerator_not_rescaled": Kernel(rescale_acc=False),
    "denominator_not_rescaled": Kernel(rescale_l=False),
    "nothing_rescaled": Kernel(rescale_acc=False, rescale_l=False),
    "no_maximum": Kernel(maximum="none"),
    "not_normalised": Kernel(divide=False),
    "key_tail_not_masked": Kernel(padded=True),
}
BY_MASK: dict[str, Mask] = {
    "diagonal_excluded": lambda row, key: (key < row) | ((row == 0) & (key == 0)),
    "one_key_too_many": lambda row, key: key < row + 2,
    "future_visible": every,
    "future_visible_in_tile": lambda row, key: key < (row // 16 + 1) * 16,
}
BY_SCALE = {"base_two": np.log(2.0), "mean_of_values": 0.0}
UNKNOWN: dict[str, Mask] = {
    "a window": lambda row, key: (key <= row) & (key > row - 20),
    "a window of tiles": lambda row, key: (key <= row) & (key // 32 >= row // 32),
    "the tile above": lambda row, key: (key <= row) & (key // 16 != row // 16 - 1),
    "every second key": lambda row, key: (key <= row) & ((key % 2 == 0) | (key == row)),
    "two diagonals": lambda row, key: (key < row - 1) | (key == 0),
}


@pytest.mark.parametrize("name", BY_KERNEL)
def test_a_sum_or_a_maximum_gone_wrong(name: str) -> None:
    assert names(BY_KERNEL[name]) == [name]


@pytest.mark.parametrize("name", BY_MASK)
def test_a_mask_gone_wrong(name: str) -> None:
    assert names(Kernel(), BY_MASK[name]) == [name]


@pytest.mark.parametrize("name", BY_SCALE)
def test_a_scale_gone_wrong(name: str) -> None:
    assert names(Kernel(), scale=float(BY_SCALE[name])) == [name]


def test_scales_that_depend_on_the_head() -> None:
    """Missing, or by the dim: each is what another factor is for each head size."""
    for name, exponent in (("scale_forgotten", 0.5), ("scale_not_a_root", -0.5)):
        outcomes = [outcome(case, Kernel(), None, int(str(case.params["dim"])) ** exponent) for case in cases()]
        assert [each.name for each in mistakes_of(GRADER, outcomes)] == [name]


@pytest.mark.parametrize("name", UNKNOWN)
def test_another_mask_gets_no_name(name: str) -> None:
    assert names(Kernel(), UNKNOWN[name]) == []


def test_a_variant_that_fails_in_other_places_is_not_taken_for_it() -> None:
    """The tile's own maximum in a kernel that skips tiles without a visible key: our variant has no values there."""
    assert names(Kernel(maximum="own")) == []


def test_a_sum_that_is_rounded_is_named() -> None:
    """By the one case that shows it; other cases are right with it too."""
    small = next(case for case in STAGE.spec.cases if case.name == "small_addends")
    large = next(case for case in STAGE.spec.cases if case.name == "large_scores")
    inputs = GRADER.inputs(small, SEED)
    expected, variant = GRADER.reference(small, inputs), GRADER.reference(small, inputs, "narrow_accumulator")
    wrong = CaseOutcome(small, inputs, {"out": written(variant["out"].astype(np.float32), small.dtype)}, expected)
    assert "narrow_accumulator" in [
        each.name for each in mistakes_of(GRADER, [wrong, outcome(large, Kernel(), None, None)])
    ]


def test_scales_that_are_nobodys_get_no_name() -> None:
    assert names(Kernel(), scale=1.3) == []
    assert names(Kernel(reset_at=32)) == []
