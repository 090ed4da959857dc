"""Who was right first: what a stage with a gate can say where nothing has been measured."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from api.leaderboard import placed
from kernelgate.verdicts import Verdict

SHOWN = 50
_RANKED = """
SELECT handle, created_at, attempts, rank() OVER (ORDER BY attempts) AS by_attempts FROM {rows} ORDER BY created_at LIMIT :most
"""
_NOW = text(_RANKED.format(rows=f"{placed('right')} AS first"))
_THEN = text(
    """
WITH graded AS (
    SELECT s.id, s.user_id, u.handle, s.created_at, s.verdict, s.hidden, s.held,
           count(*) FILTER (WHERE s.verdict <> 'judge_error')
               OVER (PARTITION BY s.user_id ORDER BY s.created_at, s.id) AS attempts
    FROM submissions s JOIN users u ON u.id = s.user_id
    WHERE s.stage = :stage AND s.trial IS NULL AND s.verdict IS NOT NULL AND u.disabled_at IS NULL
      AND s.created_at <= :until
), first AS (
    SELECT DISTINCT ON (user_id) handle, created_at, attempts
    FROM graded WHERE verdict = ANY(:right) AND NOT hidden AND held IS NULL ORDER BY user_id, created_at, id
)
"""  # noqa: S608 - put together from constants
    + _RANKED.format(rows="first")
)


class Right(NamedTuple):
    """A person's first submission that was right in every value. by_attempts: the rank by how few it took."""

    user: str
    at: datetime
    attempts: int
    by_attempts: int


def right_first(database: Session, stage: str, until: datetime | None) -> list[Right]:
    """The earliest first; what is hidden, held or of a closed account does not count, as on every board."""
    if until is None:
        return [Right(*row) for row in database.execute(_NOW, {"stage": stage, "most": SHOWN})]
    right = [str(verdict) for verdict in (Verdict.ACCEPTED, Verdict.CORRECT, Verdict.GATE_MISSED)]
    asked = {"stage": stage, "until": until, "right": right, "most": SHOWN}
    return [Right(*row) for row in database.execute(_THEN, asked)]
