"""What a person has reached, and what happened last: the small queries that only pages ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from api.queues import live_workers
from kernelgate.models import StageSwitch, Submission, User
from kernelgate.stages import Stage
from kernelgate.verdicts import State, Verdict, passing

_BEST_FIRST = {verdict: place for place, verdict in enumerate(Verdict)}


class Reached(NamedTuple):
    """One person in one stage. `best`: the verdict nearest to accepted; judge errors and held results count as nothing."""

    attempts: int
    best: Verdict | None
    gated: bool = False

    @property
    def passed(self) -> bool:
        return self.best in passing(gated=self.gated)


class Latest(NamedTuple):
    """An accepted submission, for the list of the newest."""

    user: str
    stage: str
    title: str
    verdict: str
    speedup: float | None
    created_at: datetime


class Now(NamedTuple):
    """What the service is doing. `mine`: the viewer's own submissions that wait or run."""

    running: int
    queued: int
    workers: int
    mine: list[Submission]


def reached(database: Session, user_id: int, stages: Mapping[str, Stage]) -> dict[str, Reached]:
    """By stage, for every one of these that the user has submitted to.

    As on boards, attempts are graded submissions up to the one that passed; what is tried after it is none.
    """
    found: dict[str, Reached] = {}
    rows = database.execute(
        select(Submission.stage, Submission.verdict, Submission.held)
        .where(Submission.user_id == user_id, Submission.state != State.CANCELLED, Submission.trial.is_(None))
        .order_by(Submission.created_at, Submission.id)
    )
    for stage, word, held in rows:
        if stage not in stages:
            continue
        before = found.setdefault(stage, Reached(0, None, stages[stage].spec.gate is not None))
        if word is None or word == Verdict.JUDGE_ERROR:
            continue
        attempts = before.attempts + (not before.passed)
        candidates = [verdict for verdict in (before.best, None if held else Verdict(word)) if verdict]
        best = min(candidates, key=lambda verdict: _BEST_FIRST[verdict], default=None)
        found[stage] = before._replace(attempts=attempts, best=best)
    return found


def latest_accepted(database: Session, stages: Mapping[str, Stage], count: int = 8) -> list[Latest]:
    """The newest accepted submission of each person and stage, newest first; frozen boards give nothing newer away."""
    newest = (
        select(User.handle, Submission.stage, Submission.verdict, Submission.speedup, Submission.created_at)
        .join(User, User.id == Submission.user_id)
        .outerjoin(StageSwitch, StageSwitch.stage == Submission.stage)
        .where(
            Submission.verdict == Verdict.ACCEPTED,
            Submission.trial.is_(None),
            User.disabled_at.is_(None),
            Submission.hidden.is_(False),
            Submission.held.is_(None),
            Submission.stage.in_([*stages]),
            StageSwitch.frozen.is_not(True) | (Submission.created_at <= StageSwitch.frozen_at),
        )
        .order_by(Submission.created_at.desc())
        .limit(10 * count)
    )
    rows: dict[tuple[str, str], Latest] = {}
    for handle, stage, verdict, speedup, created_at in database.execute(newest):
        row = Latest(handle, stage, stages[stage].spec.title, str(verdict), speedup, created_at)
        rows.setdefault((handle, stage), row)
    return list(rows.values())[:count]


def own_submissions(database: Session, user_id: int, stage: str, count: int = 20) -> list[Submission]:
    """A person's newest submissions to a stage, without their sources."""
    mine = select(Submission).where(
        Submission.user_id == user_id, Submission.stage == stage, Submission.trial.is_(None)
    )
    return list(
        database.scalars(mine.options(defer(Submission.source)).order_by(Submission.created_at.desc()).limit(count))
    )


def now_running(database: Session, user_id: int | None) -> Now:
    open_states = (State.QUEUED, State.RUNNING)
    counted = database.execute(
        select(Submission.state, func.count()).where(Submission.state.in_(open_states)).group_by(Submission.state)
    )
    counts = {state: count for state, count in counted}  # noqa: C416 - a Row is not a pair to the type checker
    mine: Iterable[Submission] = ()
    if user_id is not None:
        mine = database.scalars(
            select(Submission)
            .options(defer(Submission.source))
            .where(Submission.user_id == user_id, Submission.state.in_(open_states))
            .order_by(Submission.created_at)
            .limit(10)
        )
    return Now(counts.get("running", 0), counts.get("queued", 0), len(live_workers(database)), list(mine))
