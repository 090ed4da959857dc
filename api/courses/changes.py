"""Whose points would be others if the newest judgings of a course were taken over, and taking them over."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.orm import Session

from api.courses.attempts import Place, Term
from api.courses.points import Mark, Worked, as_judged_now, marks
from api.courses.schedule import stage_of
from api.courses.schemas import Change
from api.courses.seats import Seat
from kernelgate.accounts import audit
from kernelgate.models import PointsRule, now
from kernelgate.stages import Stage


def changes(
    term: Term, counted: Mapping[Place, Mark], stages: Mapping[str, Stage], fixed: Worked, worked: Worked
) -> list[Change]:
    """Against the marks that count, of which `fixed` is what was worked out. Where nothing was judged again there is nothing
    to work out, and of the others only what is not the same."""
    differ = {
        place
        for place, attempts in term.attempts.items()
        if any(each.now is not each.fixed and each.now != each.fixed for each in attempts)
    }
    if not differ:
        return []
    ratios = {rules.stage for rules in term.rules if rules.rule == PointsRule.RATIO} & {stage for _, stage in differ}
    worked.take(fixed, differ, ratios)
    newest = marks(term, stages, as_judged_now, worked)
    handles = {person.id: person.handle for person in term.people}
    return [
        Change(stage=stage, user=handles[user], before=mark.points, after=newest[user, stage].points)
        for (user, stage), mark in sorted(counted.items(), key=lambda item: (item[0][1], handles[item[0][0]]))
        if abs(mark.points - newest[user, stage].points) > 1e-9
    ]


def take_over(database: Session, by: Seat, stage: str) -> None:
    """From now on the judgings of a stage that there are now count."""
    stage_of(database, by.course, stage).marked_at = now()
    audit(database, by.identity.handle, "course.mark", f"{by.course.name}/{stage}")
    database.flush()
