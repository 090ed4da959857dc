"""Courses: the list, one of them, its people, its settings, and one of its stages with the course's board."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select
from starlette.responses import Response

from api.auth import Identity
from api.body import read_form, validated
from api.courses.board import course_board
from api.courses.catalogue import course_view, courses_of
from api.courses.judging import rejudge
from api.courses.kept import row_of
from api.courses.roster import add_people, make_link, member_named, member_view, members
from api.courses.schedule import extensions, stage_of
from api.courses.schemas import CourseInvite, CourseInviteBody, RosterAnswer, RosterBody
from api.courses.seats import Right, may_make_courses, seat
from api.dependencies import CourseName, Handle, Reader, StageCatalog, StageName, Submitter
from api.negotiation import HtmlRoute
from api.pages.admin_grading import preview_of
from api.pages.mine import verdict_of
from api.pages.site.environment import page
from api.pages.standing import reached
from api.problems import Refusal
from kernelgate.db import transaction
from kernelgate.models import CourseRole, LateRule, PointsRule, Team, now

router = APIRouter(prefix="/courses", route_class=HtmlRoute, include_in_schema=False)


@router.get("")
def courses(request: Request, viewer: Reader) -> Response:
    with transaction() as database:
        found = courses_of(database, viewer)
    return page(request, "courses.html", courses=found, may_make=may_make_courses(viewer))


@router.get("/{course}")
def course(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    with transaction() as database:
        by = seat(database, viewer, course)
        shown = course_view(database, by, catalog)
        progress = reached(database, viewer.user_id, catalog.with_drafts())
        member = by.role is CourseRole.MEMBER
        own = row_of(database, by.course, catalog.with_drafts(), viewer.handle) if member else None
    cells = {cell.stage: cell for cell in own.cells} if own else {}
    return page(request, "course.html", course=shown, seat=by, progress=progress, now=now(), own=own, cells=cells)


@router.get("/{course}/members")
def people(request: Request, viewer: Reader, course: CourseName) -> Response:
    return _people(request, viewer, course)


def _people(
    request: Request,
    viewer: Identity,
    course: str,
    *,
    answer: RosterAnswer | None = None,
    link: CourseInvite | None = None,
    problem: Refusal | None = None,
) -> Response:
    with transaction() as database:
        by = seat(database, viewer, course, Right.STAFF)
        found = [member_view(each) for each in members(database, by.course)]
    return page(
        request,
        "course_members.html",
        status=problem.kind.status if problem else 200,
        seat=by,
        course=by.course,
        members=found,
        roles=list(CourseRole),
        answer=answer,
        link=link,
        problem=problem.document() if problem else None,
    )


@router.get("/{course}/members/{handle}")
def member(request: Request, viewer: Reader, course: CourseName, handle: Handle) -> Response:
    """To change one person: forms in every row of a list of hundreds would be most of its page."""
    with transaction() as database:
        by = seat(database, viewer, course, Right.INSTRUCTOR)
        shown = member_view(member_named(database, by.course, handle))
        teams = database.scalars(select(Team.name).where(Team.course_id == by.course.id).order_by(Team.name)).all()
    return page(
        request, "course_member.html", seat=by, course=by.course, member=shown, teams=teams, roles=list(CourseRole)
    )


@router.post("/{course}/members")
async def add_members(request: Request, viewer: Submitter, course: CourseName) -> Response:
    """Shows the links in the answer itself: a redirect would have to carry them."""
    fields = {name: value for name, value in (await read_form(request)).items() if value != ""}
    try:
        body = validated(RosterBody, fields)
        answer = await run_in_threadpool(add_people, request, viewer, course, body)
    except Refusal as refusal:
        return await run_in_threadpool(_people, request, viewer, course, problem=refusal)
    return await run_in_threadpool(_people, request, viewer, course, answer=answer)


@router.post("/{course}/invites")
async def add_link(request: Request, viewer: Submitter, course: CourseName) -> Response:
    fields = {name: value for name, value in (await read_form(request)).items() if value != ""}
    try:
        link = await run_in_threadpool(make_link, request, viewer, course, validated(CourseInviteBody, fields))
    except Refusal as refusal:
        return await run_in_threadpool(_people, request, viewer, course, problem=refusal)
    return await run_in_threadpool(_people, request, viewer, course, link=link)


@router.get("/{course}/settings")
def settings(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    with transaction() as database:
        by = seat(database, viewer, course, Right.STAFF)
        shown = course_view(database, by, catalog)
        given = extensions(database, by.course)
    used = {each.stage for each in shown.stages}
    return page(
        request,
        "course_settings.html",
        seat=by,
        course=shown,
        extensions=given,
        free=[stage for name, stage in catalog.stages().items() if name not in used],
        now=now(),
        late_rules=list(LateRule),
        point_rules=list(PointsRule),
    )


@router.get("/{course}/stages/{stage}")
def course_stage(
    request: Request, viewer: Reader, course: CourseName, stage: StageName, catalog: StageCatalog
) -> Response:
    """The course's board; for the staff also judging again, with `?preview` what that would take up."""
    asked = request.query_params
    verdict = verdict_of(asked.get("verdict"))
    with transaction() as database:
        by = seat(database, viewer, course)
        rules = stage_of(database, by.course, stage)
        found = catalog.stage(stage, drafts=True)
        board = course_board(database, rules, found, gpu=asked.get("gpu"), staff=by.staff)
        wanted = by.staff and "preview" in asked
        preview = preview_of(rejudge(database, by, stage, verdict, dry_run=True), found) if wanted else None
    return page(
        request,
        "course_stage.html",
        seat=by,
        course=by.course,
        rules=rules,
        board=board,
        preview=preview,
        verdict=verdict or "",
        timed=found.spec.ranking == "speedup",
    )
