"""Who stands where. Only `accepted` submissions of enabled accounts that are neither hidden nor held count, each by its newest
judging.

What counts now stands in `places`, which every transaction that changes it keeps. A frozen board shows the judgings made until
it was frozen and nothing later, and is put together from them.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from kernelgate.stages import Ranking


class Entry(NamedTuple):
    """One user's place. `attempts`: graded submissions up to and with this one, judge errors aside."""

    rank: int
    user: str
    submission: str
    accepted_at: datetime
    attempts: int
    gpu_model: str | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None


# The statements below are put together from constants; what varies goes in as bound parameters.
_ACCEPTED = """
WITH newest AS (
    SELECT DISTINCT ON (r.submission_id)
           r.submission_id, r.verdict, r.speedup, r.speedup_low, r.speedup_high
    FROM results r JOIN submissions s ON s.id = r.submission_id
    WHERE s.stage = :stage AND s.trial IS NULL AND r.created_at <= :until
    ORDER BY r.submission_id, r.round DESC
), graded AS (
    SELECT s.id, s.user_id, u.handle, s.created_at, s.hidden, s.gpu_model,
           n.verdict, n.speedup, n.speedup_low, n.speedup_high,
           s.held, count(*) FILTER (WHERE n.verdict <> 'judge_error')
               OVER (PARTITION BY s.user_id ORDER BY s.created_at, s.id) AS attempts
    FROM newest n JOIN submissions s ON s.id = n.submission_id JOIN users u ON u.id = s.user_id
    WHERE u.disabled_at IS NULL
), accepted AS (
    SELECT * FROM graded WHERE verdict = 'accepted' AND NOT hidden AND held IS NULL
)
"""

_ENTRY = "handle, id, created_at, attempts, gpu_model, speedup, speedup_low, speedup_high"
_FIRST = f"""
SELECT rank() OVER (ORDER BY created_at) AS rank, {_ENTRY} FROM {{rows}} AS first ORDER BY created_at, id
"""  # noqa: S608
_TIMED = f"""
SELECT 0 AS rank, {_ENTRY} FROM {{rows}} AS timed
WHERE speedup IS NOT NULL AND gpu_model IS NOT NULL ORDER BY speedup DESC, created_at, id
"""  # noqa: S608
_FIRST_THEN = "(SELECT DISTINCT ON (user_id) * FROM accepted ORDER BY user_id, created_at, id)"
_BEST_THEN = (
    "(SELECT DISTINCT ON (user_id, gpu_model) * FROM accepted "
    "ORDER BY user_id, gpu_model, speedup DESC NULLS LAST, created_at, id)"
)


def placed(*kinds: str) -> str:
    """A query of the places of these kinds in :stage as they are now, of enabled accounts, with their handles."""
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    return (
        "(SELECT p.*, p.submission_id AS id, u.handle FROM places p JOIN users u ON u.id = p.user_id "  # noqa: S608
        f"WHERE p.stage = :stage AND p.kind IN ({listed}) AND u.disabled_at IS NULL)"
    )


class Each(StrEnum):
    """What has a place of its own on a speedup board."""

    PERSON = "person"
    """Everybody's best on a GPU model."""
    SUBMISSION = "submission"
    """Every accepted and timed submission."""


_STATEMENTS = {
    (Ranking.FIRST_ACCEPTED, Each.PERSON): (_FIRST, placed("first"), _FIRST_THEN),
    (Ranking.SPEEDUP, Each.PERSON): (_TIMED, placed("best"), _BEST_THEN),
    (Ranking.SPEEDUP, Each.SUBMISSION): (_TIMED, placed("best", "timed"), "accepted"),
}
"""What asks for a board, and of which rows: as it is, and as it was."""


@dataclass(frozen=True, eq=False)
class Places:
    """A board's entries, best first. What is asked of all of them is worked out once and kept with them."""

    entries: tuple[Entry, ...]

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def of_user(self) -> dict[str, list[int]]:
        """Handle to its places on the board, counted from 0."""
        found: dict[str, list[int]] = {}
        for place, entry in enumerate(self.entries):
            found.setdefault(entry.user, []).append(place)
        return found

    def first_slower(self, speedup: float) -> int:
        """The first place with a lower speedup; how many places there are if there is none."""
        return bisect_left(self._falling, True, key=lambda lowest: lowest < speedup)

    @cached_property
    def _falling(self) -> list[float]:
        """The lowest speedup up to each place. Within a shared rank the earlier stands first, so speedups alone do not fall."""
        return list(accumulate((entry.speedup or 0.0 for entry in self.entries), min))


@dataclass(frozen=True)
class Board:
    """Every place of a stage: by GPU model on a speedup board, else under None.

    models: those with entries, the one with the most people first.
    """

    models: tuple[str, ...]
    places: dict[str | None, Places]

    def of(self, model: str | None) -> Places:
        return self.places.get(model, _NOBODY)


_NOBODY = Places(())


_VERSION = text("SELECT stage, version FROM board_versions WHERE stage IN (:stage, '') ORDER BY stage")
_PLACES_VERSION = text("SELECT stage, places FROM board_versions WHERE stage IN (:stage, '') ORDER BY stage")
_KEPT: dict[tuple[object, ...], tuple[object, Board]] = {}
_KEPT_BOARDS = 64
_KEEPING = threading.Lock()


def board(
    database: Session, stage: str, ranking: Ranking, *, each: Each = Each.PERSON, until: datetime | None = None
) -> Board:
    """The board as it is now, or as it was `until`. Kept while its version stays, which every transaction that changes anything
    it is made of changes too (see the migrations that made `board_versions` and `places`)."""
    key = (str(database.get_bind().engine.url), stage, ranking, each, until)
    # The version is read before the board: what commits in between is in the board, and the next look puts it together again.
    version = [tuple(row) for row in database.execute(_VERSION if until else _PLACES_VERSION, {"stage": stage})]
    kept = _KEPT.get(key)
    if kept is not None and kept[0] == version:
        return kept[1]
    made = _board(database, stage, ranking, each, until)
    with _KEEPING:
        _KEPT.pop(key, None)
        while len(_KEPT) >= _KEPT_BOARDS:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = (version, made)
    return made


def _board(database: Session, stage: str, ranking: Ranking, each: Each, until: datetime | None) -> Board:
    each = Each.PERSON if ranking is Ranking.FIRST_ACCEPTED else each
    statement, now, then = _STATEMENTS[ranking, each]
    asked = _ACCEPTED + statement.format(rows=then) if until else statement.format(rows=now)
    found = database.execute(text(asked), {"stage": stage, **({"until": until} if until else {})})
    if ranking is Ranking.FIRST_ACCEPTED:
        return Board((), {None: Places(tuple(Entry(*row) for row in found))})
    by_model: dict[str | None, list[Entry]] = {}
    people: dict[str, set[str]] = {}
    for row in found:
        entry = Entry(*row)
        by_model.setdefault(entry.gpu_model, []).append(entry)
        people.setdefault(str(entry.gpu_model), set()).add(entry.user)
    models = sorted(people, key=lambda model: (-len(people[model]), model))
    return Board(tuple(models), {model: Places(tuple(ranked(entries))) for model, entries in by_model.items()})


def ranked(by_speedup: Sequence[Entry]) -> list[Entry]:
    """Entries sorted by speedup, with ranks: whoever's interval reaches that of a rank's best shares the rank.

    Compared is with the rank's best and not with the neighbour: overlapping is not transitive, and a chain of neighbours
    would give one rank to results that differ clearly. Within a rank the earlier submission stands first.
    """
    groups: list[list[Entry]] = []
    for entry in by_speedup:
        if groups and _reaches(entry, groups[-1][0]):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    placed: list[Entry] = []
    for group in groups:
        rank = len(placed) + 1
        earlier_first = sorted(group, key=lambda each: (each.accepted_at, each.submission))
        placed += [entry._replace(rank=rank) for entry in earlier_first]
    return placed


def _reaches(entry: Entry, best: Entry) -> bool:
    high = entry.speedup if entry.speedup_high is None else entry.speedup_high
    low = best.speedup if best.speedup_low is None else best.speedup_low
    return high is not None and low is not None and high >= low
