"""Contests: a course's start and end, its board over several stages, starts of people's own, revealing."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.auth import Identity
from api.body import described, payload
from api.catalog import Catalog
from api.courses.contest import contest_view, end_contest, public_course, reveal_more, set_contest, start_own
from api.courses.contest_schemas import ContestBody, ContestView, RevealBody
from api.courses.csv_exports import contest_csv
from api.courses.seats import Right, Seat, seat
from api.dependencies import CourseName, Reader, StageCatalog, Submitter, Viewer
from api.negotiation import JSON, preferred, see_other
from api.problems import SIGNED_IN, documented
from api.routes.courses import CHANGES, READS
from kernelgate.db import transaction

router = APIRouter(tags=["courses"])
_CSV = "text/csv"
_MISSING = documented("unknown_course", "no_contest")
_TIMES = {
    "starts_at": "2027-05-08T08:00:00Z", "ends_at": "2027-05-08T13:00:00Z", "freezes_at": "2027-05-08T12:00:00Z",
    "penalty": 20, "public": True, "virtual": True,
}  # fmt: skip


@router.get("/courses/{course}/contest", summary="A course's contest", responses={**READS, **_MISSING})
def get_contest(course: CourseName, identity: Reader, catalog: StageCatalog) -> ContestView:
    """For everybody who is in it. The staff's board has everything, also what the freeze keeps back."""
    with transaction() as database:
        by = seat(database, identity, course)
        return contest_view(database, by.course, catalog.with_drafts(), by=by, whole=by.staff)


def _after(request: Request, by: Seat, catalog: Catalog) -> Any:
    with transaction() as database:
        view = contest_view(database, by.course, catalog.with_drafts(), by=by, whole=by.staff)
    return see_other(request, f"/courses/{by.course.name}/contest") or view


@router.post(
    "/courses/{course}/contest",
    summary="Make a course a contest, or change its times",
    response_model=ContestView,
    openapi_extra=described(ContestBody, example=_TIMES),
    responses=CHANGES,
)
async def edit_contest(
    request: Request,
    course: CourseName,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[ContestBody, Depends(payload(ContestBody))],
) -> Any:
    """For its instructors. The whole of what the course says of its contest: what is left out is as in a new one."""
    return await run_in_threadpool(_set, request, course, identity, catalog, body)


def _set(request: Request, course: str, identity: Identity, catalog: Catalog, body: ContestBody) -> Any:
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        set_contest(database, by, body)
    return _after(request, by, catalog)


@router.post(
    "/courses/{course}/contest/remove",
    summary="Make a course no contest any more",
    status_code=204,
    responses={**CHANGES, **_MISSING},
)
def remove_contest(request: Request, course: CourseName, identity: Submitter) -> Response:
    """For its instructors. The course and what was submitted stay."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        end_contest(database, by)
    return see_other(request, f"/courses/{course}/contest") or Response(status_code=204)


@router.post(
    "/courses/{course}/contest/start",
    summary="Start late, on a clock of one's own",
    response_model=ContestView,
    responses={**CHANGES, **documented("unknown_course", "no_contest", "no_own_start")},
)
def start_contest(request: Request, course: CourseName, identity: Submitter, catalog: StageCatalog) -> Any:
    """For members who missed the start, where the contest allows it, once; with all of their team."""
    with transaction() as database:
        by = seat(database, identity, course)
        start_own(database, by)
    return _after(request, by, catalog)


@router.post(
    "/courses/{course}/contest/reveal",
    summary="Reveal what the freeze keeps back",
    response_model=ContestView,
    openapi_extra=described(RevealBody, example={"what": "next"}),
    responses={**CHANGES, **_MISSING, **documented("contest_runs")},
)
async def reveal_contest(
    request: Request,
    course: CourseName,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[RevealBody, Depends(payload(RevealBody))],
) -> Any:
    """For its staff, after the end: the next result from the last place upwards, or all. Answers with what everybody sees."""
    return await run_in_threadpool(_reveal, request, course, identity, catalog, body)


def _reveal(request: Request, course: str, identity: Identity, catalog: Catalog, body: RevealBody) -> Any:
    stages = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        reveal_more(database, by, body.what, stages)
        view = contest_view(database, by.course, stages)
    return see_other(request, f"/contests/{course}") or view


@router.get(
    "/contests/{course}",
    summary="A contest's board as everybody sees it",
    response_model=ContestView,
    responses={
        200: {
            "model": ContestView,
            "description": "JSON, or CSV.",
            "content": {_CSV: {"example": "rank,name,points\n"}},
        },
        **documented(*SIGNED_IN, "no_contest"),
    },
)
def get_board(
    request: Request,
    course: CourseName,
    identity: Viewer,
    catalog: StageCatalog,
    format: Annotated[Literal["json", "csv"] | None, Query(description="Instead of an Accept header.")] = None,  # noqa: A002
) -> Response:
    """For everybody where the contest is public, else for those in the course."""
    with transaction() as database:
        found, by = public_course(database, identity, course)
        view = contest_view(database, found, catalog.with_drafts(), by=by)
    if format == "csv" or (format is None and preferred(request.headers.get("accept", ""), (JSON, _CSV)) == _CSV):
        headers = {"Content-Disposition": f'attachment; filename="contest-{view.course}.csv"'}
        return Response(contest_csv(view), media_type=f"{_CSV}; charset=utf-8", headers=headers)
    return Response(view.model_dump_json(), media_type=JSON)
