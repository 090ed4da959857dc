"""The numbers of one case for the person who wrote the file: what went in, what came out, what should have."""

from __future__ import annotations

from kernelgate.protocol import CaseValues, Values
from kernelgate.stages import Case
from worker.judging.arrays import Array, numbers_of
from worker.judging.grader import Arrays, CaseOutcome, Grader

MOST = 64
"""Elements of an array that is shown; of a larger one only the shape is."""
MOST_ARRAYS = 16


def of_inputs(grader: Grader, case: Case, inputs: Arrays) -> CaseValues:
    dtypes = grader.dtypes(case, inputs)
    shown = [_values(name, dtypes[name], array, dtypes[name]) for name, array in inputs.items()]
    return CaseValues(case=case.name, inputs=tuple(shown[:MOST_ARRAYS]))


def of_outcome(grader: Grader, outcome: CaseOutcome) -> CaseValues:
    """All numbers of a case that ran; outputs in the order in which they are judged."""
    raw = {name: outcome.outputs[name] for name in outcome.expected}
    got = [_values(name, each.dtype, each.numbers(), "float64") for name, each in raw.items()]
    want = [_values(name, "float64", each, "float64") for name, each in outcome.expected.items()]
    inputs = of_inputs(grader, outcome.case, outcome.inputs)
    return inputs.model_copy(update={"got": tuple(got[:MOST_ARRAYS]), "want": tuple(want[:MOST_ARRAYS])})


def _values(name: str, dtype: str, array: Array, stored: str) -> Values:
    """`stored`: the dtype that the array's own bits stand for."""
    shown = numbers_of(array, stored).ravel().tolist() if array.size <= MOST else ()
    return Values(name=name, dtype=dtype, shape=array.shape, values=tuple(shown))
