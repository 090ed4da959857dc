"""What a course comes to, its marks and its grid, kept while nothing that they are made of changes.

Of 20,000 attempts it takes half a second to put together, and every page and export of a course asks for it. What was
judged, hidden or held changes the stages' board versions, in the transaction that does it; what the course says is a hash of
its few rows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from api.courses.attempts import Person, Place, Term, term
from api.courses.changes import changes
from api.courses.grid import grid
from api.courses.points import Mark, marks
from api.courses.schemas import Change, Grid, GridRow
from kernelgate.models import Course, now
from kernelgate.stages import Stage

_VERSION = text("""
SELECT
    (SELECT string_agg(v.stage || ' ' || v.version, ',' ORDER BY v.stage) FROM board_versions v
     WHERE v.stage = '' OR v.stage IN (SELECT stage FROM course_stages WHERE course_id = :course)),
    (SELECT md5(string_agg(t::text, '' ORDER BY user_id)) FROM course_members t WHERE course_id = :course),
    (SELECT md5(string_agg(t::text, '' ORDER BY id)) FROM course_teams t WHERE course_id = :course),
    (SELECT md5(string_agg(t::text, '' ORDER BY stage)) FROM course_stages t WHERE course_id = :course),
    (SELECT md5(string_agg(t::text, '' ORDER BY stage, user_id)) FROM course_extensions t WHERE course_id = :course),
    (SELECT md5(string_agg(t::text, '' ORDER BY stage, user_id)) FROM course_overrides t WHERE course_id = :course),
    (SELECT late_days FROM courses WHERE id = :course)
""")


class Standing(NamedTuple):
    """rounds: of each submission that counts, the judging that does. changes: what newer judgings would change."""

    people: list[Person]
    grid: Grid
    marks: Mapping[Place, Mark]
    rounds: Mapping[str, int]
    changes: list[Change]


_KEPT: dict[tuple[str, int], tuple[object, Standing]] = {}
_MOST = 32
_KEEPING = threading.Lock()
_MINUTES = 5
"""Who looks stuck depends on the time as well."""


def version_of(database: Session, course: Course, stages: Mapping[str, Stage]) -> tuple[object, ...]:
    """Changes with whatever the attempts and rules of a course are made of."""
    hashes = tuple((name, stage.hash) for name, stage in stages.items())
    return *database.execute(_VERSION, {"course": course.id}).one(), hashes


def standing(database: Session, course: Course, stages: Mapping[str, Stage]) -> Standing:
    """Of everybody in the course. It is shared: nobody may change it."""
    key = (str(database.get_bind().engine.url), course.id)
    # Read before the grid: what commits in between is in the grid, and the next look puts it together again.
    version = (version_of(database, course, stages), int(now().timestamp() // (60 * _MINUTES)))
    kept = _KEPT.get(key)
    if kept is not None and kept[0] == version:
        return kept[1]
    made = _standing(database, term(database, course), stages)
    with _KEEPING:
        _KEPT.pop(key, None)
        while len(_KEPT) >= _MOST:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = (version, made)
    return made


def _standing(database: Session, found: Term, stages: Mapping[str, Stage]) -> Standing:
    earned = marks(found, stages)
    counts = {mark.attempt for mark in earned.values() if mark.attempt is not None}
    attempts = (each for attempts in found.attempts.values() for each in attempts)
    rounds = {each.id: each.fixed.round for each in attempts if each.id in counts and each.fixed is not None}
    return Standing(found.people, grid(database, found, earned, stages), earned, rounds, changes(found, earned, stages))


def whole_grid(database: Session, course: Course, stages: Mapping[str, Stage]) -> Grid:
    """Of everybody in the course."""
    return standing(database, course, stages).grid


def row_of(database: Session, course: Course, stages: Mapping[str, Stage], handle: str) -> GridRow | None:
    """One person's row; None for somebody who is no member."""
    return next((row for row in whole_grid(database, course, stages).rows if row.handle == handle), None)
