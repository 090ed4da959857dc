"""A wrong case that is small enough to be followed by hand, written out: what went in, what came out, what should have."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from worker.judging.arrays import numbers_of
from worker.judging.grader import CaseOutcome, Grader

MOST_VALUES = 48
"""Of all inputs and the tensor together; more than that nobody follows on paper."""
MOST_LINES, WIDEST = 12, 400


def by_hand(grader: Grader, outcome: CaseOutcome, tensor: str) -> tuple[str, ...]:
    """Lines `x = [[3, 4]]`; none for a case that is larger, or that the stage does not list: what is drawn stays unseen."""
    case, want = outcome.case, outcome.expected[tensor]
    values = want.size + sum(array.size for array in outcome.inputs.values())
    if case.drawn or case.name not in {each.name for each in grader.stage.spec.cases} or values > MOST_VALUES:
        return ()
    dtypes = grader.dtypes(case, outcome.inputs)
    numbers = [f"{name} = {value:g}" for name, value in case.params.items() if _plain(value)]
    lines = [", ".join(numbers)] if numbers else []
    for name, array in outcome.inputs.items():
        lines.append(f"{name} = {_written(numbers_of(array, dtypes[name]))}")
    got = outcome.outputs[tensor].numbers()
    both = (f"{tensor}: got {_written(got)}", f"{tensor}: want {_written(want)}")
    return tuple(line[:WIDEST] for line in (*lines[: MOST_LINES - 2], *both))


def _plain(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written(values: NDArray[np.float64]) -> str:
    text = np.array2string(
        values, separator=", ", max_line_width=10_000, formatter={"float_kind": lambda x: f"{x:.6g}"}
    )
    return " ".join(text.split())
