"""Which outputs follow an input, asked of kernels that read too little or too much."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgate.protocol import Recovered
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Case
from worker.judging.arrays import RawTensor
from worker.judging.dependence import dependences
from worker.judging.grader import Arrays, CaseOutcome, Grader

GRADER = Grader(load_stage(ROOT / "graders" / "row_sum"))
CASE = next(case for case in GRADER.stage.spec.cases if case.name == "past_warp")


def asked(sums: Callable[[np.ndarray], np.ndarray], case: Case = CASE) -> Recovered | None:
    def ask(which: Case, inputs: Arrays) -> Mapping[str, RawTensor]:
        assert which is case
        y = sums(inputs["x"]).astype(np.float32)
        return {"y": RawTensor("float32", y.shape, y.tobytes())}

    inputs = GRADER.inputs(case, "5eed")
    outcome = CaseOutcome(case, inputs, ask(case, inputs), GRADER.reference(case, inputs))
    return dependences(GRADER, [outcome], ask)


def test_a_tail_that_is_not_read() -> None:
    found = asked(lambda x: x[:, :32].sum(axis=1))
    assert found is not None
    assert found.said[0].startswith("3 values of y depend on the last column of x (32); none of them does here")


def test_a_row_that_is_counted_elsewhere() -> None:
    found = asked(lambda x: x.sum(axis=1) + np.array([0, x[2, 0], 0]))
    assert found is not None
    assert found.said == ("y at [1] changes with the last row of x (2), on which it should not depend; so do 0 more.",)


def test_a_factor_hides_no_input() -> None:
    assert asked(lambda x: 2 * x.sum(axis=1)) is None


def test_what_is_drawn_is_not_asked_about() -> None:
    assert asked(lambda x: x[:, :32].sum(axis=1), CASE.model_copy(update={"drawn": True})) is None
