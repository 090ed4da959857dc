"""Webhooks of a course and of the service: made, listed, tested, removed."""

from __future__ import annotations

import secrets

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.courses.seats import Right, seat
from api.problems import Refusal
from api.webhooks.places import check_url
from api.webhooks.schemas import DeliveryView, NewWebhook, WebhookBody, WebhookView
from kernelgate.accounts import audit
from kernelgate.db import transaction
from kernelgate.models import Course
from kernelgate.outbox import Delivery, Happening, Webhook, post

MOST = 5
_SHOWN = 10


def hold_for_course(identity: Identity, course: str, body: WebhookBody) -> NewWebhook:
    """Makes a webhook of a course. For its instructors, as a transaction of its own."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        return hold(database, by.course, identity.handle, body)


def hold_for_service(identity: Identity, body: WebhookBody) -> NewWebhook:
    """Makes a webhook of the whole service. For administrators, as a transaction of its own."""
    with transaction() as database:
        return hold(database, None, identity.handle, body)


def hold(database: Session, course: Course | None, actor: str, body: WebhookBody) -> NewWebhook:
    """Makes a webhook. Raises Refusal for an address that may not be reached, and for one too many."""
    check_url(body.url)
    number = course.id if course is not None else None
    held = database.scalar(select(func.count()).where(Webhook.course_id.is_not_distinct_from(number))) or 0
    if held >= MOST:
        raise Refusal("too_many_webhooks", f"There are {held} webhooks; at most {MOST} are held.")
    secret = f"whsec_{secrets.token_urlsafe(32)}"
    row = Webhook(
        course_id=number, url=body.url, secret=secret, events=[str(each) for each in dict.fromkeys(body.events)],
        created_by=actor, failures=0,
    )  # fmt: skip
    database.add(row)
    database.flush()
    database.refresh(row)
    audit(database, actor, "webhook.create", _target(course), url=row.url, events=row.events)
    return NewWebhook(**_view(database, row).model_dump(), secret=secret)


def webhooks(database: Session, course: Course | None) -> list[WebhookView]:
    number = course.id if course is not None else None
    rows = database.scalars(select(Webhook).where(Webhook.course_id.is_not_distinct_from(number)).order_by(Webhook.id))
    return [_view(database, row) for row in rows]


def drop(database: Session, course: Course | None, actor: str, number: int) -> None:
    row = _the_one(database, course, number)
    audit(database, actor, "webhook.remove", _target(course), url=row.url)
    database.delete(row)
    database.flush()


def ping(database: Session, course: Course | None, actor: str, number: int) -> WebhookView:
    """Sends a test, and turns a webhook on again that failed too often. One test at a time."""
    row = _the_one(database, course, number)
    row.off_at, row.failures = None, 0
    waits = select(Delivery.id).where(
        Delivery.webhook_id == row.id, Delivery.event == Happening.PING, Delivery.next_at.is_not(None)
    )
    if database.scalar(waits.limit(1)) is None:
        post(database, row, Happening.PING, {"course": course.name if course else None, "by": actor})
    audit(database, actor, "webhook.test", _target(course), url=row.url)
    database.flush()
    return _view(database, row)


def _the_one(database: Session, course: Course | None, number: int) -> Webhook:
    row = database.get(Webhook, number)
    if row is None or row.course_id != (course.id if course is not None else None):
        raise Refusal("not_found", "There is no such webhook here.", field="path.number", value=number)
    return row


def _target(course: Course | None) -> str:
    return course.name if course is not None else "service"


def _view(database: Session, row: Webhook) -> WebhookView:
    newest = (
        select(Delivery)
        .where(Delivery.webhook_id == row.id)
        .order_by(Delivery.created_at.desc(), Delivery.id)
        .limit(_SHOWN)
    )
    return WebhookView(
        id=row.id, url=row.url, events=[Happening(each) for each in row.events], created_by=row.created_by,
        created_at=row.created_at, off_at=row.off_at,
        deliveries=[
            DeliveryView(
                id=each.id, event=Happening(each.event), created_at=each.created_at, tries=each.tries,
                delivered_at=each.delivered_at, next_at=each.next_at, answer=each.answer,
            )
            for each in database.scalars(newest)
        ],
    )  # fmt: skip
