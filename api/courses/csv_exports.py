"""The grid and the points of a course as CSV, in which no cell is a formula."""

from __future__ import annotations

from collections.abc import Iterator

from api.courses.contest_schemas import ContestView
from api.courses.schemas import Grid
from api.csv_text import as_csv

_PERSON = ("handle", "name", "email", "team")


def points_csv(grid: Grid) -> str:
    """A line a person: points of each stage, of all, and late days used."""
    columns = [*_PERSON, *grid.stages, "points", "late_days"]
    rows = (
        [row.handle, row.person, row.email, row.team, *(cell.points for cell in row.cells), row.points, row.late_days]
        for row in grid.rows
    )
    return as_csv(columns, rows)


def grid_csv(grid: Grid) -> str:
    """A line for each person and stage."""
    columns = [*_PERSON, "stage", "verdict", "speedup", "attempts", "last_at", "days_late", "late_days", "points", "submission",
               "override", "stuck"]  # fmt: skip
    return as_csv(columns, _cells(grid))


def _cells(grid: Grid) -> Iterator[list[object]]:
    for row in grid.rows:
        for cell in row.cells:
            last = cell.last_at.isoformat(timespec="seconds") if cell.last_at else None
            yield [
                row.handle, row.person, row.email, row.team, cell.stage, cell.verdict and str(cell.verdict), cell.speedup,
                cell.attempts, last, cell.late, cell.late_days, cell.points, cell.counts, cell.override, cell.stuck,
            ]  # fmt: skip


def contest_csv(view: ContestView) -> str:
    """A line for each participant: rank, points, minutes, and points, minutes and tries of each stage."""
    parts = ("points", "minutes", "tries")
    columns = ["rank", "name", "points", "minutes", *(f"{stage} {part}" for stage in view.stages for part in parts)]
    cells = ([number for cell in row.cells for number in (cell.points, cell.minutes, cell.tries)] for row in view.rows)
    return as_csv(
        columns,
        ([row.rank, row.name, row.points, row.minutes, *own] for row, own in zip(view.rows, cells, strict=True)),
    )
