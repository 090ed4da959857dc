"""Compares what came out with what should have, on the trusted side, from raw bytes alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from kernelgate.protocol import CaseReport, TensorReport, WrongTensor
from kernelgate.reasons import Reason
from kernelgate.stages import Case, Stage, Tolerance
from worker.judging.arrays import Float64, RawTensor
from worker.judging.comparison import Comparison, compare
from worker.judging.failures import Failure
from worker.judging.grader import CaseOutcome, Grader
from worker.judging.pattern import describe, error_map


def check_form(stage: Stage, case: Case, outputs: Mapping[str, RawTensor], expected: Mapping[str, Float64]) -> None:
    """Names, shapes and dtypes before values. Raises Failure with `contract_violation`."""
    for name, want in expected.items():
        got = outputs.get(name)
        if got is None:
            raise _violation(Reason.MISSING_TENSOR, case, f"no tensor {name!r} came back; it has {sorted(outputs)}")
        if got.shape != want.shape:
            raise _violation(
                Reason.WRONG_SHAPE,
                case,
                f"{name} has shape {list(got.shape)}; the contract asks for {list(want.shape)}",
            )
        dtype = stage.dtype(case, name)
        if got.dtype != dtype:
            as_inputs = ", as the inputs are" if dtype == case.dtype else ""
            what = f"{name} is {got.dtype}; the contract asks for {dtype}{as_inputs}"
            raise _violation(Reason.WRONG_DTYPE, case, what)


def _violation(reason: Reason, case: Case, what: str) -> Failure:
    return Failure(reason, f"Case {case.name}: {what}.", case=case.name)


def judge_case(grader: Grader, outcome: CaseOutcome, ms: float | None) -> tuple[CaseReport, WrongTensor | None]:
    """The report of one case, and its earliest wrong tensor if it has one."""
    stage = grader.stage
    reports: list[TensorReport] = []
    first: WrongTensor | None = None
    for name, comparison in comparisons(grader, outcome).items():
        reports.append(_report(name, outcome.outputs[name], comparison))
        if first is None and comparison.wrong.any():
            first = _wrong_tensor(outcome.case, name, stage.spec.tensors[name].axes, comparison)
    report = CaseReport(
        name=outcome.case.name,
        title=outcome.case.title,
        group=outcome.case.group,
        state="wrong" if first else "right",
        ms=ms,
        tensors=tuple(reports),
    )
    return report, first


def comparisons(grader: Grader, outcome: CaseOutcome) -> dict[str, Comparison]:
    """Each judged tensor beside the right answer nearest to it, in judged order."""
    allowed, bounds = grader.tolerances(outcome.case), grader.bounds(outcome.case, dict(outcome.inputs))
    return {
        name: compare(outcome.outputs[name].numbers(), want, allowed[name], bound=bounds.get(name))
        for name, want in grader.accepted(outcome).items()
    }


def _report(name: str, raw: RawTensor, comparison: Comparison) -> TensorReport:
    with np.errstate(all="ignore"):
        relative = comparison.error / np.maximum(np.abs(comparison.want), np.finfo(np.float64).tiny)
    usable = np.where(comparison.want == 0, 0.0, relative)
    return TensorReport(
        name=name,
        shape=raw.shape,
        dtype=raw.dtype,
        max_abs_error=_worst(comparison.error),
        max_rel_error=_worst(usable),
        wrong=int(np.count_nonzero(comparison.wrong)),
        total=comparison.wrong.size,
    )


def _worst(errors: Float64) -> float:
    """The maximum, in which a NaN wins: numpy's does, and an empty tensor has no error."""
    return float(np.max(errors)) if errors.size else 0.0


def _wrong_tensor(case: Case, name: str, axes: tuple[str, ...], comparison: Comparison) -> WrongTensor:
    at = np.unravel_index(int(np.argmax(comparison.wrong)), comparison.wrong.shape)
    index = tuple(int(position) for position in at)
    return WrongTensor(
        case=case.name,
        tensor=name,
        index=index,
        axes=axes if len(axes) == len(index) else tuple(f"axis {position}" for position in range(len(index))),
        got=float(comparison.got[at]),
        want=float(comparison.want[at]),
        error=float(comparison.error[at]),
        tolerance=float(comparison.allowed[at]),
        wrong=int(np.count_nonzero(comparison.wrong)),
        total=comparison.wrong.size,
        pattern=describe(comparison.wrong, comparison.got, comparison.want, axes),
        map=error_map(comparison.excess, axes),
    )


def separations(
    grader: Grader,
    seed: str,
    cases: Iterable[Case],
    mistakes: Collection[str] | None = None,
    *,
    enough: float = math.inf,
) -> dict[str, tuple[str, float]]:
    """The case that shows a named mistake best: mistake → (case, largest error in tolerances; inf for NaN).

    mistakes: the names of those to look at; all of the stage's by default. enough: what has been shown by so many tolerances
    is not looked for in later cases, which may be long.
    """
    mistakes = [mistake.name for mistake in grader.stage.spec.mistakes] if mistakes is None else mistakes
    best: dict[str, tuple[str, float]] = dict.fromkeys(mistakes, ("", 0.0))
    for case in cases:
        hidden = [name for name, (_, shown) in best.items() if shown < enough]
        if not hidden:
            break
        inputs = grader.inputs(case, seed)
        truth = grader.reference(case, inputs)
        allowed = grader.tolerances(case)
        for name in hidden:
            variant = grader.reference(case, inputs, name)
            shown = max(
                (_separation(variant[tensor], want, allowed[tensor]) for tensor, want in truth.items()), default=0.0
            )
            if shown > best[name][1]:
                best[name] = (case.name, shown)
    return best


def _separation(variant: Float64, truth: Float64, tolerance: Tolerance) -> float:
    if variant.shape != truth.shape:
        return float("inf")
    excess = compare(variant, truth, tolerance).excess
    return float("inf") if not np.isfinite(excess).all() else float(excess.max(initial=0.0))
