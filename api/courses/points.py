"""What attempts are worth: by a stage's rule, less for being late or paid with late days in the way that gives most.

Each person has the course's late days for what they do alone, each team has them for what it does jointly. How they are spent
is worked out over all stages at once; among ways of equal worth the one with the fewest days counts.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from operator import is_
from typing import NamedTuple

from api.courses.attempts import Attempt, Judging, Place, Rules, Term
from kernelgate.models import LateRule, PointsRule
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict, passing

RIGHT = frozenset({Verdict.ACCEPTED, Verdict.CORRECT, Verdict.GATE_MISSED})
Judged = Callable[[Attempt], Judging | None]


class Mark(NamedTuple):
    """Points of a person in a stage. attempt: the one that earned them; days: late days that it costs; late: days it was late;
    override: the reason of points given by hand."""

    points: float
    attempt: str | None = None
    days: int = 0
    late: int = 0
    override: str | None = None


def as_fixed(attempt: Attempt) -> Judging | None:
    return attempt.fixed


def as_judged_now(attempt: Attempt) -> Judging | None:
    return attempt.now


class Worked:
    """What was worked out before and still holds: the options of members in a stage, and how they spend their days on them.

    Whoever keeps it forgets the stages that changed; marks() puts in what is missing.
    """

    def __init__(self) -> None:
        self.options: dict[str, dict[tuple[int, ...], list[Mark]]] = {}
        self._spent: dict[tuple[tuple[int, ...], bool], tuple[list[list[Mark]], list[Mark]]] = {}

    def without(self, changed: Iterable[str]) -> Worked:
        found = Worked()
        found.options = {stage: dict(known) for stage, known in self.options.items() if stage not in set(changed)}
        found._spent = dict(self._spent)
        return found

    def take(self, other: Worked, differ: Container[Place], ratios: Container[str]) -> None:
        """What `other` worked out from judgings that are the same here. differ: where they are not; ratios: stages in which
        another's judging matters too."""
        for stage, known in other.options.items():
            if stage not in ratios:
                own = self.options.setdefault(stage, {})
                for members, options in known.items():
                    if not any((member, stage) in differ for member in members):
                        own.setdefault(members, options)
        for unit, spent in other._spent.items():
            self._spent.setdefault(unit, spent)

    def spent(self, unit: tuple[tuple[int, ...], bool], options: list[list[Mark]], budget: int) -> list[Mark]:
        """`spend`, unless the very same options were spent before."""
        known = self._spent.get(unit)
        if known is not None and len(known[0]) == len(options) and all(map(is_, known[0], options)):
            return known[1]
        chosen = spend(options, budget)
        self._spent[unit] = (options, chosen)
        return chosen


def marks(
    term: Term, stages: Mapping[str, Stage], judged: Judged = as_fixed, worked: Worked | None = None
) -> dict[Place, Mark]:
    """Of every member in every stage of the course. Of a stage whose folder is gone, what passes is what was accepted."""
    worked = worked or Worked()
    best = {
        rules.stage: _fastest(term, rules, judged)
        for rules in term.rules
        if rules.rule == PointsRule.RATIO and rules.stage not in worked.options
    }
    found: dict[Place, Mark] = {}
    alone = [rules for rules in term.rules if not rules.joint]
    jointly = [rules for rules in term.rules if rules.joint]
    for members, teamed in _units(term):
        rows = jointly if teamed else alone if term.team(members[0]) else term.rules
        options, key = [], tuple(members)
        for rules in rows:
            known = worked.options.setdefault(rules.stage, {})
            if key not in known:
                stage, fastest = stages.get(rules.stage), best.get(rules.stage, {})
                known[key] = _options(term, rules, members, stage, judged, fastest)
            options.append(known[key])
        for rules, mark in zip(rows, worked.spent((key, teamed), options, term.course.late_days), strict=True):
            for member in members:
                found[member, rules.stage] = mark
    for place, given in term.overrides.items():
        if place in found:
            found[place] = Mark(given.points, override=given.reason)
    return found


def _units(term: Term) -> list[tuple[list[int], bool]]:
    """Who earns and pays together: everybody alone, and each team, which is told by True."""
    teams: dict[int, list[int]] = {}
    for each in term.people:
        if each.team:
            teams.setdefault(each.team, []).append(each.id)
    return [*(([each.id], False) for each in term.people), *((members, True) for members in teams.values())]


def _fastest(term: Term, rules: Rules, judged: Judged) -> dict[str | None, float]:
    """By GPU model, the best speedup in the course that counts."""
    found: dict[str | None, float] = {}
    for person in term.people:
        for attempt in term.attempts.get((person.id, rules.stage), ()):
            now = judged(attempt)
            if (
                now is not None
                and now.speedup
                and now.verdict in RIGHT
                and not attempt.apart
                and _in_time(rules, attempt)
            ):
                found[attempt.gpu_model] = max(found.get(attempt.gpu_model, 0.0), now.speedup)
    return found


def _in_time(rules: Rules, attempt: Attempt) -> bool:
    return attempt.days_late == 0 or (rules.late != LateRule.NONE and attempt.days_late <= rules.late_limit)


def _options(
    term: Term,
    rules: Rules,
    members: Iterable[int],
    stage: Stage | None,
    judged: Judged,
    fastest: Mapping[str | None, float],
) -> list[Mark]:
    """The best mark for each number of late days that is worth paying, fewest days first; the first costs none."""
    passes = passing(gated=stage is not None and stage.spec.gate is not None)
    best: dict[int, Mark] = {0: Mark(0.0)}
    attempts = [each for member in members for each in term.attempts.get((member, rules.stage), ())]
    for attempt in sorted(attempts, key=lambda each: (each.at, each.id)):
        now = judged(attempt)
        if now is None or attempt.apart or not _in_time(rules, attempt):
            continue
        earned = worth(rules, now, passes, fastest.get(attempt.gpu_model, 0.0))
        late = attempt.days_late
        if rules.late == LateRule.PENALTY:
            earned *= max(0.0, 1 - rules.late_percent * late / 100)
        days = late if rules.late == LateRule.DAYS else 0
        if earned > best.get(days, best[0]).points:
            best[days] = Mark(round(earned, 4), attempt.id, days, late)
    options = [best[0]]
    for days in sorted(best)[1:]:
        if best[days].points > options[-1].points:
            options.append(best[days])
    return options


def worth(rules: Rules, now: Judging, passes: frozenset[Verdict], fastest: float) -> float:
    """Points of one judging by the stage's rule, lateness aside."""
    match rules.rule:
        case PointsRule.THRESHOLDS:
            speedup = now.speedup or 0.0
            reached = [
                points
                for least, points in rules.steps
                if (now.verdict in passes if least == 0 else now.verdict in RIGHT and speedup >= least)
            ]
            return max(reached, default=0.0)
        case PointsRule.RATIO:
            return rules.points * now.speedup / fastest if now.speedup and fastest and now.verdict in RIGHT else 0.0
        case PointsRule.CASES:
            return rules.points * (1.0 if now.verdict in passes else now.share)
    return rules.points if now.verdict in passes else 0.0


def spend(options: list[list[Mark]], budget: int) -> list[Mark]:
    """One option of each stage, so that the points are the most that the budget of days can buy, for the fewest days."""
    ways: dict[int, tuple[float, list[Mark]]] = {0: (0.0, [])}
    for stage in options:
        extended: dict[int, tuple[float, list[Mark]]] = {}
        for spent, (points, chosen) in ways.items():
            for mark in stage:
                days = spent + mark.days
                if days <= budget and points + mark.points > extended.get(days, (-1.0, []))[0]:
                    extended[days] = (points + mark.points, [*chosen, mark])
        ways = extended
    return max(ways.items(), key=lambda way: (round(way[1][0], 6), -way[0]))[1][1]
