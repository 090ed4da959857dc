"""Who stands where. Only `accepted` submissions of enabled accounts that are not hidden count, each by its newest judging.

A frozen board shows the judgings made until it was frozen and nothing later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from kernelgate.stages import Ranking


@dataclass(frozen=True)
class Entry:
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


# The three statements below are put together from constants; what varies goes in as bound parameters.
_ACCEPTED = """
WITH newest AS (
    SELECT DISTINCT ON (r.submission_id)
           r.submission_id, r.verdict, r.speedup, r.speedup_low, r.speedup_high
    FROM results r JOIN submissions s ON s.id = r.submission_id
    WHERE s.stage = :stage AND (CAST(:until AS timestamptz) IS NULL OR r.created_at <= :until)
    ORDER BY r.submission_id, r.round DESC
), graded AS (
    SELECT s.id, s.user_id, u.handle, s.created_at, s.hidden, s.gpu_model,
           n.verdict, n.speedup, n.speedup_low, n.speedup_high,
           count(*) FILTER (WHERE n.verdict <> 'judge_error')
               OVER (PARTITION BY s.user_id ORDER BY s.created_at, s.id) AS attempts
    FROM newest n JOIN submissions s ON s.id = n.submission_id JOIN users u ON u.id = s.user_id
    WHERE u.disabled_at IS NULL
), accepted AS (
    SELECT * FROM graded WHERE verdict = 'accepted' AND NOT hidden
)
"""

_FIRST = text(
    _ACCEPTED  # noqa: S608
    + """
SELECT rank() OVER (ORDER BY created_at) AS rank, handle, id, created_at, attempts,
       gpu_model, speedup, speedup_low, speedup_high
FROM (SELECT DISTINCT ON (user_id) * FROM accepted ORDER BY user_id, created_at, id) AS first
ORDER BY created_at, id
"""
)

_FASTEST = text(
    _ACCEPTED  # noqa: S608
    + """
SELECT 0 AS rank, handle, id, created_at, attempts, gpu_model, speedup, speedup_low, speedup_high
FROM (SELECT DISTINCT ON (user_id) * FROM accepted
      WHERE speedup IS NOT NULL AND gpu_model = :gpu
      ORDER BY user_id, speedup DESC, created_at, id) AS best
ORDER BY speedup DESC, created_at, id
"""
)

_MODELS = text(
    _ACCEPTED  # noqa: S608
    + "SELECT gpu_model FROM accepted WHERE speedup IS NOT NULL AND gpu_model IS NOT NULL "
    "GROUP BY gpu_model ORDER BY count(DISTINCT user_id) DESC, gpu_model"
)


def gpu_models(database: Session, stage: str, until: datetime | None) -> list[str]:
    """Models that have timed entries, the one with the most people first."""
    return list(database.scalars(_MODELS, {"stage": stage, "until": until}))


def entries(
    database: Session, stage: str, ranking: Ranking, *, gpu: str | None = None, until: datetime | None = None
) -> list[Entry]:
    """Every place of a board, best first. `gpu` is the model of a speedup board; `until` the time it was frozen at."""
    if ranking is Ranking.FIRST_ACCEPTED:
        rows = database.execute(_FIRST, {"stage": stage, "until": until})
        return [Entry(*row) for row in rows]
    found = database.execute(_FASTEST, {"stage": stage, "until": until, "gpu": gpu})
    return ranked([Entry(*row) for row in found])


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
        placed += [replace(entry, rank=rank) for entry in earlier_first]
    return placed


def _reaches(entry: Entry, best: Entry) -> bool:
    high = entry.speedup if entry.speedup_high is None else entry.speedup_high
    low = best.speedup if best.speedup_low is None else best.speedup_low
    return high is not None and low is not None and high >= low
