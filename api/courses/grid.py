"""The grid of a course: people × stages, with verdict, best speedup, attempts, last try, points, and who is stuck."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.attempts import Attempt, Person, Place, Rules, Term
from api.courses.points import Mark
from api.courses.schemas import Cell, Grid, GridRow
from kernelgate.models import ResultRow, Submission, now
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict, passing

_BEST_FIRST = {verdict: place for place, verdict in enumerate(Verdict)}
_NO_MARK = Mark(0.0)
SAME_MISTAKE, NO_PROGRESS = 5, timedelta(days=3)


def grid(
    database: Session,
    term: Term,
    earned: Mapping[Place, Mark],
    stages: Mapping[str, Stage],
    known: Mapping[Place, Cell] = {},
) -> Grid:
    """Everybody in `term`, by handle. known: cells of which the attempts are as they were; only their marks may be others."""
    repeated = _repeated(database, term, known)
    rows = [_row(term, person, stages, earned, repeated, known) for person in term.people]
    titles = {
        rules.stage: stages[rules.stage].spec.title if rules.stage in stages else rules.stage for rules in term.rules
    }
    return Grid(course=term.course.name, stages=titles, rows=rows)


def _row(
    term: Term,
    person: Person,
    stages: Mapping[str, Stage],
    earned: Mapping[Place, Mark],
    repeated: Mapping[Place, str],
    known: Mapping[Place, Cell],
) -> GridRow:
    cells = []
    for rules in term.rules:
        place = person.id, rules.stage
        before, mark = known.get(place), earned.get(place, _NO_MARK)
        cells.append(
            _cell(term, person, rules, stages.get(rules.stage), mark, repeated)
            if before is None
            else _marked(before, mark)
        )
    return GridRow.model_construct(
        handle=person.handle,
        person=person.person,
        email=person.email,
        team=person.team_name or None,
        points=round(sum(cell.points for cell in cells), 4),
        late_days=sum(cell.late_days for cell in cells),
        cells=cells,
    )


def _marked(cell: Cell, mark: Mark) -> Cell:
    if (cell.points, cell.counts, cell.late, cell.late_days, cell.override) == (
        mark.points, mark.attempt, mark.late, mark.days, mark.override,
    ):  # fmt: skip
        return cell
    return cell.model_copy(
        update={
            "points": mark.points, "counts": mark.attempt, "late": mark.late, "late_days": mark.days,
            "override": mark.override,
        }
    )  # fmt: skip


def _cell(
    term: Term,
    person: Person,
    rules: Rules,
    stage: Stage | None,
    mark: Mark,
    repeated: Mapping[Place, str],
) -> Cell:
    attempts = term.attempts.get((person.id, rules.stage), [])
    graded = [each for each in attempts if each.now is not None]
    counted = [each.now for each in graded if each.now is not None and not each.apart]
    verdict = min((each.verdict for each in counted), key=_BEST_FIRST.__getitem__, default=None)
    return Cell.model_construct(
        stage=rules.stage,
        verdict=verdict,
        speedup=max((each.speedup for each in counted if each.speedup), default=None),
        attempts=len(graded),
        last_at=attempts[-1].at if attempts else None,
        late=mark.late,
        late_days=mark.days,
        points=mark.points,
        counts=mark.attempt,
        override=mark.override,
        stuck=_stuck(term, person, rules, stage, graded, repeated),
    )


def _stuck(
    term: Term,
    person: Person,
    rules: Rules,
    stage: Stage | None,
    graded: list[Attempt],
    repeated: Mapping[Place, str],
) -> str | None:
    """Why somebody who has not passed looks stuck, while the stage is not over for them."""
    due = term.due(person.id, rules)
    passes = passing(gated=stage is not None and stage.spec.gate is not None)
    if (
        not graded
        or (due is not None and due < now())
        or any(each.now and each.now.verdict in passes for each in graded)
    ):
        return None
    if (person.id, rules.stage) in repeated:
        return f"{SAME_MISTAKE} times: {repeated[person.id, rules.stage]}"
    moved = last_progress(graded)
    return f"no progress for {(now() - moved).days} days" if now() - moved > NO_PROGRESS else None


def last_progress(graded: Iterable[Attempt]) -> datetime:
    """When an attempt last was better than all before it, by its verdict or its speedup; the first one is."""
    best: tuple[int, float] | None = None
    moved = now()
    for each in graded:
        if each.now is None:
            continue
        merit = (-_BEST_FIRST[each.now.verdict], each.now.speedup or 0.0)
        if best is None or merit > best:
            best, moved = merit, each.at
    return moved


def _repeated(database: Session, term: Term, known: Mapping[Place, Cell]) -> dict[Place, str]:
    """Where somebody's last five judgings name one and the same mistake: its title. Looked up only where all five failed."""
    last: dict[Place, list[str]] = {}
    for place, attempts in term.attempts.items():
        if place in known:
            continue
        tail = [each for each in attempts if each.now is not None][-SAME_MISTAKE:]
        if len(tail) == SAME_MISTAKE and all(each.now and each.now.verdict is Verdict.WRONG_ANSWER for each in tail):
            last[place] = [each.id for each in tail]
    wanted = [name for names in last.values() for name in names]
    if not wanted:
        return {}
    rows = database.execute(
        select(Submission.id, ResultRow.body["mistake"]["title"].as_string())
        .join(ResultRow, (ResultRow.submission_id == Submission.id) & (ResultRow.round == Submission.round))
        .where(Submission.id.in_(wanted))
    )
    titles = {row[0]: row[1] for row in rows}
    found = {place: {titles.get(name) for name in names} for place, names in last.items()}
    return {place: str(next(iter(named))) for place, named in found.items() if len(named) == 1 and None not in named}
