"""What asking a wrong submission finds: whom its rows see, and how much each key weighs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from kernelgate.protocol import Recovered
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from tests.worker.judging.kernels import Kernel
from worker.judging.arrays import RawTensor
from worker.judging.grader import Arrays, CaseOutcome, Grader
from worker.judging.probe import recovered

STAGE = load_stage(ROOT / "graders" / "streaming_attention")
GRADER = Grader(STAGE)
CAUSAL = Case(
    name="rising",
    title="",
    group="",
    dtype="float16",
    params={"rows": 70, "dim": 64, "block_n": 32, "causal": True},
    data={"plant": "rising", "tile": 16},
)
SHORT_OF_ONE = CAUSAL.model_copy(update={"params": {**CAUSAL.params, "rows": 50, "causal": False}})


def asked(kernel: Kernel, case: Case = CAUSAL) -> Recovered | None:
    """A kernel as a submission that was wrong in one case."""

    def ask(which: Case, inputs: Arrays) -> Mapping[str, RawTensor]:
        assert which is case
        out = kernel(*(inputs[name].astype(np.float32) for name in "qkv")).astype(np.float16)
        return {"out": RawTensor("float16", out.shape, out.tobytes())}

    inputs = GRADER.inputs(case, "5eed")
    outcome = CaseOutcome(case, inputs, ask(case, inputs), GRADER.reference(case, inputs))
    return recovered(GRADER, [outcome], ask)


def but_for_the_first(row: np.ndarray, key: np.ndarray) -> np.ndarray:
    return (key < row) | ((row == 0) & (key == 0))


def every(row: np.ndarray, key: np.ndarray) -> np.ndarray:
    return (row >= 0) & (key >= 0)


SAID = {
    "diagonal": (Kernel(mask=lambda row, key: key < row), "Row t sees the keys 0 to t - 1", "row 1 does not see key 1"),
    "diagonal, first row spared": (Kernel(mask=but_for_the_first), "0 to t - 1 (but for row 0)", "row 1 does not see key 1"),
    "one too many": (Kernel(mask=lambda row, key: key <= row + 1), "0 to t + 1", "row 0 sees key 1"),
    "all": (Kernel(mask=every), "Row t sees the keys 0 to the last", "row 0 sees key 1"),
    "future in the tile": (Kernel(mask=lambda row, key: key // 16 <= row // 16), "0 to ⌊t/16⌋·16 + 15", "row 0 sees key 1"),
    "window": (Kernel(mask=lambda row, key: (key <= row) & (key > row - 20)), "t - 19 (a window of 20) to t", "row 20"),
    "window of tiles": (
        Kernel(mask=lambda row, key: (key <= row) & (key // 16 >= row // 16)), "⌊t/16⌋·16 to t", "row 16 does not see key 0"
    ),
    "every second": (
        Kernel(mask=lambda row, key: (key <= row) & ((key % 2 == 0) | (key == row))), "not all of them", "row 2 does not see"
    ),
    "sum not divided by": (Kernel(divide=False), "not divided by their sum", "each weighs 1"),
    "sums begun anew": (Kernel(reset_at=32), "keys", "row 32 does not see key 0"),
    "scale forgotten": (Kernel(scale=1.0), "scores 8 times as large", ""),
    "scale of a narrower head": (Kernel(scale=0.25), "scores 2 times as large", ""),
    "base two": (Kernel(exp2=True), "scores 0.693 times as large", ""),
    "no scores": (Kernel(scale=0.0), "All visible keys weigh the same", ""),
    "acc not rescaled": (Kernel(rescale_acc=False, tile=16), "in tiles of 16 keys", "was not rescaled when the running"),
    "nothing rescaled": (
        Kernel(rescale_acc=False, rescale_l=False, tile=16), "in tiles of 16 keys", "was not rescaled when the running"
    ),
    "l not rescaled": (Kernel(rescale_l=False, tile=16), "every key weighs e^-", "their sum is not"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_wrong_is_said_with_its_numbers(name: str) -> None:
    kernel, *words = SAID[name]
    found = asked(kernel)
    assert found is not None
    said = " ".join(found.said)
    assert all(word in said for word in words), said
    assert len(found.said) + 1 + len(found.text) <= 12
    assert found.ms < 5000


def test_padded_keys_are_counted() -> None:
    found = asked(Kernel(padded=True, mask=every), SHORT_OF_ONE)
    assert found is not None
    assert "as if 14 more keys of score 0 were counted" in " ".join(found.said)


def test_a_right_kernel_is_told_nothing() -> None:
    for tile in (16, 48):
        assert asked(Kernel(tile=tile)) is None


def test_the_picture_shows_both_maps() -> None:
    found = asked(Kernel(mask=lambda row, key: key < row))
    assert found is not None
    true, theirs = zip(*(line.split(" | ") for line in found.text), strict=True)
    assert true != theirs
    assert theirs[0][0] == "?"
    assert len(found.text) == 8
    assert len({len(line) for line in found.text}) == 1


@pytest.mark.parametrize("content", [np.nan, np.inf, 0.0, 1e300, -1.0])
def test_any_answer_is_read(content: float) -> None:
    """What is asked again may answer anything: nothing of it is an error of ours."""
    inputs = GRADER.inputs(CAUSAL, "5eed")
    expected = GRADER.reference(CAUSAL, inputs)
    filled = np.full(expected["out"].shape, content)
    filled[::3, ::2] = 0.5
    raw = {"out": RawTensor("float64", filled.shape, filled.tobytes())}

    def ask(case: Case, given: Arrays) -> Mapping[str, RawTensor]:
        del case, given
        return raw

    with np.errstate(all="ignore"):
        found = recovered(GRADER, [CaseOutcome(CAUSAL, inputs, raw, expected)], ask)
    assert found is not None
    assert all(len(line) < 300 for line in found.said)
