"""What the members of a course submitted to its stages, as it is judged now and as it was judged when what counts was fixed.

A stage's due time fixes its judgings: of each submission the newest one made until then counts, or the first where all are
later. Judging again afterwards changes nothing until an instructor takes it over (`marked_at`). Our own failures never count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from kernelgate.models import Course, CourseRole, CourseStage, Extension, Member, Override, PointsRule, Team, User
from kernelgate.verdicts import Verdict

_DAY = timedelta(days=1)
Place = tuple[int, str]
"""A person and a stage."""


class Judging(NamedTuple):
    """share: of the cases that are right, read only where points go by it. round: the judging's."""

    verdict: Verdict
    speedup: float | None
    share: float = 0.0
    round: int = 1


class Attempt(NamedTuple):
    """A submission of a member. `now`: as it is judged; `fixed`: what counts of it. apart: hidden or held, it earns nothing."""

    id: str
    user: int
    at: datetime
    apart: bool
    gpu_model: str | None
    now: Judging | None
    fixed: Judging | None
    days_late: int


class Rules(NamedTuple):
    """A row of CourseStage as what is worked out reads it. A row of the database itself looks up each of its columns anew,
    which for ten thousand cells is a third of all that a grid costs."""

    stage: str
    due_at: datetime | None
    marked_at: datetime | None
    late: str
    late_percent: float
    late_limit: int
    joint: bool
    rule: str
    points: float
    steps: list[list[float]]


class Person(NamedTuple):
    """A member; `team` is 0 for none."""

    id: int
    handle: str
    person: str
    email: str
    team: int
    team_name: str


@dataclass
class Term:
    """A course with what was done in it. attempts: in the order they were made."""

    course: Course
    people: list[Person]
    rules: list[Rules]
    extensions: dict[Place, datetime]
    overrides: dict[Place, Override]
    attempts: dict[Place, list[Attempt]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._teams = {each.id: each.team for each in self.people}

    def team(self, user: int) -> int:
        """The team of a member, 0 for none."""
        return self._teams.get(user, 0)

    def due(self, user: int, rules: Rules | CourseStage) -> datetime | None:
        return self.extensions.get((user, rules.stage), rules.due_at)


Attempts = dict[Place, list[Attempt]]


def term(
    database: Session, course: Course, *, users: Iterable[int] | None = None, known: Mapping[str, Attempts] = {}
) -> Term:
    """The whole course, or some of its members. known: by stage what was read before and still holds."""
    found = Term(course, _people(database, course), _rules(database, course), {}, {})
    if users is not None:
        chosen = set(users)
        found.people = [person for person in found.people if person.id in chosen]
    for row in database.scalars(select(Extension).where(Extension.course_id == course.id)):
        found.extensions[row.user_id, row.stage] = row.due_at
    for given in database.scalars(select(Override).where(Override.course_id == course.id)):
        found.overrides[given.user_id, given.stage] = given
    _read(database, found, known)
    for attempts in known.values():
        found.attempts.update(attempts)
    return found


def _people(database: Session, course: Course) -> list[Person]:
    rows = database.execute(
        select(User.id, User.handle, Member.person, Member.email, Member.team_id, Team.name)
        .join(Member, Member.user_id == User.id)
        .outerjoin(Team, Team.id == Member.team_id)
        .where(Member.course_id == course.id, Member.role == CourseRole.MEMBER)
    )
    people = [Person(*row[:4], row[4] or 0, row[5] or "") for row in rows]
    return sorted(people, key=lambda each: each.handle.lower())


def _rules(database: Session, course: Course) -> list[Rules]:
    wanted = select(*(getattr(CourseStage, name) for name in Rules._fields)).where(CourseStage.course_id == course.id)
    rows = database.execute(wanted.order_by(CourseStage.place, CourseStage.due_at, CourseStage.stage))
    return [Rules(*row) for row in rows]


_ATTEMPTS = text("""
SELECT s.id, s.user_id, s.stage, s.created_at, s.hidden OR s.held IS NOT NULL, s.gpu_model, s.verdict, s.speedup, s.round
FROM submissions s
WHERE s.user_id = ANY(:users) AND s.stage = ANY(:stages) AND s.trial IS NULL AND s.state <> 'cancelled'
ORDER BY s.created_at, s.id
""")
_AGAIN = text("""
SELECT r.submission_id, r.created_at, r.verdict, r.speedup, r.round FROM results r JOIN submissions s ON s.id = r.submission_id
WHERE s.user_id = ANY(:users) AND s.stage = ANY(:stages) AND s.trial IS NULL AND s.round > 1
ORDER BY r.submission_id, r.round
""")
_SHARES = text("""
SELECT r.submission_id, r.round,
       jsonb_array_length(jsonb_path_query_array(r.body, '$.cases[*] ? (@.state == "right")'))::float
       / greatest(jsonb_array_length(r.body->'cases'), 1)
FROM results r WHERE r.submission_id = ANY(:missing)
""")
_KEPT_SHARES: dict[tuple[str, str, int], float] = {}
"""By database, submission and round. A result never changes, and to look into each one's cases takes longer than all else."""
_MOST_SHARES = 200_000


def _shares(database: Session, wanted: list[tuple[str, int]]) -> dict[tuple[str, int], float]:
    """The share of right cases of each judging of these submissions; `wanted` says how many rounds each has."""
    where = str(database.get_bind().engine.url)
    missing = [name for name, rounds in wanted if (where, name, rounds) not in _KEPT_SHARES]
    if len(_KEPT_SHARES) > _MOST_SHARES:
        _KEPT_SHARES.clear()
        missing = [name for name, _ in wanted]
    for name, number, share in database.execute(_SHARES, {"missing": missing}) if missing else ():
        _KEPT_SHARES[where, name, number] = share
    rounds_of = ((name, number) for name, rounds in wanted for number in range(1, rounds + 1))
    return {key: _KEPT_SHARES[where, *key] for key in rounds_of if (where, *key) in _KEPT_SHARES}


def _read(database: Session, found: Term, known: Mapping[str, Attempts]) -> None:
    rules = {each.stage: each for each in found.rules if each.stage not in known}
    if not rules:
        return
    asked = {"users": [each.id for each in found.people], "stages": [*rules]}
    again: dict[str, list[Any]] = {}
    for row in database.execute(_AGAIN, asked):
        again.setdefault(row.submission_id, []).append(row)
    rows = database.execute(_ATTEMPTS, asked).all()
    by_share = {name for name, each in rules.items() if each.rule == PointsRule.CASES}
    shares = _shares(database, [(row.id, row.round) for row in rows if row.stage in by_share])
    newest = {name: share for (name, _), share in shares.items()}
    for name, user, stage, at, apart, model, verdict, speedup, rounds in rows:
        due = found.extensions.get((user, stage), rules[stage].due_at)
        judged = _judging(verdict, speedup, newest.get(name, 0.0), rounds)
        fixed = judged
        if rounds > 1 and due is not None:
            fixed = _fixed(again.get(name, []), max(due, rules[stage].marked_at or due), shares)
        late = 0 if due is None or at <= due else math.ceil((at - due) / _DAY)
        attempt = Attempt(name, user, at, apart, model, judged, fixed, late)
        found.attempts.setdefault((user, stage), []).append(attempt)


_VERDICTS = {str(verdict): verdict for verdict in Verdict}


def _judging(verdict: str | None, speedup: float | None, share: float, number: int) -> Judging | None:
    if verdict is None or verdict == Verdict.JUDGE_ERROR:
        return None
    return Judging(_VERDICTS[verdict], speedup, share, number)


def _fixed(results: list[Any], until: datetime, shares: dict[tuple[str, int], float]) -> Judging | None:
    """Of a submission's judgings the newest until then, else the first."""
    sound = [row for row in results if row.verdict != Verdict.JUDGE_ERROR]
    early = [row for row in sound if row.created_at <= until]
    if not sound:
        return None
    row = early[-1] if early else sound[0]
    return _judging(row.verdict, row.speedup, shares.get((row.submission_id, row.round), 0.0), row.round)
