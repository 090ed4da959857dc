"""Courses: which there are, what one is, its stages and times, what its staff announces."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool

from api.auth import Identity
from api.body import described, payload
from api.catalog import Catalog
from api.courses.announcing import announce, withdraw
from api.courses.catalogue import change_course, course_view, courses_of, make_course, remove_course
from api.courses.schedule import drop_stage, extend, extensions, freeze, set_stage, stage_views
from api.courses.schemas import (
    AnnounceBody,
    AnnouncementView,
    CourseBody,
    CourseChange,
    CourseStageView,
    CourseSummary,
    CourseView,
    ExtensionBody,
    ExtensionView,
    FreezeBody,
    StageBody,
)
from api.courses.seats import Right, seat
from api.dependencies import CourseName, Reader, StageCatalog, StageName, Submitter
from api.negotiation import see_other
from api.problems import SIGNED_IN, documented
from kernelgate.db import transaction

router = APIRouter(prefix="/courses", tags=["courses"])
READS = documented(*SIGNED_IN, "unknown_course", "missing_role")
CHANGES = {
    **READS,
    **documented(*SIGNED_IN, "missing_role", "csrf_failed", "cross_site", "invalid_field", "malformed_json"),
}
_OF_STAGE = documented("unknown_course", "unknown_stage")
_STAGE = {
    "opens_at": "2027-02-01T08:00:00Z", "due_at": "2027-02-14T22:00:00Z", "late": "days", "late_limit": 3,
    "quota": 20, "rule": "thresholds", "steps": [[0, 4], [1.8, 8], [2.5, 10]],
}  # fmt: skip


@router.get("", summary="My courses", responses=documented(*SIGNED_IN))
def list_courses(identity: Reader) -> list[CourseSummary]:
    """Those that the caller is in, by title; an administrator's are all."""
    with transaction() as database:
        return courses_of(database, identity)


@router.post(
    "",
    summary="Make a course",
    status_code=201,
    response_model=CourseView,
    openapi_extra=described(
        CourseBody, example={"name": "gpu-2027", "title": "GPU programming, spring", "late_days": 5}
    ),
    responses={**CHANGES, **documented("course_taken")},
)
async def add_course(
    request: Request,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[CourseBody, Depends(payload(CourseBody))],
) -> Any:
    """For accounts with the role instructor, and administrators. Whoever makes it is its first instructor."""
    answer = await run_in_threadpool(make_course, identity, body, catalog)
    return see_other(request, f"/courses/{body.name}") or answer


@router.get("/{course}", summary="A course: its stages and times, what was announced", responses=READS)
def get_course(course: CourseName, identity: Reader, catalog: StageCatalog) -> CourseView:
    """For everybody who is in it."""
    with transaction() as database:
        return course_view(database, seat(database, identity, course), catalog)


@router.post(
    "/{course}",
    summary="Change a course's title or late days",
    response_model=CourseView,
    openapi_extra=described(CourseChange, example={"late_days": 6}),
    responses=CHANGES,
)
async def edit_course(
    request: Request,
    course: CourseName,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[CourseChange, Depends(payload(CourseChange))],
) -> Any:
    """For its instructors."""
    answer = await run_in_threadpool(change_course, identity, course, body, catalog)
    return see_other(request, f"/courses/{course}/settings") or answer


@router.post("/{course}/remove", summary="Remove a course", response_model=list[CourseSummary], responses=CHANGES)
def delete_course(request: Request, course: CourseName, identity: Submitter) -> Any:
    """For its instructors. Its people, times and points given by hand go with it; what was submitted stays."""
    with transaction() as database:
        remove_course(database, seat(database, identity, course, Right.INSTRUCTOR))
        answer = courses_of(database, identity)
    return see_other(request, "/courses") or answer


@router.post(
    "/{course}/stages/{stage}",
    summary="Put a stage into a course, or change its times and points",
    response_model=list[CourseStageView],
    openapi_extra=described(StageBody, example=_STAGE),
    responses={**CHANGES, **_OF_STAGE},
)
async def edit_course_stage(
    request: Request,
    course: CourseName,
    stage: StageName,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[StageBody, Depends(payload(StageBody))],
) -> Any:
    """For its instructors. The whole of what the course says of the stage: what is left out is as in a new one."""
    answer = await run_in_threadpool(_set_stage, identity, course, stage, body, catalog)
    return see_other(request, f"/courses/{course}/settings") or answer


def _set_stage(identity: Identity, course: str, stage: str, body: StageBody, catalog: Catalog) -> list[CourseStageView]:
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        set_stage(database, by, stage, body, catalog)
        return stage_views(database, by, catalog)


@router.post(
    "/{course}/stages/{stage}/remove",
    summary="Take a stage out of a course",
    response_model=list[CourseStageView],
    responses={**CHANGES, **_OF_STAGE},
)
def remove_course_stage(
    request: Request, course: CourseName, stage: StageName, identity: Submitter, catalog: StageCatalog
) -> Any:
    """For its instructors. What was submitted to it stays."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        drop_stage(database, by, stage)
        answer = stage_views(database, by, catalog)
    return see_other(request, f"/courses/{course}/settings") or answer


@router.post(
    "/{course}/stages/{stage}/freeze",
    summary="Freeze or thaw the course's board of a stage",
    response_model=CourseStageView,
    openapi_extra=described(FreezeBody, example={"frozen": True}),
    responses={**CHANGES, **_OF_STAGE},
)
async def freeze_course_stage(
    request: Request,
    course: CourseName,
    stage: StageName,
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[FreezeBody, Depends(payload(FreezeBody))],
) -> Any:
    """For its staff. The board of the service is an administrator's to freeze."""
    answer = await run_in_threadpool(_freeze, identity, course, stage, body.frozen, catalog)
    return see_other(request, f"/courses/{course}/settings") or answer


def _freeze(identity: Identity, course: str, stage: str, frozen: bool, catalog: Catalog) -> CourseStageView:
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        freeze(database, by, stage, frozen)
        database.flush()
        return next(each for each in stage_views(database, by, catalog) if each.stage == stage)


@router.get("/{course}/extensions", summary="Whose due time is another", responses=READS)
def list_extensions(course: CourseName, identity: Reader) -> list[ExtensionView]:
    """For its staff, by stage."""
    with transaction() as database:
        return extensions(database, seat(database, identity, course, Right.STAFF).course)


@router.post(
    "/{course}/stages/{stage}/extensions",
    summary="Give one person another due time",
    response_model=list[ExtensionView],
    openapi_extra=described(ExtensionBody, example={"user": "ada", "due_at": "2027-02-17T22:00:00Z", "reason": "ill"}),
    responses={**CHANGES, **_OF_STAGE, **documented("unknown_course", "unknown_stage", "unknown_member")},
)
async def extend_for_one(
    request: Request,
    course: CourseName,
    stage: StageName,
    identity: Submitter,
    body: Annotated[ExtensionBody, Depends(payload(ExtensionBody))],
) -> Any:
    """For its staff; in place of one given before. Late days are counted from it."""
    answer = await run_in_threadpool(_extend, identity, course, stage, body)
    return see_other(request, f"/courses/{course}/people/{body.user}/{stage}") or answer


def _extend(identity: Identity, course: str, stage: str, body: ExtensionBody) -> list[ExtensionView]:
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        extend(database, by, stage, body)
        database.flush()
        return extensions(database, by.course)


@router.post(
    "/{course}/announcements",
    summary="Announce something to a course",
    status_code=201,
    response_model=AnnouncementView,
    openapi_extra=described(AnnounceBody, example={"text": "The second stage is due on Friday."}),
    responses=CHANGES,
)
async def add_announcement(
    request: Request,
    course: CourseName,
    identity: Submitter,
    body: Annotated[AnnounceBody, Depends(payload(AnnounceBody))],
) -> Any:
    """For its staff. It stands on the course's page, and for a week on every page of its members."""
    answer = await run_in_threadpool(_announce, identity, course, body.text)
    return see_other(request, f"/courses/{course}") or answer


def _announce(identity: Identity, course: str, text: str) -> AnnouncementView:
    with transaction() as database:
        return announce(database, seat(database, identity, course, Right.STAFF), text)


@router.post(
    "/{course}/announcements/{number}/remove",
    summary="Take an announcement back",
    response_model=CourseView,
    responses={**CHANGES, **documented("unknown_course", "not_found")},
)
def remove_announcement(
    request: Request,
    course: CourseName,
    number: Annotated[int, Path(ge=1, le=2**62, description="Its number.")],
    identity: Submitter,
    catalog: StageCatalog,
) -> Any:
    """For its staff. The audit log keeps its text."""
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        withdraw(database, by, number)
        database.flush()
        answer = course_view(database, by, catalog)
    return see_other(request, f"/courses/{course}") or answer
