"""What the staff of a course says to all of it: on the course's page, and for a week on top of every page of its members."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.schemas import AnnouncementView
from api.courses.seats import Seat
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.db import transaction
from kernelgate.models import Announcement, Course, CourseRole, Member, now

_ON_TOP = timedelta(days=7)
_MOST_ON_TOP = 3


class Notice(NamedTuple):
    """An announcement on top of a page; `course` is its name."""

    course: str
    title: str
    text: str
    at: datetime


def notices(user_id: int, path: str) -> list[Notice]:
    """The newest of a week in the courses that somebody is a member of; none on the pages of that course, which show it."""
    with transaction() as database:
        rows = database.execute(
            select(Course.name, Course.title, Announcement.text, Announcement.at)
            .join(Course, Course.id == Announcement.course_id)
            .join(Member, Member.course_id == Course.id)
            .where(Member.user_id == user_id, Member.role == CourseRole.MEMBER, Announcement.at > now() - _ON_TOP)
            .order_by(Announcement.id.desc())
            .limit(_MOST_ON_TOP)
        )
        return [Notice(*row) for row in rows if path != f"/courses/{row.name}"]


def announce(database: Session, by: Seat, text: str) -> AnnouncementView:
    row = Announcement(course_id=by.course.id, text=text.strip(), actor=by.identity.handle)
    database.add(row)
    database.flush()
    database.refresh(row)
    audit(database, by.identity.handle, "course.announce", by.course.name, announcement=row.id)
    return announcement_view(row)


def withdraw(database: Session, by: Seat, number: int) -> None:
    """Raises Refusal for one that the course does not have."""
    row = database.get(Announcement, number)
    if row is None or row.course_id != by.course.id:
        raise Refusal("not_found", "The course has no such announcement.", field="path.id", value=number)
    audit(database, by.identity.handle, "course.withdraw", by.course.name, text=row.text)
    database.delete(row)


def announcements(database: Session, course_id: int, most: int = 50) -> list[AnnouncementView]:
    """The newest first."""
    wanted = select(Announcement).where(Announcement.course_id == course_id).order_by(Announcement.id.desc())
    return [announcement_view(row) for row in database.scalars(wanted.limit(most))]


def announcement_view(row: Announcement) -> AnnouncementView:
    return AnnouncementView(id=row.id, text=row.text, actor=row.actor, at=row.at)
