"""People of a course: the list, adding and inviting them, roles and teams, leaving; and joining by a link."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool

from api.auth import Identity
from api.body import described, payload
from api.courses.roster import (
    add_people,
    change_member,
    join,
    make_link,
    member_named,
    member_view,
    members,
    remove_member,
)
from api.courses.schemas import (
    CourseInvite,
    CourseInviteBody,
    Joined,
    MemberChange,
    MemberView,
    RosterAnswer,
    RosterBody,
)
from api.courses.seats import Right, seat
from api.dependencies import CourseName, Handle, Reader, Submitter
from api.negotiation import see_other
from api.problems import SIGNED_IN, documented
from api.routes.courses import CHANGES, READS
from kernelgate.db import transaction

router = APIRouter(tags=["courses"])
_OF_MEMBER = documented("unknown_course", "unknown_member")


@router.get("/courses/{course}/members", summary="Who is in a course", responses=READS)
def list_members(course: CourseName, identity: Reader) -> list[MemberView]:
    """For its staff; the staff first, then by handle."""
    with transaction() as database:
        found = seat(database, identity, course, Right.STAFF)
        return [member_view(each) for each in members(database, found.course)]


@router.post(
    "/courses/{course}/members",
    summary="Add people by a list of e-mail addresses, a CSV or handles",
    response_model=RosterAnswer,
    openapi_extra=described(RosterBody, example={"lines": "ada@uni.example, Ada Lovelace, red\nbob@uni.example"}),
    responses=CHANGES,
)
async def add_members(
    request: Request,
    course: CourseName,
    identity: Submitter,
    body: Annotated[RosterBody, Depends(payload(RosterBody))],
) -> Any:
    """For its instructors. Each address gets a link of its own, which is in the answer, this once; no mail is sent from here.

    Listed again, an address that has not joined gets a new link and the old one ends.
    """
    return await run_in_threadpool(add_people, request, identity, course, body)


@router.post(
    "/courses/{course}/members/{handle}",
    summary="Change a member's role, team, name or e-mail address",
    response_model=MemberView,
    openapi_extra=described(MemberChange, example={"team": "red"}),
    responses={**CHANGES, **_OF_MEMBER, **documented("last_instructor")},
)
async def edit_member(
    request: Request,
    course: CourseName,
    handle: Handle,
    identity: Submitter,
    body: Annotated[MemberChange, Depends(payload(MemberChange))],
) -> Any:
    """For its instructors."""
    answer = await run_in_threadpool(_edit, identity, course, handle, body)
    return see_other(request, f"/courses/{course}/members") or answer


def _edit(identity: Identity, course: str, handle: str, body: MemberChange) -> MemberView:
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        return member_view(change_member(database, by, member_named(database, by.course, handle), body))


@router.post(
    "/courses/{course}/members/{handle}/remove",
    summary="Take somebody out of a course",
    response_model=MemberView,
    responses={**CHANGES, **_OF_MEMBER, **documented("last_instructor")},
)
def drop_member(request: Request, course: CourseName, handle: Handle, identity: Submitter) -> Any:
    """For its instructors, and for oneself. What they submitted stays theirs; the staff sees it no more."""
    with transaction() as database:
        by = seat(database, identity, course)
        if handle.lower() != identity.handle.lower():
            by = seat(database, identity, course, Right.INSTRUCTOR)
        member = member_named(database, by.course, handle)
        answer = member_view(member)
        remove_member(database, by, member)
    return see_other(request, f"/courses/{course}/members" if by.staff else "/courses") or answer


@router.post(
    "/courses/{course}/invites",
    summary="Make a link into a course",
    status_code=201,
    response_model=CourseInvite,
    openapi_extra=described(CourseInviteBody, example={"uses": 200, "days": 14}),
    responses=CHANGES,
)
async def add_course_invite(
    request: Request,
    course: CourseName,
    identity: Submitter,
    body: Annotated[CourseInviteBody, Depends(payload(CourseInviteBody))],
) -> Any:
    """For its instructors. Whoever opens it joins; those without an account make one with it."""
    return await run_in_threadpool(make_link, request, identity, course, body)


@router.post(
    "/join/{secret}",
    summary="Join a course",
    response_model=Joined,
    responses=documented(*SIGNED_IN, "csrf_failed", "cross_site", "unusable_invite"),
)
def join_course(
    request: Request,
    secret: Annotated[str, Path(max_length=200, description="The last part of the course's invite link.")],
    identity: Submitter,
) -> Any:
    """With the account that one is signed in with. The course's staff sees from then on what one submits to its stages."""
    with transaction() as database:
        course, role = join(database, identity, secret)
    return see_other(request, f"/courses/{course.name}") or Joined(course=course.name, role=role)
