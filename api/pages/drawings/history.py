"""A person's speedups over time, a picture for each stage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernelgate.models import Submission
from kernelgate.stages import Stage
from kernelgate.verdicts import State, Verdict

_SHOWN = 300


class Point(NamedTuple):
    """A timed submission, in percent of the drawing; `best`: faster than every one before it."""

    x: float
    y: float
    id: str
    speedup: float
    verdict: str
    at: datetime
    best: bool


class History(NamedTuple):
    """points: oldest first. line: the best so far as a path. gate_y: where the gate stands. low, high: the axis' ends."""

    stage: str
    title: str
    points: list[Point]
    line: str
    gate: float | None
    gate_y: float | None
    low: float
    high: float

    @property
    def best(self) -> float:
        return max(point.speedup for point in self.points)


def histories(database: Session, user_id: int, stages: Mapping[str, Stage], stage: str = "") -> list[History]:
    """Of every stage, or the one named, in which the user has at least two timed submissions."""
    wanted = select(
        Submission.stage, Submission.id, Submission.speedup, Submission.verdict, Submission.created_at
    ).where(
        Submission.user_id == user_id,
        Submission.state == State.DONE,
        Submission.speedup.is_not(None),
        Submission.held.is_(None),
    )
    if stage:
        wanted = wanted.where(Submission.stage == stage)
    rows: dict[str, list[tuple[str, float, str, datetime]]] = {}
    for name, submission_id, speedup, verdict, at in database.execute(wanted.order_by(Submission.created_at.desc())):
        if len(found := rows.setdefault(name, [])) < _SHOWN:
            found.append((submission_id, speedup or 0.0, verdict or str(Verdict.JUDGE_ERROR), at))
    return [_history(stages[name], found[::-1]) for name, found in rows.items() if name in stages and len(found) > 1]


def _history(stage: Stage, rows: list[tuple[str, float, str, datetime]]) -> History:
    """By order and not by date: an evening's ten attempts would lie on one spot."""
    gate = stage.spec.gate.speedup if stage.spec.gate else None
    ends = [speedup for _, speedup, _, _ in rows] + ([gate] if gate else [])
    low, high = 0.0, 1.08 * max(ends)

    def height(speedup: float) -> float:
        return round(100 * (high - speedup) / (high - low), 2)

    points: list[Point] = []
    best = 0.0
    for place, (submission_id, speedup, verdict, at) in enumerate(rows):
        x = round(2 + 96 * place / (len(rows) - 1), 2)
        points.append(Point(x, height(speedup), submission_id, speedup, verdict, at, speedup > best))
        best = max(best, speedup)
    steps = [point for point in points if point.best]
    path = f"M{steps[0].x} {steps[0].y}" + "".join(f"H{point.x}V{point.y}" for point in steps[1:]) + "H98"
    return History(stage.name, stage.spec.title, points, path, gate, height(gate) if gate else None, low, high)
