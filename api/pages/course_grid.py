"""The grid of a course, one person's timeline in a stage, and what judging again would change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup, escape
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import HTMLResponse, Response

from api.courses.kept import standing, whole_grid
from api.courses.schemas import Cell, Grid, GridRow, Timeline
from api.courses.seats import Right, seat
from api.courses.timeline import person_in, timeline
from api.courses.worklog import worklog
from api.dependencies import CourseName, Handle, Reader, StageCatalog, StageName
from api.negotiation import HtmlRoute
from api.pages.drawings.history import histories
from api.pages.site.environment import page
from api.pages.text.changes import Changed
from api.pages.text.changes import changes as changed_lines
from kernelgate.db import transaction
from kernelgate.models import CourseStage, Submission, now
from kernelgate.text import line
from kernelgate.verdicts import ABOUT, Verdict

router = APIRouter(prefix="/courses", route_class=HtmlRoute, include_in_schema=False)
_DIFFS = 12
"""Attempts of a timeline whose changes stand on the page itself, the newest ones; the others are linked."""
_ROWS = 4096
_AT_ONCE = 20
"""Rows of a grid that come with its page: more than a screen shows. A browser takes seconds to lay out ten thousand cells, so a
script fetches the others and puts them in while it has nothing else to do."""


class _Shown(NamedTuple):
    """What a cell of the grid shows."""

    stage: str
    verdict: Verdict | None
    speedup: float | None
    attempts: int
    last: date | None
    late: int
    points: float
    by_hand: bool
    stuck: str | None


@router.get("/{course}/grid")
def grid_page(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    asked = request.query_params
    with transaction() as database:
        by = seat(database, viewer, course, Right.STAFF)
        found = whole_grid(database, by.course, catalog.with_drafts())
        of_course = (CourseStage.course_id == by.course.id, CourseStage.joint)
        joint = set(database.scalars(select(CourseStage.stage).where(*of_course)))
    shown = chosen(found, asked.get("search", "")[:80], asked.get("show", ""))
    sort, rows = asked.get("sort", "")[:80], asked.get("rows", "")
    first = len(shown) if rows == "all" else _AT_ONCE
    sorted_rows = ordered(found, shown, sort)
    if rows == "rest":
        return HTMLResponse("\n".join(map(line_of, sorted_rows[first:])), headers={"Cache-Control": "no-store"})
    return page(
        request,
        "course_grid.html",
        seat=by,
        course=by.course,
        grid=found,
        lines=Markup("\n").join(map(line_of, sorted_rows[:first])),
        rest=max(len(shown) - first, 0),
        matching=len(shown),
        search=asked.get("search", "")[:80],
        show=asked.get("show", ""),
        sort=sort,
        joint=joint,
        stuck=sum(any(cell.stuck for cell in row.cells) for row in found.rows),
    )


def _everybody(row: GridRow) -> bool:  # noqa: ARG001 - one of several kinds
    return True


_SHOWN: dict[str, Callable[[GridRow], bool]] = {
    "stuck": lambda row: any(cell.stuck for cell in row.cells),
    "late": lambda row: any(cell.late for cell in row.cells),
    "idle": lambda row: not any(cell.attempts for cell in row.cells),
}


def chosen(found: Grid, search: str, show: str) -> list[GridRow]:
    """Rows with `search` in the handle, name, address or team, and of one kind."""
    word, kind = search.casefold(), _SHOWN.get(show, _everybody)
    return [
        row
        for row in found.rows
        if kind(row) and word in f"{row.handle} {row.person} {row.email} {row.team or ''}".casefold()
    ]


def ordered(found: Grid, rows: Iterable[GridRow], sort: str) -> list[GridRow]:
    """By handle, by points in all, by team, or by a stage: most points first. With `-` before it, the other way round."""
    if sort.startswith("-"):
        return ordered(found, rows, sort[1:])[::-1]
    by_handle = sorted(rows, key=lambda row: row.handle.lower())
    places = {name: place for place, name in enumerate(found.stages)}
    if sort == "points":
        return sorted(by_handle, key=lambda row: -row.points)
    if sort == "team":
        return sorted(by_handle, key=lambda row: row.team or "\uffff")
    if sort in places:
        return sorted(by_handle, key=lambda row: (-row.cells[places[sort]].points, -row.cells[places[sort]].attempts))
    return by_handle


@lru_cache(maxsize=_ROWS)
def _line(handle: str, person: str, team: str, points: float, late_days: int, cells: tuple[_Shown, ...]) -> Markup:
    """A row as HTML. What people wrote is escaped; the rest is numbers, marks and names of ours."""
    name = f"<small>{escape(line(person, 60))}</small>" if person else ""
    late = f"<small>{late_days} late day{'s' if late_days != 1 else ''}</small>" if late_days else ""
    address = f"people/{escape(handle)}/"
    return Markup(  # noqa: S704
        f'<tr><th scope="row">{escape(handle)}{name}<td>{escape(team)}<td><b>{round(points, 2):g}</b>{late}'
        + "".join(_cell(address, cell) for cell in cells)
    )


def _shown(cell: Cell) -> _Shown:
    by_hand = cell.override is not None
    last = cell.last_at.date() if cell.last_at else None
    return _Shown(
        cell.stage, cell.verdict, cell.speedup, cell.attempts, last, cell.late, cell.points, by_hand, cell.stuck
    )  # fmt: skip


def line_of(row: GridRow) -> Markup:
    """Thousands of cells are in a grid, of two elements each, and a row is drawn once for as long as it says the same."""
    cells = tuple(_shown(each) for each in row.cells)
    return _line(row.handle, row.person, row.team or "", row.points, row.late_days, cells)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _cell(address: str, cell: _Shown) -> str:
    if not cell.attempts and not cell.by_hand:
        return "<td>"
    speed = f" {cell.speedup:.2f}×" if cell.speedup else ""
    last = f" · {cell.last.day} {_MONTHS[cell.last.month - 1]}" if cell.last else ""
    late, by_hand = f" +{cell.late}\u202fd" if cell.late else "", " ✎" if cell.by_hand else ""
    mark = ABOUT[cell.verdict].mark if cell.verdict else "–"
    tone = f"v-{cell.verdict}" if cell.verdict else ""
    title = f' title="{escape(cell.stuck)}"' if cell.stuck else ""
    return (
        f'<td class="{tone}{" stuck" if cell.stuck else ""}"><a href="{address}{escape(cell.stage)}"{title}>'
        f"{round(cell.points, 2):g} {mark}{speed}\n{'! ' if cell.stuck else ''}{cell.attempts}{last}{late}{by_hand}</a>"
    )


class Step(NamedTuple):
    """An attempt's changes since the one before; None where they are only linked."""

    before: str | None
    lines: list[Changed] | None


@router.get("/{course}/people/{handle}/{stage}")
def timeline_page(
    request: Request, viewer: Reader, course: CourseName, handle: Handle, stage: StageName, catalog: StageCatalog
) -> Response:
    stages = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, viewer, course)
        member = person_in(database, by, handle)
        shown = timeline(database, by, handle, stage, stages)
        history = histories(database, member.user_id, stages, stage)
        ids = [each.id for each in shown.attempts]
        steps = _steps(database, ids, stages[stage].spec.language if stage in stages else "text")
        hidden = set(database.scalars(select(Submission.id).where(Submission.id.in_(ids), Submission.hidden)))
    return page(
        request,
        "course_timeline.html",
        seat=by,
        course=by.course,
        member=member,
        found=shown,
        title=stages[stage].spec.title if stage in stages else stage,
        histories=history,
        steps=steps,
        hidden=hidden,
        now=now(),
    )


def _steps(database: Session, ids: list[str], language: str) -> dict[str, Step]:
    newest = ids[-_DIFFS - 1 :]
    rows = database.execute(select(Submission.id, Submission.source).where(Submission.id.in_(newest)))
    texts = {name: source.decode("utf-8", "replace") for name, source in rows}
    found = {}
    for before, name in zip([None, *ids], ids, strict=False):
        shown = before in texts and name in texts
        found[name] = Step(before, changed_lines(texts[before], texts[name], language) if shown and before else None)
    return found


@router.get("/{course}/changes")
def changes_page(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    stages = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, viewer, course, Right.STAFF)
        found = standing(database, by.course, stages).changes
    titles = {each.stage: stages[each.stage].spec.title if each.stage in stages else each.stage for each in found}
    return page(request, "course_changes.html", seat=by, course=by.course, changes=found, titles=titles)


class Logged(NamedTuple):
    """A stage of a work log."""

    title: str
    found: Timeline

    @property
    def attempts_made(self) -> int:
        return len(self.found.attempts)


@router.get("/{course}/logs/{handle}")
def log_page(request: Request, viewer: Reader, course: CourseName, handle: Handle, catalog: StageCatalog) -> Response:
    stages = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, viewer, course)
        member = person_in(database, by, handle)
        log = worklog(database, by, handle, stages)
    rows = [Logged(stages[each.stage].spec.title if each.stage in stages else each.stage, each) for each in log]
    points = sum(each.cell.points for each in log)
    return page(request, "course_log.html", seat=by, course=by.course, member=member, log=rows, points=points)
