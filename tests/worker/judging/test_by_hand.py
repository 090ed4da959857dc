"""A case that can be followed by hand is written out, and no other one: what is drawn stays unseen."""

from __future__ import annotations

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from worker.judging.arrays import RawTensor
from worker.judging.by_hand import by_hand
from worker.judging.grader import CaseOutcome, Grader

GRADER = Grader(load_stage(ROOT / "graders" / "online_softmax"))


def outcome(case: Case) -> CaseOutcome:
    inputs = GRADER.inputs(case, "5eed")
    expected = GRADER.reference(case, inputs)
    outputs = {name: RawTensor("float64", each.shape, each.tobytes()) for name, each in expected.items()}
    return CaseOutcome(case, inputs, outputs, expected)


def named(name: str) -> Case:
    return next(case for case in GRADER.stage.spec.cases if case.name == name)


def test_a_small_case_is_written_out() -> None:
    lines = by_hand(GRADER, outcome(named("analytic_attention")), "output")
    assert "k = [[0], [1.09861]]" in lines
    assert "v = [[2], [6]]" in lines
    assert lines[-2:] == ("output: got [[5]]", "output: want [[5]]")


def test_a_large_case_and_a_drawn_one_are_not() -> None:
    assert by_hand(GRADER, outcome(named("partial_tiles")), "output") == ()
    drawn = named("analytic_attention").model_copy(update={"drawn": True})
    assert by_hand(GRADER, outcome(drawn), "output") == ()
