"""On which inputs a wrong submission's outputs depend: a part of one is changed, and what moves is held against the truth.

A tail that is not read leaves its outputs the same bit for bit; a wrong stride moves outputs that the input has no part in.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from kernelgate.protocol import Recovered
from worker.judging.arrays import Float64, RawTensor
from worker.judging.failures import Failure
from worker.judging.grader import Arrays, CaseOutcome, Grader
from worker.judging.job import Ask

SECONDS = 1.0
MOST_VALUES = 1 << 16
"""Of an input that is asked about."""
FAR = 20.0
"""Tolerances by which a value has moved; less is rounding."""
Corner = tuple[str, tuple[int | slice, ...]]


def dependences(grader: Grader, wrong: Sequence[CaseOutcome], ask: Ask) -> Recovered | None:
    """What the outputs of the smallest wrong case do not follow, or follow without a reason; None where nothing shows."""
    able = [each for each in wrong if not each.case.drawn and _places(each.inputs) and _finite(each)]
    outcome = min(able, key=lambda each: sum(array.size for array in each.inputs.values()), default=None)
    if outcome is None:
        return None
    began, said = time.monotonic(), list[str]()
    try:
        for name, (words, place) in _places(outcome.inputs):
            if time.monotonic() - began > SECONDS or len(said) >= 3:
                break
            said += _asked(grader, outcome, ask, name, words, place)
    except Failure:
        pass
    if not said:
        return None
    ms = 1e3 * (time.monotonic() - began)
    title = "Which outputs follow an input, found by changing a part of it"
    return Recovered(
        case=outcome.case.name, title=title, said=tuple(said[:3]), text=(), rows=0, columns=0, got="", want="", ms=ms
    )


def _places(inputs: Arrays) -> list[tuple[str, Corner]]:
    """The last and the first element along the last axis, and the last row, of each floating-point input."""
    found: list[tuple[str, Corner]] = []
    for name, array in inputs.items():
        if array.dtype.kind != "f" or not 1 < array.size <= MOST_VALUES:
            continue
        last = array.shape[-1] - 1
        axis = "column" if array.ndim > 1 else "element"
        found.append((name, (f"the last {axis} of {name} ({last})", (..., last))))  # type: ignore[arg-type]
        if array.ndim > 1 and len(array) > 1:
            found.append((name, (f"the last row of {name} ({len(array) - 1})", (-1,))))
    return found


def _finite(outcome: CaseOutcome) -> bool:
    return all(np.isfinite(outcome.outputs[name].numbers()).all() for name in outcome.expected)


def _asked(
    grader: Grader, outcome: CaseOutcome, ask: Ask, name: str, words: str, place: tuple[int | slice, ...]
) -> Iterator[str]:
    changed = outcome.inputs[name].copy()
    changed[place] = changed[place] + 1 + np.abs(changed[place])
    given = {**outcome.inputs, name: changed}
    answer, truth = ask(outcome.case, given), grader.reference(outcome.case, given)
    allowed = grader.tolerances(outcome.case)
    for tensor, want in outcome.expected.items():
        got, then = outcome.outputs[tensor].numbers(), _numbers(answer.get(tensor), want)
        if then is None:
            continue
        bound = FAR * (
            allowed[tensor].absolute + allowed[tensor].relative * np.maximum(np.abs(want), np.abs(truth[tensor]))
        )
        should = np.abs(truth[tensor] - want) > bound
        deaf = should & (got == then)
        stray = (truth[tensor] == want) & (np.abs(then - got) > bound)
        if deaf.any():
            every = (
                "none of them does" if deaf.sum() == should.sum() else f"{int(deaf.sum())} do not, first {_at(deaf)}"
            )
            count = "1 value of" if should.sum() == 1 else f"{int(should.sum())} values of"
            verb = "depends" if should.sum() == 1 else "depend"
            yield f"{count} {tensor} {verb} on {words}; {every} here: nothing there is read for them."
        elif stray.any():
            more = int(stray.sum()) - 1
            yield f"{tensor} at {_at(stray)} changes with {words}, on which it should not depend; so do {more} more."


def _numbers(raw: RawTensor | None, like: Float64) -> Float64 | None:
    return raw.numbers() if raw is not None and raw.shape == like.shape else None


def _at(found: NDArray[np.bool_]) -> str:
    return str([int(axis[0]) for axis in np.nonzero(found)])
