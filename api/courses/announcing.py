"""What the staff of a course says to all of it: on the course's page, and for a week on top of every page of its members.

What else stands on top of pages is gathered here too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.courses.commenting import unseen
from api.courses.schemas import AnnouncementView
from api.courses.seats import Seat
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.db import transaction
from kernelgate.models import Course, CourseRole, Member, now
from kernelgate.talk import Announcement, Question

_ON_TOP = timedelta(days=7)
_MOST_ON_TOP = 3


class Notice(NamedTuple):
    """What stands on top of a page: an announcement, comments, questions that wait. address: of the page that it is about."""

    address: str
    title: str
    text: str
    at: datetime | None = None


def notices(user_id: int, path: str) -> list[Notice]:
    """What somebody has not seen or answered; and of the courses that they are a member of the newest announcements of a week,
    but for the pages that show them."""
    with transaction() as database:
        found = [
            Notice(f"/submissions/{name}/source#comments", f"Submission {name[:8]}", _new_comments(count))
            for name, count in unseen(database, user_id)
        ]
        found += [
            Notice(f"/courses/{name}/questions", title, _open(count))
            for name, title, count in _waiting(database, user_id)
        ]
        rows = database.execute(
            select(Course.name, Course.title, Announcement.text, Announcement.at)
            .join(Course, Course.id == Announcement.course_id)
            .join(Member, Member.course_id == Course.id)
            .where(Member.user_id == user_id, Member.role == CourseRole.MEMBER, Announcement.at > now() - _ON_TOP)
            .order_by(Announcement.id.desc())
            .limit(_MOST_ON_TOP)
        )
        found += [Notice(f"/courses/{name}", title, text, at) for name, title, text, at in rows]
    return [each for each in found if path != each.address.partition("#")[0]]


def _new_comments(count: int) -> str:
    return f"{count} new comment{'s' if count != 1 else ''} on your file."


def _open(count: int) -> str:
    return f"{count} question{'s wait' if count != 1 else ' waits'} for an answer."


def _waiting(database: Session, user_id: int) -> list[tuple[str, str, int]]:
    """Courses whose staff somebody is of, with questions that nobody has answered."""
    rows = database.execute(
        select(Course.name, Course.title, func.count())
        .join(Member, Member.course_id == Course.id)
        .join(Question, Question.course_id == Course.id)
        .where(Member.user_id == user_id, Member.role != CourseRole.MEMBER, Question.answered_at.is_(None))
        .group_by(Course.id)
    )
    return [(name, title, count) for name, title, count in rows]


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
