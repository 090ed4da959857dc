"""What a course announces, and answers to all, as an Atom feed (RFC 4287).

Programs that read feeds cannot sign in, so the address is the secret: somebody's own, in place of the one they had, and gone
with their seat. It reads one course's announcements and nothing else.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.courses.announcing import announcements
from api.courses.seats import Seat
from api.problems import Refusal
from kernelgate.accounts import audit, digest
from kernelgate.models import Course, Member, User
from kernelgate.talk import FeedLink, Question
from kernelgate.text import line

MEDIA_TYPE = "application/atom+xml"
_MOST = 50
_ATOM = "http://www.w3.org/2005/Atom"


class Entry(NamedTuple):
    name: str
    title: str
    text: str
    author: str
    at: datetime


def make_feed(database: Session, by: Seat) -> str:
    """The secret of the caller's new feed. Raises Refusal for an administrator without a seat."""
    if database.get(Member, (by.course.id, by.identity.user_id)) is None:
        raise Refusal("unknown_member", "A feed belongs to a seat in the course, and you have none.")
    secret = secrets.token_urlsafe(24)
    database.merge(FeedLink(course_id=by.course.id, user_id=by.identity.user_id, hash=digest(secret)))
    audit(database, by.identity.handle, "course.feed", by.course.name)
    database.flush()
    return secret


def course_of_feed(database: Session, secret: str) -> Course:
    """Raises Refusal for an address that leads nowhere, any more or ever."""
    found = database.scalars(
        select(Course)
        .join(FeedLink, FeedLink.course_id == Course.id)
        .join(User, User.id == FeedLink.user_id)
        .where(FeedLink.hash == digest(secret[:200]), User.disabled_at.is_(None))
    ).one_or_none()
    if found is None:
        raise Refusal("not_found", "There is no feed at this address; its owner may have made another.")
    return found


def atom(database: Session, course: Course, base: str, address: str) -> bytes:
    said = [
        Entry(f"announcement:{each.id}", line(each.text, 80), each.text, each.actor, each.at)
        for each in announcements(database, course.id, _MOST)
    ]
    said += _answers(database, course)
    said.sort(key=lambda entry: entry.at, reverse=True)
    own = f"urn:kernelgate:course:{course.name}"
    feed = Element("feed", xmlns=_ATOM)
    SubElement(feed, "id").text = own
    SubElement(feed, "title").text = course.title
    SubElement(feed, "updated").text = _time(said[0].at if said else course.created_at)
    SubElement(feed, "link", rel="self", href=address)
    SubElement(feed, "link", rel="alternate", href=f"{base}/courses/{course.name}")
    for each in said[:_MOST]:
        entry = SubElement(feed, "entry")
        SubElement(entry, "id").text = f"{own}:{each.name}"
        SubElement(entry, "title").text = each.title
        SubElement(entry, "updated").text = _time(each.at)
        SubElement(SubElement(entry, "author"), "name").text = each.author
        SubElement(entry, "content", type="text").text = each.text
        SubElement(entry, "link", rel="alternate", href=f"{base}/courses/{course.name}")
    written: bytes = tostring(feed, encoding="utf-8", xml_declaration=True)
    return written


def _answers(database: Session, course: Course) -> list[Entry]:
    rows = database.scalars(
        select(Question)
        .where(Question.course_id == course.id, Question.to_all, Question.answered_at.is_not(None))
        .order_by(Question.answered_at.desc())
        .limit(_MOST)
    )
    return [
        Entry(
            f"question:{row.id}", f"Answered: {line(row.text, 70)}", f"{row.text}\n\n{row.answer}",
            row.answered_by or "", row.answered_at or row.at,
        )
        for row in rows
    ]  # fmt: skip


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
