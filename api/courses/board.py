"""The board of a stage among the members of a course, ranked anew, and as it was when the course froze it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.contest import stands_still
from api.leaderboard import Entry, Places, board, ranked
from kernelgate.models import CourseRole, CourseStage, Member, User, now
from kernelgate.stages import Ranking, Stage


@dataclass(frozen=True)
class CourseBoard:
    """models: GPU models with entries, the most used first; None on a board without times."""

    stage: Stage
    model: str | None
    models: tuple[str, ...]
    frozen_at: datetime | None
    places: Places


def course_board(database: Session, rules: CourseStage, stage: Stage, *, gpu: str | None, staff: bool) -> CourseBoard:
    """The staff sees a frozen board as it is now."""
    freezes = [each for each in (rules.freezes_at, stands_still(database, rules.course_id)) if each and each <= now()]
    frozen = min(freezes, default=None)
    whole = board(database, stage.name, stage.spec.ranking, until=None if staff else frozen)
    people = select(User.handle).join(Member, Member.user_id == User.id)
    of_course = people.where(Member.course_id == rules.course_id, Member.role == CourseRole.MEMBER)
    handles = set(database.scalars(of_course))
    by_model = {
        model: [each for each in places.entries if each.user in handles] for model, places in whole.places.items()
    }
    models = tuple(
        sorted((str(model) for model in by_model if model and by_model[model]), key=lambda model: -len(by_model[model]))
    )
    model = gpu if gpu in models else next(iter(models), None)
    entries = by_model.get(model, [])
    return CourseBoard(stage, model, models, frozen, Places(tuple(_ranked(entries, stage.spec.ranking))))


def _ranked(entries: list[Entry], ranking: Ranking) -> list[Entry]:
    if ranking is Ranking.SPEEDUP:
        return ranked(sorted(entries, key=lambda each: (-(each.speedup or 0.0), each.accepted_at, each.submission)))
    return [each._replace(rank=place) for place, each in enumerate(entries, 1)]
