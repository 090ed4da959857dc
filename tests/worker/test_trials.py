"""One case run alone: its numbers come back, and it is never more than correct."""

from __future__ import annotations

import pytest

from kernelgate.protocol import Result, Trial
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict
from worker.grade import grade
from worker.sandbox import Sandbox

HONEST = "def scaling(x, y, factor):\n    print('rows', len(x))\n    return factor * x + y\n"


def run(stage: Stage, sandbox: Sandbox, source: str, **inputs: tuple[float, ...]) -> Result:
    trial = Trial(case="by_hand", inputs=inputs)
    return grade(stage, source.encode(), sandbox=sandbox, seed="00", trial=trial)


def test_a_right_case_shows_its_numbers_and_what_was_printed_for_it(small_stage: Stage, sandbox: Sandbox) -> None:
    result = run(small_stage, sandbox, HONEST)
    assert (result.verdict, result.reason) == (Verdict.CORRECT, "case_right")
    assert [case.name for case in result.cases] == ["by_hand"]
    assert result.output == "rows 1\n"
    assert result.values is not None
    assert {each.name: each.values for each in result.values.inputs} == {"x": (1.0, 2.0), "y": (10.0, 20.0)}
    assert result.values.got[0].values == result.values.want[0].values == (12.0, 24.0)


def test_own_values_take_the_place_of_the_graders(small_stage: Stage, sandbox: Sandbox) -> None:
    result = run(small_stage, sandbox, HONEST.replace("factor * x", "x"), x=(3.0, -1.0))
    assert result.verdict is Verdict.WRONG_ANSWER
    assert result.values is not None
    assert result.values.inputs[0].values == (3.0, -1.0)
    assert result.values.want[0].values == (16.0, 18.0)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [({"x": (1.0,)}, "x has 2 values, of shape [1, 2]; 1 were given"), ({"z": (1.0,)}, "these inputs do: x, y")],
)
def test_values_that_do_not_fit_are_named(
    small_stage: Stage, sandbox: Sandbox, inputs: dict[str, tuple[float, ...]], said: str
) -> None:
    result = run(small_stage, sandbox, HONEST, **inputs)
    assert (result.verdict, result.reason) == (Verdict.CONTRACT_VIOLATION, "own_inputs")
    assert said in result.message


def test_a_case_that_fails_shows_what_went_in(small_stage: Stage, sandbox: Sandbox) -> None:
    result = run(small_stage, sandbox, "def scaling(x, y, factor):\n    raise KeyError(3)\n")
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.values is not None
    assert [each.name for each in result.values.inputs] == ["x", "y"]
    assert result.values.got == ()


def test_a_wrong_answer_shows_the_numbers_of_its_first_wrong_case(small_stage: Stage, sandbox: Sandbox) -> None:
    result = grade(small_stage, b"def scaling(x, y, factor):\n    return x + y\n", sandbox=sandbox, seed="00")
    assert result.verdict is Verdict.WRONG_ANSWER
    assert result.values is not None
    assert result.values.case == "by_hand"
    assert result.values.got[0].values == (11.0, 22.0)
