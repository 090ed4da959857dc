"""Exports of a course: for Gradescope, and the work log of one person; and which of its submissions are alike."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api.courses.alike import pairs
from api.courses.gradescope import archive, of_person
from api.courses.schedule import stage_of
from api.courses.schemas import AlikePair
from api.courses.seats import Right, seat
from api.courses.timeline import person_in
from api.courses.worklog import markdown, worklog
from api.dependencies import CourseName, Handle, Reader, StageCatalog, StageName
from api.problems import documented
from api.routes.courses import READS
from kernelgate.db import transaction

router = APIRouter(prefix="/courses", tags=["courses"])
_OF_PERSON = documented("unknown_course", "unknown_member", "unknown_stage")


@router.get(
    "/{course}/people/{handle}/{stage}/results.json",
    summary="What counts of one person, as Gradescope's results.json",
    responses={**READS, **_OF_PERSON},
)
def get_results_json(
    course: CourseName, handle: Handle, stage: StageName, identity: Reader, catalog: StageCatalog
) -> dict[str, object]:
    """For the person, and for the course's staff. A test for each case, the points as `score`, the speedup as leaderboard."""
    with transaction() as database:
        by = seat(database, identity, course)
        member = person_in(database, by, handle)
        stage_of(database, by.course, stage)
        return of_person(database, by, member.user_id, stage, catalog.with_drafts())


@router.get(
    "/{course}/gradescope.zip",
    summary="What counts of everybody, as Gradescope's results.json",
    response_class=Response,
    responses={200: {"content": {"application/zip": {"example": "STAGE/HANDLE/results.json, …, points.csv"}}}, **READS},
)
def get_gradescope(course: CourseName, identity: Reader, catalog: StageCatalog) -> Response:
    """For its staff. STAGE/HANDLE/results.json of every member and stage, and points.csv with the e-mail addresses."""
    with transaction() as database:
        body = archive(database, seat(database, identity, course, Right.STAFF), catalog.with_drafts())
    headers = {"Content-Disposition": f'attachment; filename="gradescope-{course}.zip"'}
    return Response(body, media_type="application/zip", headers=headers)


@router.get(
    "/{course}/logs/{handle}",
    summary="One person's work log, as Markdown",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {"example": "# GPU programming: ada\n"}}}, **READS, **_OF_PERSON},
)
def get_log(course: CourseName, handle: Handle, identity: Reader, catalog: StageCatalog) -> Response:
    """For the person, and for the course's staff: every attempt in every stage. A browser gets a page to print."""
    stages = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, identity, course)
        member = person_in(database, by, handle)
        log = worklog(database, by, handle, stages)
        text = markdown(by.course.title, member.person or member.user.handle, log, stages)
    headers = {"Content-Disposition": f'inline; filename="log-{member.user.handle}.md"'}
    return Response(text, media_type="text/markdown; charset=utf-8", headers=headers)


@router.get(
    "/{course}/stages/{stage}/similarity",
    summary="Which submissions of a stage are alike",
    responses={**READS, **documented("unknown_course", "unknown_stage")},
)
def get_similarity(course: CourseName, stage: StageName, identity: Reader, catalog: StageCatalog) -> list[AlikePair]:
    """For its staff; the most alike first, 200 at most. Names, numbers, comments and layout do not matter, what the stage hands
    out does not count, and nothing is decided by it.

    Whoever reads every submission of the service sees members compared with everybody, earlier courses included.
    """
    stages = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        stage_of(database, by.course, stage)
        return pairs(database, by, catalog.stage(stage, drafts=True), stages)
