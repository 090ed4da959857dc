"""What the members of a course reached: the grid, one person's timeline, points, and what judging again would change."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.auth import Identity
from api.body import described, payload
from api.catalog import Catalog
from api.courses.changes import take_over
from api.courses.csv_exports import grid_csv, points_csv
from api.courses.kept import row_of, standing, whole_grid
from api.courses.schemas import Change, Grid, GridRow, PointsBody, Timeline
from api.courses.seats import Right, seat
from api.courses.timeline import give_points, person_in, timeline
from api.dependencies import CourseName, Handle, Reader, StageCatalog, StageName, Submitter
from api.negotiation import JSON, preferred, see_other
from api.problems import documented
from api.routes.courses import CHANGES, READS
from kernelgate.db import transaction

router = APIRouter(prefix="/courses", tags=["courses"])
_CSV = "text/csv"
_OF_PERSON = documented("unknown_course", "unknown_member", "unknown_stage")
Format = Annotated[Literal["json", "csv"] | None, Query(description="Instead of an Accept header.")]


def _grid(identity: Identity, course: str, catalog: Catalog) -> Grid:
    with transaction() as database:
        return whole_grid(database, seat(database, identity, course, Right.STAFF).course, catalog.with_drafts())


def _as(request: Request, found: Grid, form: str | None, name: str, written: str) -> Response:
    if form == "csv" or (form is None and preferred(request.headers.get("accept", ""), (JSON, _CSV)) == _CSV):
        headers = {"Content-Disposition": f'attachment; filename="{name}-{found.course}.csv"'}
        return Response(written, media_type=f"{_CSV}; charset=utf-8", headers=headers)
    return Response(found.model_dump_json(), media_type=JSON)


def _both(example: str) -> dict[int | str, dict[str, Any]]:
    described = {"model": Grid, "description": "JSON, or CSV.", "content": {_CSV: {"example": example}}}
    return {200: described}


@router.get(
    "/{course}/grid",
    summary="People × stages",
    response_model=Grid,
    responses={**_both("handle,name,email,team,stage,verdict,…\n"), **READS},
)
def get_grid(
    request: Request,
    course: CourseName,
    identity: Reader,
    catalog: StageCatalog,
    format: Format = None,  # noqa: A002
) -> Response:
    """For its staff: of everybody in every stage the verdict, best speedup, attempts, last try, points, and who is stuck.

    As CSV a line for each person and stage.
    """
    found = _grid(identity, course, catalog)
    return _as(request, found, format, "grid", grid_csv(found))


@router.get(
    "/{course}/points",
    summary="Points of everybody",
    response_model=Grid,
    responses={**_both("handle,name,email,team,online_softmax,points,late_days\n"), **READS},
)
def get_points(
    request: Request,
    course: CourseName,
    identity: Reader,
    catalog: StageCatalog,
    format: Format = None,  # noqa: A002
) -> Response:
    """For its staff. As JSON the grid; as CSV a line a person, as a learning platform reads it."""
    found = _grid(identity, course, catalog)
    return _as(request, found, format, "points", points_csv(found))


@router.get("/{course}/people/{handle}", summary="One person's row of the grid", responses={**READS, **_OF_PERSON})
def get_person(course: CourseName, handle: Handle, identity: Reader, catalog: StageCatalog) -> GridRow:
    """For the person, and for the course's staff."""
    with transaction() as database:
        by = seat(database, identity, course)
        member = person_in(database, by, handle)
        found = row_of(database, by.course, catalog.with_drafts(), member.user.handle)
    return found or GridRow(handle=member.user.handle, points=0, late_days=0, cells=[])


@router.get(
    "/{course}/people/{handle}/{stage}", summary="One person's attempts at a stage", responses={**READS, **_OF_PERSON}
)
def get_timeline(
    course: CourseName, handle: Handle, stage: StageName, identity: Reader, catalog: StageCatalog
) -> Timeline:
    """For the person, and for the course's staff: every attempt with its mistake, what counts of it, and lines changed."""
    with transaction() as database:
        return timeline(database, seat(database, identity, course), handle, stage, catalog.with_drafts())


@router.post(
    "/{course}/people/{handle}/{stage}/points",
    summary="Give points by hand",
    response_model=Timeline,
    openapi_extra=described(PointsBody, example={"points": 7.5, "reason": "shown in the exercise"}),
    responses={**CHANGES, **_OF_PERSON},
)
async def set_points(
    request: Request,
    course: CourseName,
    handle: Handle,
    stage: StageName,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[PointsBody, Depends(payload(PointsBody))],
) -> Any:
    """For its instructors; in place of what was earned, with a reason that the person reads."""
    answer = await run_in_threadpool(_give, identity, course, handle, stage, body, catalog)
    return see_other(request, f"/courses/{course}/people/{answer.user}/{stage}") or answer


def _give(identity: Identity, course: str, handle: str, stage: str, body: PointsBody, catalog: Catalog) -> Timeline:
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        give_points(database, by, handle, stage, body)
        return timeline(database, by, handle, stage, catalog.with_drafts())


@router.get("/{course}/changes", summary="What newer judgings would change", responses=READS)
def get_changes(course: CourseName, identity: Reader, catalog: StageCatalog) -> list[Change]:
    """For its staff. A due time fixes the judgings that count; whose points would be others with those made since."""
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        return standing(database, by.course, catalog.with_drafts()).changes


@router.post(
    "/{course}/stages/{stage}/mark",
    summary="Take the newest judgings of a stage over",
    response_model=list[Change],
    responses={**CHANGES, **documented("unknown_course", "unknown_stage")},
)
def mark_stage(
    request: Request, course: CourseName, stage: StageName, identity: Submitter, catalog: StageCatalog
) -> Any:
    """For its instructors: the judgings that there are now count. Answers with what newer ones would still change: nothing
    of this stage."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        take_over(database, by, stage)
        answer = standing(database, by.course, catalog.with_drafts()).changes
    return see_other(request, f"/courses/{course}/changes") or answer
