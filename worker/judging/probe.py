"""What a wrong submission computes, found by asking it: inputs of our choice go the way of any case, and its outputs are read.

A stage says what its outputs are linear in (`probe = "linear in v"`). With unit vectors there, an output *is* the weights that
the submission gives: attention's softmax, row by row and key by key. They are recovered twice, for scores that are all equal,
where the weights are the mask, and for those of a case that went wrong; `weights.py` says how they differ from the true ones.
Nothing of this decides a verdict.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelgate.protocol import Recovered
from kernelgate.stages import PROBE
from worker.judging.arrays import Float64, stored_as
from worker.judging.failures import Failure
from worker.judging.grader import Arrays, CaseOutcome, Grader
from worker.judging.job import Ask
from worker.judging.weights import Weights, explained

SECONDS = 1.0
"""After so long nothing more is asked; what was begun is waited for."""
MOST_ROWS, MOST_ASKED = 128, 4
"""Rows of a case that is asked about, and how often it is asked for one set of weights."""
SHOWING = 65
"""Rows at which two tiles of a usual kernel and a little more take part: the case that is nearest to it is asked about."""


@dataclass(frozen=True)
class Linear:
    """The part of an input in which the outputs are linear: columns `first` to `last`, in groups of `width` side by side."""

    name: str
    first: int
    last: int
    width: int

    @classmethod
    def of(cls, stated: str, inputs: Arrays) -> Linear | None:
        """Read from a stage's line, for inputs that have it."""
        match = re.fullmatch(PROBE, stated)
        array = inputs.get(match["name"]) if match else None
        if match is None or array is None or array.ndim != 2:
            return None
        first, last = int(match["first"] or 0), int(match["last"] or array.shape[1])
        return cls(match["name"], first, last, int(match["width"] or last - first))

    def asked(self, inputs: Arrays, one: NDArray[np.generic], row: int, *, alone: bool) -> Arrays:
        """The inputs with unit vectors in the rows from `row` on. alone: everything else becomes 0, and all scores equal."""
        given = {name: np.zeros_like(array) if alone else array for name, array in inputs.items()}
        part = given[self.name].copy()
        part[:, self.first : self.last] = 0
        rows = np.arange(row, min(row + self.width, len(part)))
        for group in range(self.first, self.last, self.width):
            part[rows, group + rows - row] = one
        return {**given, self.name: part}

    def read(self, output: Float64, row: int, keys: int) -> Float64:
        """[group, output row, key] of the keys that were asked about."""
        count = min(self.width, keys - row)
        return output.reshape(len(output), -1, self.width).transpose(1, 0, 2)[:, :, :count]


def recovered(grader: Grader, wrong: Sequence[CaseOutcome], ask: Ask) -> Recovered | None:
    """The submission's weights and how they differ from the true ones; None where it cannot be asked or nothing shows."""
    chosen = _chosen(grader.stage.spec.probe, wrong)
    if chosen is None:
        return None
    outcome, linear = chosen
    began = time.monotonic()
    found = {}
    try:
        for alone in (True, False):
            weights = _weights(grader, outcome, linear, ask, alone=alone, until=began + SECONDS)
            if weights is not None:
                found[alone] = weights
    except Failure:
        pass
    return explained(outcome.case, found.get(True), found.get(False), 1e3 * (time.monotonic() - began))


def _chosen(stated: str, wrong: Sequence[CaseOutcome]) -> tuple[CaseOutcome, Linear] | None:
    """The wrong case with about the rows that show most; none that runs twice or whose outputs are no groups."""
    able = []
    for outcome in wrong:
        linear = Linear.of(stated, outcome.inputs)
        output = next(iter(outcome.expected.values()), None)
        twice = any(name.endswith("_changed") for name in outcome.inputs)
        if linear is None or output is None or twice or output.ndim != 2 or output.shape[1] % linear.width:
            continue
        if len(output) <= MOST_ROWS:
            able.append((outcome, linear))
    return min(able, key=lambda each: abs(len(each[0].inputs[each[1].name]) - SHOWING), default=None)


def _weights(
    grader: Grader, outcome: CaseOutcome, linear: Linear, ask: Ask, *, alone: bool, until: float
) -> Weights | None:
    case, keys = outcome.case, len(outcome.inputs[linear.name])
    name = next(iter(outcome.expected))
    one = stored_as(np.ones(1), grader.dtypes(case, outcome.inputs)[linear.name])
    got: list[Float64] = []
    want: list[Float64] = []
    for row in range(0, min(keys, MOST_ASKED * linear.width), linear.width):
        if got and time.monotonic() > until:
            break
        given = linear.asked(outcome.inputs, one, row, alone=alone)
        answer = ask(case, given)[name]
        if answer.shape != outcome.expected[name].shape:
            return None
        got.append(linear.read(answer.numbers(), row, keys))
        want.append(linear.read(grader.reference(case, given)[name], row, keys))
    if not got:
        return None
    step = 2.0**-7 if outcome.outputs[name].dtype in ("float16", "bfloat16") else 1e-4
    return Weights(np.concatenate(got, axis=2), np.concatenate(want, axis=2), keys, step)
