"""What the participants of a contest reached in each stage, and its board: more points first, then less time.

A stage is worth what its rule gives to the best attempt of the contest's time. Its time is that of the first attempt which
reached these points, in minutes from the start, and a penalty for each judged attempt before it, which what did not compile
does not cost. Everybody has a clock of their own: a virtual start moves it, and the same minutes of all are compared.

A frozen board knows what was made before the freeze; of later attempts it shows that there are some. They are revealed one at a
time, as contests do it on a stage: from the last place upwards the next stage that somebody tried, and whoever rises by it
leaves the place to the one who was above.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from api.courses.attempts import Attempt, Rules, Term
from api.courses.points import RIGHT, worth
from kernelgate.contests import Contest
from kernelgate.models import PointsRule
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict, passing

_MINUTE = timedelta(minutes=1)
_FREE = frozenset({Verdict.COMPILE_ERROR})
"""Verdicts that cost no penalty."""


class Participant(NamedTuple):
    """A team, or a person without one. begun: when their clock started."""

    name: str
    users: tuple[int, ...]
    begun: datetime
    virtual: bool


class Score(NamedTuple):
    """A participant in a stage. minutes: with penalties; tries: judged attempts up to the one that counts, all where none does;
    hidden: attempts that the freeze keeps back."""

    points: float = 0.0
    minutes: int = 0
    tries: int = 0
    hidden: int = 0


class Line(NamedTuple):
    """A participant on the board. Sorted, lines stand as on it."""

    participant: Participant
    scores: dict[str, Score]

    @property
    def points(self) -> float:
        return round(sum(each.points for each in self.scores.values()), 4)

    @property
    def minutes(self) -> int:
        return sum(each.minutes for each in self.scores.values() if each.points)

    @property
    def merit(self) -> tuple[float, int]:
        return -self.points, self.minutes


def _order(line: Line) -> tuple[float, int, str]:
    return *line.merit, line.participant.name.lower()


def participants(term: Term, contest: Contest, starts: Mapping[int, datetime]) -> list[Participant]:
    teams: dict[tuple[int, str], list[int]] = {}
    for each in term.people:
        key = (each.team, each.team_name) if each.team else (-each.id, each.handle)
        teams.setdefault(key, []).append(each.id)
    found = []
    for (_, name), users in teams.items():
        own = [starts[user] for user in users if user in starts]
        found.append(Participant(name, tuple(users), min(own) if own else contest.starts_at, bool(own)))
    return found


class Scores:
    """A contest's attempts on everybody's own clock. Boards of any minute are made of it."""

    def __init__(
        self, term: Term, contest: Contest, starts: Mapping[int, datetime], stages: Mapping[str, Stage]
    ) -> None:
        self.rules = list(term.rules)
        self.people = participants(term, contest, starts)
        self.length = contest.ends_at - contest.starts_at
        self._passes = {
            rules.stage: passing(gated=rules.stage in stages and stages[rules.stage].spec.gate is not None)
            for rules in self.rules
        }
        self._made = {
            (each.users, rules.stage): self._clocked(term, each, rules.stage)
            for each in self.people
            for rules in self.rules
        }

    def _clocked(self, term: Term, who: Participant, stage: str) -> list[tuple[timedelta, Attempt]]:
        made = (each for user in who.users for each in term.attempts.get((user, stage), ()))
        timed = [(each.at - who.begun, each) for each in made if not each.apart]
        return sorted((each for each in timed if timedelta() <= each[0] < self.length), key=lambda each: each[0])

    def board(self, until: timedelta, *, frozen: bool = False) -> list[Line]:
        """As everything made `until` then stands. frozen: with how many later attempts there are; whoever has a start of their
        own is not frozen, for they come when all is revealed, or are compared afterwards."""
        fastest = {rules.stage: self._fastest(rules, until) for rules in self.rules if rules.rule == PointsRule.RATIO}
        lines = [
            Line(
                who,
                {
                    rules.stage: self._score(
                        who, rules, self.length if frozen and who.virtual else until, fastest.get(rules.stage, {})
                    )
                    for rules in self.rules
                },
            )
            for who in self.people
        ]
        return sorted(lines, key=_order)

    def _fastest(self, rules: Rules, until: timedelta) -> dict[str | None, float]:
        found: dict[str | None, float] = {}
        for who in self.people:
            for at, each in self._made[who.users, rules.stage]:
                if at < until and each.now and each.now.speedup and each.now.verdict in RIGHT:
                    found[each.gpu_model] = max(found.get(each.gpu_model, 0.0), each.now.speedup)
        return found

    def _score(
        self,
        who: Participant,
        rules: Rules,
        until: timedelta,
        fastest: Mapping[str | None, float],
    ) -> Score:
        best, at_best, tries, tries_best = 0.0, timedelta(), 0, 0
        made = self._made[who.users, rules.stage]
        for at, each in made:
            if at >= until or each.now is None:
                continue
            points = worth(rules, each.now, self._passes[rules.stage], fastest.get(each.gpu_model, 0.0))
            tries += each.now.verdict not in _FREE
            if points > best + 1e-9:
                best, at_best, tries_best = points, at, tries
        hidden = sum(at >= until for at, _ in made)
        if not best:
            return Score(tries=tries, hidden=hidden)
        return Score(round(best, 4), at_best // _MINUTE, tries_best, hidden)


def with_penalties(lines: Iterable[Line], penalty: int) -> list[Line]:
    """Each stage's minutes with those for the attempts before the one that counts."""
    found = []
    for line in lines:
        scores = {
            stage: score._replace(minutes=score.minutes + penalty * (score.tries - 1)) if score.points else score
            for stage, score in line.scores.items()
        }
        found.append(line._replace(scores=scores))
    return sorted(found, key=_order)


def kept_back(lines: Iterable[Line]) -> int:
    """How many results are there to reveal."""
    return sum(score.hidden > 0 for line in lines for score in line.scores.values())


def reveal(frozen: list[Line], final: Iterable[Line], steps: int) -> tuple[list[Line], tuple[str, str] | None]:
    """The frozen board with the first `steps` results revealed, and whose result in which stage was the last one."""
    truth = {line.participant.users: line.scores for line in final}
    standing, last = list(frozen), None
    place = len(standing) - 1
    while steps and place >= 0:
        line = standing[place]
        stage = next((name for name, score in line.scores.items() if score.hidden), None)
        if stage is None:
            place -= 1
            continue
        del standing[place]
        opened = line._replace(scores={**line.scores, stage: truth[line.participant.users][stage]})
        insort(standing, opened, key=_order)
        place = max(place, standing.index(opened))
        steps, last = steps - 1, (line.participant.name, stage)
    return standing, last


def ranks(lines: list[Line]) -> list[int]:
    """Equal points in equal time share a rank."""
    found: list[int] = []
    for place, line in enumerate(lines):
        found.append(found[-1] if place and line.merit == lines[place - 1].merit else place + 1)
    return found
