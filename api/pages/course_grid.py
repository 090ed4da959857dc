"""The grid of a course, one person's timeline in a stage, and what judging again would change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup, escape
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.courses.kept import whole_grid
from api.courses.schemas import Cell, Grid, GridRow, Timeline
from api.courses.seats import Right, seat
from api.courses.timeline import changes, person_in, timeline
from api.courses.worklog import worklog
from api.dependencies import CourseName, Handle, Reader, StageCatalog, StageName
from api.negotiation import HtmlRoute
from api.pages.drawings.history import histories
from api.pages.site.environment import page
from api.pages.text.changes import Changed
from api.pages.text.changes import changes as changed_lines
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.verdicts import ABOUT

router = APIRouter(prefix="/courses", route_class=HtmlRoute, include_in_schema=False)
_DIFFS = 12
"""Attempts of a timeline whose changes stand on the page itself, the newest ones; the others are linked."""


class Line(NamedTuple):
    """A row of the grid with its cells as HTML: thousands of them, so they are put together here and not by the template."""

    row: GridRow
    cells: Markup


@router.get("/{course}/grid")
def grid_page(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    asked = request.query_params
    with transaction() as database:
        by = seat(database, viewer, course, Right.STAFF)
        found = whole_grid(database, by.course, catalog.with_drafts())
    shown = chosen(found, asked.get("search", "")[:80], asked.get("show", ""))
    sort = asked.get("sort", "")
    lines = [Line(row, cells_of(row)) for row in ordered(found, shown, sort)]
    return page(
        request,
        "course_grid.html",
        seat=by,
        course=by.course,
        grid=found,
        lines=lines,
        search=asked.get("search", "")[:80],
        show=asked.get("show", ""),
        sort=sort,
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
    """By handle, by points in all, by team, or by a stage: most points first."""
    by_handle = sorted(rows, key=lambda row: row.handle.lower())
    places = {name: place for place, name in enumerate(found.stages)}
    if sort == "points":
        return sorted(by_handle, key=lambda row: -row.points)
    if sort == "team":
        return sorted(by_handle, key=lambda row: row.team or "\uffff")
    if sort in places:
        return sorted(by_handle, key=lambda row: (-row.cells[places[sort]].points, -row.cells[places[sort]].attempts))
    return by_handle


def cells_of(row: GridRow) -> Markup:
    """Numbers, marks and stages' names, all ours; what people wrote (the reason of an override) is escaped."""
    handle = escape(row.handle)
    return Markup("").join(_cell(handle, cell) for cell in row.cells)


def _cell(handle: str, cell: Cell) -> Markup:
    if not cell.attempts and cell.override is None:
        return Markup("<td>")
    tone = f"v-{cell.verdict}" if cell.verdict else ""
    mark = ABOUT[cell.verdict].mark if cell.verdict else "–"
    speed = f" {cell.speedup:.2f}×" if cell.speedup else ""
    notes = [str(cell.attempts)]
    notes += [f"+{cell.late} d"] if cell.late else []
    notes += ["✎"] if cell.override is not None else []
    title = f' title="{escape(cell.stuck)}"' if cell.stuck else ""
    stuck = " stuck" if cell.stuck else ""
    return Markup(  # noqa: S704
        f'<td class="{tone}{stuck}"><a href="people/{handle}/{escape(cell.stage)}"{title}>'
        f"<b>{round(cell.points, 2):g}</b> {escape(mark)}{speed}<small>{'! ' if stuck else ''}{' '.join(notes)}</small></a>"
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
        steps = _steps(
            database, [each.id for each in shown.attempts], stages[stage].spec.language if stage in stages else "text"
        )
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
        found = changes(database, by, stages)
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
