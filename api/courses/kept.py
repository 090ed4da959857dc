"""What a course comes to, its marks and its grid, kept while nothing that they are made of changes.

Of 33,000 attempts it takes seconds to put together, and every page and export of a course asks for it. What was judged, hidden
or held changes its stage's board version, in the transaction that does it; what the course says is a hash of its few rows. So
an attempt costs one stage's working out, and not all.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from api.courses.attempts import Attempts, Person, Place, Term, term
from api.courses.changes import changes
from api.courses.grid import grid
from api.courses.points import Mark, Worked, marks
from api.courses.schemas import Cell, Change, Grid, GridRow
from kernelgate.models import Course, now
from kernelgate.stages import Stage

_VERSION = text("""
SELECT
    (SELECT version FROM board_versions WHERE stage = ''),
    (SELECT md5(string_agg(t::text, '' ORDER BY user_id)) FROM course_members t WHERE course_id = :course),
    (SELECT md5(string_agg(t::text, '' ORDER BY id)) FROM course_teams t WHERE course_id = :course),
    (SELECT late_days FROM courses WHERE id = :course)
""")
_MARKS = text("""
SELECT md5(string_agg(t::text, '' ORDER BY stage, user_id)) FROM course_overrides t WHERE course_id = :course
""")
_STAGES = text("""
SELECT c.stage, md5(c::text), (SELECT v.version FROM board_versions v WHERE v.stage = c.stage),
       (SELECT md5(string_agg(e::text, '' ORDER BY user_id)) FROM course_extensions e
        WHERE e.course_id = c.course_id AND e.stage = c.stage)
FROM course_stages c WHERE c.course_id = :course
""")


class Version(NamedTuple):
    """What a course's attempts and rules are made of. people: all that changes everything; stages: of each its own."""

    people: tuple[object, ...]
    by_hand: object
    stages: dict[str, tuple[object, ...]]


class Standing(NamedTuple):
    """rounds: of each submission that counts, the judging that does. changes: what newer judgings would change."""

    people: list[Person]
    grid: Grid
    marks: Mapping[Place, Mark]
    rounds: Mapping[str, int]
    changes: list[Change]


class _Kept(NamedTuple):
    """A standing with what it was put together from. Of a change, only the stages that it touched are worked out anew."""

    version: Version
    clock: int
    standing: Standing
    attempts: dict[str, Attempts]
    fixed: Worked
    newest: Worked
    cells: dict[Place, Cell]


_KEPT: dict[tuple[str, int], _Kept] = {}
_MOST = 32
_KEEPING = threading.Lock()
_MINUTES = 5
"""Who looks stuck depends on the time as well."""


def version_of(database: Session, course: Course, stages: Mapping[str, Stage]) -> Version:
    asked = {"course": course.id}
    of_stages = {
        row[0]: (*row[1:], stages[row[0]].hash if row[0] in stages else None)
        for row in database.execute(_STAGES, asked)
    }
    return Version(tuple(database.execute(_VERSION, asked).one()), database.scalar(_MARKS, asked), of_stages)


def standing(database: Session, course: Course, stages: Mapping[str, Stage]) -> Standing:
    """Of everybody in the course. It is shared: nobody may change it."""
    key = (str(database.get_bind().engine.url), course.id)
    # Read before the grid: what commits in between is in the grid, and the next look puts it together again.
    version, clock = version_of(database, course, stages), int(now().timestamp() // (60 * _MINUTES))
    kept = _KEPT.get(key)
    if kept is not None and kept.version == version and kept.clock == clock:
        return kept.standing
    with _uncollected():
        made = _made(database, course, stages, version, clock, kept)
    with _KEEPING:
        _KEPT.pop(key, None)
        while len(_KEPT) >= _MOST:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = made
    return made.standing


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's collector of cycles, which would look through a hundred thousand tuples again each time that some more
    were made: it took half of the time, and nothing here is a cycle. Two threads may be in here; whoever ends first turns it
    on for the other as well."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _made(
    database: Session, course: Course, stages: Mapping[str, Stage], version: Version, clock: int, kept: _Kept | None
) -> _Kept:
    if kept is None or kept.version.people != version.people:
        kept = None
    same = {name for name, own in version.stages.items() if kept is not None and kept.version.stages.get(name) == own}
    changed = {*version.stages, *(kept.version.stages if kept else ())} - same
    found = term(database, course, known={name: kept.attempts[name] for name in same} if kept else {})
    fixed = kept.fixed.without(changed) if kept else Worked()
    newest = kept.newest.without(changed) if kept else Worked()
    cells = kept.cells if kept and kept.clock == clock else {}
    known = {place: cell for place, cell in cells.items() if place[1] in same}
    shown = _standing(database, found, stages, fixed, newest, known)
    attempts: dict[str, Attempts] = {name: {} for name in version.stages}
    for place, made in found.attempts.items():
        attempts.setdefault(place[1], {})[place] = made
    ids = [person.id for person in shown.people]
    drawn = {(user, cell.stage): cell for user, row in zip(ids, shown.grid.rows, strict=True) for cell in row.cells}
    return _Kept(version, clock, shown, attempts, fixed, newest, drawn)


def _standing(
    database: Session,
    found: Term,
    stages: Mapping[str, Stage],
    fixed: Worked,
    newest: Worked,
    known: Mapping[Place, Cell],
) -> Standing:
    earned = marks(found, stages, worked=fixed)
    counts = {mark.attempt for mark in earned.values() if mark.attempt is not None}
    attempts = (each for attempts in found.attempts.values() for each in attempts)
    rounds = {each.id: each.fixed.round for each in attempts if each.id in counts and each.fixed is not None}
    drawn = grid(database, found, earned, stages, known)
    return Standing(found.people, drawn, earned, rounds, changes(found, earned, stages, fixed, newest))


def whole_grid(database: Session, course: Course, stages: Mapping[str, Stage]) -> Grid:
    """Of everybody in the course."""
    return standing(database, course, stages).grid


def row_of(database: Session, course: Course, stages: Mapping[str, Stage], handle: str) -> GridRow | None:
    """One person's row; None for somebody who is no member."""
    return next((row for row in whole_grid(database, course, stages).rows if row.handle == handle), None)
