"""Which of a stage's named mistakes a wrong submission makes.

A variant of the reference is held against the submission case by case, the cheap cases first, and falls where it cannot explain
one: where the submission is right and the variant is not, or where both are wrong in different ways. A name is said
when one variant is left; of several that are left, all are said. So a case that is wrong in every value, of which many variants
are a fit, names nothing by itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kernelgate.protocol import NamedMistake
from kernelgate.stages import Case, Stage, Tolerance
from worker.judging.arrays import Float64, numbers_of, stored_as
from worker.judging.comparison import Comparison, compare
from worker.judging.failures import Failure
from worker.judging.grader import CaseOutcome, Grader
from worker.judging.job import Ask
from worker.judging.judge import comparisons

WIDER = 4.0
"""A submission that makes a known mistake rounds differently from our variant of it, so the match is a little wider."""
NEAR = 2e-5
"""Of a variant's distance from the truth, what a submission may be off it: far from the truth, rounding is large as well."""
SEPARATION = 10.0
"""A named mistake must stand out of the tolerance by this factor in some case, or no submission could be told of it."""
SECONDS = 6.0
"""Processor seconds that a name may take; a case that would take longer is left out."""
CHEAP = 0.3
"""Seconds of a case that is still looked at when one variant alone is left and has explained several."""
MOST_ASKED_OF, MOST_DRAWN, MOST_ASKED = 4, 6, 3
"""Variants that a further run is made for, distributions that are tried for each of two cases, and runs in all."""
SLOWER = 2.0
"""How many times the truth's time a variant is expected to take."""


class Fit(Enum):
    """What one case says of one variant."""

    SAYS_NOTHING = 0
    EXPLAINS = 1
    DIFFERS = 2
    """One has no value where the other has one, and that is most of what is wrong."""
    CONTRADICTS = 3
    """Both have values, and other ones."""


@dataclass
class Standing:
    """One variant in the cases so far. shown: whether it explained a value, and not only that there was none.

    absent: right cases in which the variant has no value. A kernel may see to that, so it counts only where nothing was shown.
    """

    name: str
    explained: int = 0
    differed: int = 0
    absent: int = 0
    shown: bool = False
    contradicted: bool = False

    def stands(self, wrong: int) -> bool:
        """Whether it can still be the mistake. wrong: cases in all; a fourth of them may be off, by rounding or beside it."""
        return (
            not self.contradicted
            and 4 * self.differed <= wrong
            and (self.explained > 0 or self.differed + self.absent < 3)
        )

    def certain(self) -> bool:
        return self.shown and self.explained >= 3 + 3 * self.differed

    def explains(self) -> bool:
        """One case without any number is no explanation; several are, if no other variant fits."""
        against = self.differed if self.shown else self.differed + self.absent
        return (self.shown or self.explained > 1) and self.explained >= 3 * against


def mistakes_of(
    grader: Grader, outcomes: Sequence[CaseOutcome], ask: Ask | None = None, seed: str = ""
) -> tuple[NamedMistake, ...]:
    """The named mistakes that explain a wrong submission: none, the one, or several that no case tells apart.

    ask: how the submission is run once more, on inputs that tell those apart that are left. seed: of what is drawn for it.
    """
    stage = grader.stage
    compared = {outcome.case.name: comparisons(grader, outcome) for outcome in outcomes}
    cases = sorted(outcomes, key=lambda outcome: grader.seconds(outcome.case))
    standing = _left(grader, cases, compared)
    best = _best(standing)
    if (
        ask is not None
        and len({stage.mistake(each.name).name for each in best}) != 1
        and 0 < len(standing) <= MOST_ASKED_OF
    ):
        wrong = [outcome for outcome in cases if not _right(compared[outcome.case.name])]
        _tell_apart(grader, wrong, standing, ask, random.Random(f"{seed}/deciding"))  # noqa: S311
        best = _best([each for each in standing if not each.contradicted])
    return tuple(_families(stage, [each.name for each in best]))


def _families(stage: Stage, members: Sequence[str]) -> Iterator[NamedMistake]:
    """One name for each family, which says what its members have that are left."""
    for name in dict.fromkeys(stage.mistake(each).name for each in members):
        yield named(stage, name, [each for each in members if stage.mistake(each).name == name])


def _left(
    grader: Grader, cases: Sequence[CaseOutcome], compared: Mapping[str, Mapping[str, Comparison]]
) -> list[Standing]:
    """The variants that stand after the cases, which are in order of their cost."""
    named_here = [mistake for mistake in grader.stage.spec.mistakes if mistake.violation is None]
    names = [member for mistake in named_here for member in mistake.members]
    wrong = sum(not _right(each) for each in compared.values())
    standing = [Standing(name) for name in names]
    began = time.thread_time()
    for outcome in cases:
        left = SECONDS - (time.thread_time() - began)
        cost = len(standing) * SLOWER * grader.seconds(outcome.case)
        if cost > (CHEAP if len(standing) == 1 and standing[0].certain() else left):
            continue
        for each in standing:
            _consider(grader, outcome, compared[outcome.case.name], each)
        standing = [each for each in standing if each.stands(wrong)]
    return [each for each in standing if each.explained]


def _tell_apart(
    grader: Grader, wrong: Sequence[CaseOutcome], standing: Sequence[Standing], ask: Ask, rng: random.Random
) -> None:
    """Runs the cheapest wrong cases again, with what other cases are filled with, where the variants then differ."""
    asked = 0
    for outcome in wrong[:2]:
        others = list(grader.stage.spec.cases)
        rng.shuffle(others)
        for other in others[:MOST_DRAWN]:
            drawn = _filled(grader, outcome, other, rng)
            if drawn is None or not _differ(grader, drawn, standing):
                continue
            try:
                outputs = ask(outcome.case, dict(drawn.inputs))
            except Failure:
                return
            answered = replace(drawn, outputs=outputs)
            for each in standing:
                _consider(grader, answered, comparisons(grader, answered), each)
            asked += 1
            if (
                asked == MOST_ASKED
                or len([each for each in standing if each.explains() and not each.contradicted]) == 1
            ):
                return


def _filled(grader: Grader, outcome: CaseOutcome, other: Case, rng: random.Random) -> CaseOutcome | None:
    """The case with another one's distribution: its sizes, which are whole numbers, stay as they were recorded."""
    kept = {key: value for key, value in outcome.case.data.items() if isinstance(value, int)}
    if set(other.data) != set(outcome.case.data):
        return None
    update = {"data": {**other.data, **kept}, "tolerance": other.tolerance or outcome.case.tolerance}
    case = outcome.case.model_copy(update=update)
    inputs = grader.made(case, np.random.default_rng(rng.getrandbits(64)))
    forms = [{name: (each.shape, each.dtype) for name, each in given.items()} for given in (inputs, outcome.inputs)]
    if forms[0] != forms[1]:
        return None
    return CaseOutcome(case, inputs, {}, grader.reference(case, inputs))


def _differ(grader: Grader, drawn: CaseOutcome, standing: Sequence[Standing]) -> bool:
    """Whether what the case would show tells all variants apart, or the one that is left from the truth."""
    allowed = grader.tolerances(drawn.case)
    tensors: list[Mapping[str, Float64]] = [grader.reference(drawn.case, drawn.inputs, each.name) for each in standing]
    tensors += [drawn.expected] if len(tensors) == 1 else []
    return all(
        any((compare(one[name], other[name], allowed[name], widened=SEPARATION).wrong).any() for name in drawn.expected)
        for one, other in combinations(tensors, 2)
    )


def _best(standing: Sequence[Standing]) -> list[Standing]:
    """Those that explain most; one that explains less has differed where they have not."""
    able = [each for each in standing if each.explains()]
    most = max((each.explained for each in able), default=0)
    return [each for each in able if each.explained == most]


def named(stage: Stage, name: str, members: Sequence[str] = ()) -> NamedMistake:
    mistake = stage.mistake(name)
    return NamedMistake(name=mistake.name, title=mistake.said_of(members), hint=mistake.hint)


def _consider(grader: Grader, outcome: CaseOutcome, compared: Mapping[str, Comparison], standing: Standing) -> None:
    variant = {
        name: _as_stored(values, grader.stage.dtype(outcome.case, name))
        for name, values in grader.reference(outcome.case, outcome.inputs, standing.name).items()
    }
    fit, shown = fits(compared, variant, grader.tolerances(outcome.case))
    if fit is Fit.EXPLAINS:
        standing.explained += 1
        standing.shown |= shown
    elif fit is Fit.DIFFERS and _right(compared):
        standing.absent += 1
    elif fit is not Fit.SAYS_NOTHING:
        standing.differed += 1
        standing.contradicted |= fit is Fit.CONTRADICTS and _right(compared)


def _near(each: Comparison, theirs: Float64) -> NDArray[np.bool_]:
    """Where a wrong value lies as good as on the variant's, for how far both are from the truth."""
    with np.errstate(all="ignore"):
        return each.wrong & (np.abs(each.got - theirs) <= NEAR * np.abs(theirs - each.want))


def _as_stored(values: Float64, dtype: str) -> Float64:
    """What an output of that dtype has of a variant: infinity where it is beyond the largest number."""
    with np.errstate(over="ignore", invalid="ignore"):
        return numbers_of(stored_as(values, dtype), dtype)


def _right(compared: Mapping[str, Comparison]) -> bool:
    return not any(each.wrong.any() for each in compared.values())


def fits(
    compared: Mapping[str, Comparison], variant: Mapping[str, Float64], allowed: Mapping[str, Tolerance]
) -> tuple[Fit, bool]:
    """What a case says of a variant, and whether by more than values that are none.

    NaN and infinity are one thing, for which of them comes of an overflow is the kernel's own affair. Of what is wrong no more
    than half may have a value in one and none in the other; a row that sees no key may have been seen to.
    """
    damaged = unlike = shown = 0
    for name, each in compared.items():
        got, wrong, theirs = each.got, each.wrong, variant.get(name)
        if theirs is None or got.shape != theirs.shape:
            return Fit.CONTRADICTS, False
        both = np.isfinite(got) & np.isfinite(theirs)
        widened = WIDER if wrong.any() else SEPARATION
        other = compare(got, theirs, allowed[name], widened=widened).wrong & both
        if (other & ~_near(each, theirs)).any():
            return Fit.CONTRADICTS, False
        damaged += int(wrong.sum())
        without = np.isfinite(got) != np.isfinite(theirs)
        unlike += int((without & wrong if wrong.any() else without).sum())
        shown += int((wrong & both).sum()) + int(0 < np.isfinite(got).sum() < got.size and not without.any())
    if 2 * unlike > damaged:
        return Fit.DIFFERS, False
    return (Fit.EXPLAINS, shown > 0) if damaged else (Fit.SAYS_NOTHING, False)
