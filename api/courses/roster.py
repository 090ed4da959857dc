"""People of a course: lists of e-mail addresses and handles, invite links, joining, teams, leaving."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple

from fastapi import Request
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from api.auth import Identity
from api.courses.schemas import (
    CourseInvite,
    CourseInviteBody,
    InvitedView,
    MemberChange,
    MemberView,
    RosterAnswer,
    RosterBody,
)
from api.courses.seats import Right, Seat, may_make_courses, seat
from api.problems import Refusal
from api.views import base_url
from kernelgate.accounts import audit, create_invite, digest, find_user
from kernelgate.db import transaction
from kernelgate.models import Course, CourseRole, Invite, Member, Team, User, now

_EMAIL = re.compile(r"[^\s@,;<>\"\x00-\x1f]{1,64}@[^\s@,;<>\"\x00-\x1f]{1,190}")
_HEADINGS = {"email", "e-mail", "mail", "handle", "user"}
_MOST_LINES = 2000


class Line(NamedTuple):
    """A line of a list: an e-mail address or a handle, the person's name, the team's."""

    who: str
    person: str = ""
    team: str = ""


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a pasted list or a CSV file."""
    delimiter = "\t" if "\t" in text else ";" if ";" in text and "," not in text else ","
    for number, cells in enumerate(csv.reader(text.splitlines()[:_MOST_LINES], delimiter=delimiter)):
        who, person, team = ([cell.strip()[:200] for cell in cells] + ["", "", ""])[:3]
        if who and not (number == 0 and who.lower() in _HEADINGS):
            yield Line(who, person, team)


def add_people(request: Request, identity: Identity, course: str, body: RosterBody) -> RosterAnswer:
    """Puts handles into the course, and makes an invite for each e-mail address that has no seat and no invite yet.

    For its instructors, as a transaction of its own.
    """
    with transaction() as database:
        return _add_lines(request, database, seat(database, identity, course, Right.INSTRUCTOR), body)


def _add_lines(request: Request, database: Session, by: Seat, body: RosterBody) -> RosterAnswer:
    answer = RosterAnswer(added=[], invited=[], skipped=[])
    known = set(database.scalars(select(func.lower(Member.email)).where(Member.course_id == by.course.id)))
    for each in lines_of(body.lines):
        if _EMAIL.fullmatch(each.who):
            if each.who.lower() in known:
                answer.skipped.append(f"{each.who}: is in the course already")
                continue
            known.add(each.who.lower())
            answer.invited.append(_invite_by_mail(request, database, by, each, body))
        else:
            _add_handle(database, by, each, body.role, answer)
    if answer.added or answer.invited:
        audit(
            database, by.identity.handle, "course.people", by.course.name,
            role=str(body.role), added=answer.added, invited=len(answer.invited),
        )  # fmt: skip
    return answer


def _add_handle(database: Session, by: Seat, each: Line, role: CourseRole, answer: RosterAnswer) -> None:
    """A member's work is seen by the staff, so nobody is put into a course by those who could not see it before."""
    if not may_make_courses(by.identity):
        answer.skipped.append(f"{each.who}: no e-mail address; give them an invite link")
        return
    user = find_user(database, each.who[:64])
    if user is None:
        answer.skipped.append(f"{each.who}: neither an account nor an e-mail address")
        return
    enter(database, by.course, user.id, Invite(course_role=role, email="", person=each.person, team=each.team))
    answer.added.append(user.handle)


def _invite_by_mail(request: Request, database: Session, by: Seat, each: Line, body: RosterBody) -> InvitedView:
    database.execute(
        delete(Invite).where(Invite.course_id == by.course.id, func.lower(Invite.email) == each.who.lower())
    )
    invite, secret = _invite(database, by, body.role, uses=1, days=body.days)
    invite.email, invite.person, invite.team = each.who, each.person, each.team
    return InvitedView(email=each.who, person=each.person, team=each.team, url=f"{base_url(request)}/invite/{secret}")


def _invite(database: Session, by: Seat, role: CourseRole, *, uses: int, days: float) -> tuple[Invite, str]:
    maker = database.get_one(User, by.identity.user_id)
    invite, secret = create_invite(database, by=maker, uses=uses, days=days, note=f"course {by.course.name}")
    invite.course_id, invite.course_role = by.course.id, role
    return invite, secret


def make_link(request: Request, identity: Identity, course: str, body: CourseInviteBody) -> CourseInvite:
    """For its instructors, as a transaction of its own."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        invite, secret = _invite(database, by, body.role, uses=body.uses, days=body.days)
        audit(database, by.identity.handle, "course.invite", by.course.name, role=str(body.role), uses=body.uses)
        url = f"{base_url(request)}/invite/{secret}"
        return CourseInvite(url=url, role=body.role, uses=body.uses, expires_at=invite.expires_at)


def join(database: Session, identity: Identity, secret: str) -> tuple[Course, CourseRole]:
    """Puts whoever is signed in into the invite's course; whoever is in it already keeps what they are, and the invite its use.

    Raises Refusal for an invite that leads into no course, is used up or has ended.
    """
    usable = Invite.hash == digest(secret), Invite.uses_left > 0, Invite.expires_at > now()
    invite = database.scalars(
        select(Invite).where(*usable, Invite.course_id.is_not(None)).with_for_update()
    ).one_or_none()
    if invite is None or invite.course_id is None:
        raise Refusal("unusable_invite", "The invite is unknown, used up or expired.", field="path.secret")
    course = database.get_one(Course, invite.course_id)
    seated = database.get(Member, (course.id, identity.user_id))
    if seated is not None:
        return course, CourseRole(seated.role)
    database.execute(update(Invite).where(Invite.id == invite.id).values(uses_left=Invite.uses_left - 1))
    enter(database, course, identity.user_id, invite)
    audit(database, identity.handle, "course.join", course.name, role=invite.course_role)
    return course, CourseRole(invite.course_role)


def enter(database: Session, course: Course, user_id: int, invite: Invite) -> None:
    """A seat as the invite says. Somebody who has one keeps its role."""
    member = database.get(Member, (course.id, user_id))
    if member is None:
        member = Member(course_id=course.id, user_id=user_id, role=invite.course_role, email="", person="")
        database.add(member)
    member.email, member.person = invite.email or member.email, invite.person or member.person
    if invite.team:
        member.team_id = team_of(database, course, invite.team)
    database.flush()


def team_of(database: Session, course: Course, name: str) -> int | None:
    """The number of the team of this name, which is made if it is new; None for no name."""
    if not name.strip():
        return None
    wanted = select(Team).where(Team.course_id == course.id, Team.name == name.strip())
    team = database.scalars(wanted).one_or_none()
    if team is None:
        team = Team(course_id=course.id, name=name.strip()[:80])
        database.add(team)
        database.flush()
    return team.id


def members(database: Session, course: Course) -> list[Member]:
    """By handle, the staff first."""
    rows = database.scalars(select(Member).join(User, User.id == Member.user_id).where(Member.course_id == course.id))
    return sorted(rows, key=lambda each: (each.role == CourseRole.MEMBER, each.user.handle.lower()))


def member_view(member: Member) -> MemberView:
    return MemberView(
        handle=member.user.handle, role=CourseRole(member.role), team=member.team.name if member.team else None,
        email=member.email, person=member.person, joined_at=member.joined_at,
    )  # fmt: skip


def member_named(database: Session, course: Course, handle: str) -> Member:
    """Raises Refusal when nobody of that handle is in the course."""
    user = find_user(database, handle[:64])
    member = database.get(Member, (course.id, user.id)) if user is not None else None
    if member is None:
        raise Refusal("unknown_member", "Nobody of that handle is in the course.", field="path.handle", value=handle)
    return member


def change_member(database: Session, by: Seat, member: Member, change: MemberChange) -> Member:
    if change.role is not None and change.role != member.role:
        _keep_one_instructor(database, by, member)
        audit(
            database, by.identity.handle, "course.role", by.course.name,
            user=member.user.handle, before=member.role, after=str(change.role),
        )  # fmt: skip
        member.role = change.role
    if change.team is not None:
        member.team_id = team_of(database, by.course, change.team)
    member.email = member.email if change.email is None else change.email
    member.person = member.person if change.person is None else change.person
    database.flush()
    database.refresh(member)
    return member


def remove_member(database: Session, by: Seat, member: Member) -> None:
    """Takes somebody out of the course; what they submitted stays theirs."""
    _keep_one_instructor(database, by, member)
    audit(database, by.identity.handle, "course.remove", by.course.name, user=member.user.handle, role=member.role)
    database.delete(member)
    database.flush()


def _keep_one_instructor(database: Session, by: Seat, member: Member) -> None:
    """The rows are locked, so two instructors cannot demote each other at once."""
    if member.role != CourseRole.INSTRUCTOR or by.role is None:
        return
    others = select(Member.user_id).where(
        Member.course_id == by.course.id, Member.role == CourseRole.INSTRUCTOR, Member.user_id != member.user_id
    )
    if not database.scalars(others.with_for_update()).all():
        raise Refusal("last_instructor", f"{member.user.handle} is the course's only instructor.", field="path.handle")
