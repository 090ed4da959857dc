"""Webhooks of a course, for its instructors, and of the service, for administrators."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.body import described, payload
from api.courses.seats import Right, seat
from api.dependencies import Admin, CourseName, Reader, Submitter
from api.negotiation import see_other
from api.problems import SIGNED_IN, documented
from api.routes.courses import CHANGES, READS
from api.webhooks.holding import drop, hold_for_course, hold_for_service, ping, webhooks
from api.webhooks.schemas import NewWebhook, WebhookBody, WebhookView
from kernelgate.db import transaction

router = APIRouter()
_EXAMPLE = {"url": "https://chat.uni.example/hooks/gpu", "events": ["first_accepted", "record", "judge_error"]}
_ADMIN = documented(*SIGNED_IN, "missing_role")
_REFUSED = documented("too_many_webhooks", "invalid_field")
Number = Annotated[int, Path(ge=1, le=2**62, description="Its number.")]


@router.get("/courses/{course}/webhooks", tags=["courses"], summary="A course's webhooks", responses=READS)
def list_webhooks(course: CourseName, identity: Reader) -> list[WebhookView]:
    """For its instructors, each with its last deliveries."""
    with transaction() as database:
        return webhooks(database, seat(database, identity, course, Right.INSTRUCTOR).course)


@router.post(
    "/courses/{course}/webhooks",
    tags=["courses"],
    summary="Tell another program of a course's events",
    status_code=201,
    response_model=NewWebhook,
    openapi_extra=described(WebhookBody, example=_EXAMPLE),
    responses={**CHANGES, **documented("unknown_course"), **_REFUSED},
)
async def add_webhook(
    course: CourseName, identity: Submitter, body: Annotated[WebhookBody, Depends(payload(WebhookBody))]
) -> Any:
    """For its instructors. Deliveries are signed with the secret that the answer shows, this once; see docs/courses.md."""
    return await run_in_threadpool(hold_for_course, identity, course, body)


@router.post(
    "/courses/{course}/webhooks/{number}/test",
    tags=["courses"],
    summary="Send a test, and turn a webhook on again",
    response_model=WebhookView,
    responses={**CHANGES, **documented("unknown_course", "not_found")},
)
def test_webhook(request: Request, course: CourseName, number: Number, identity: Submitter) -> Any:
    """For its instructors. The event is `ping`."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        found = ping(database, by.course, identity.handle, number)
    return see_other(request, f"/courses/{course}/webhooks") or found


@router.post(
    "/courses/{course}/webhooks/{number}/remove",
    tags=["courses"],
    summary="Remove a webhook",
    status_code=204,
    responses={**CHANGES, **documented("unknown_course", "not_found")},
)
def remove_webhook(request: Request, course: CourseName, number: Number, identity: Submitter) -> Response:
    """For its instructors. What waits for it is not sent any more."""
    with transaction() as database:
        by = seat(database, identity, course, Right.INSTRUCTOR)
        drop(database, by.course, identity.handle, number)
    return see_other(request, f"/courses/{course}/webhooks") or Response(status_code=204)


@router.get("/admin/webhooks", tags=["admin"], summary="The service's webhooks", responses=_ADMIN)
def list_service_webhooks(_: Admin) -> list[WebhookView]:
    """Told of every stage's events, each with its last deliveries."""
    with transaction() as database:
        return webhooks(database, None)


@router.post(
    "/admin/webhooks",
    tags=["admin"],
    summary="Tell another program of the service's events",
    status_code=201,
    response_model=NewWebhook,
    openapi_extra=described(WebhookBody, example=_EXAMPLE),
    responses={**_ADMIN, **documented("csrf_failed", "cross_site", "malformed_json"), **_REFUSED},
)
async def add_service_webhook(identity: Admin, body: Annotated[WebhookBody, Depends(payload(WebhookBody))]) -> Any:
    """The answer shows the secret, this once."""
    return await run_in_threadpool(hold_for_service, identity, body)


@router.post(
    "/admin/webhooks/{number}/test",
    tags=["admin"],
    summary="Send a test of a webhook of the service",
    response_model=WebhookView,
    responses={**_ADMIN, **documented("csrf_failed", "cross_site", "not_found")},
)
def test_service_webhook(request: Request, number: Number, identity: Admin) -> Any:
    """Turns it on again. The event is `ping`."""
    with transaction() as database:
        found = ping(database, None, identity.handle, number)
    return see_other(request, "/admin/webhooks") or found


@router.post(
    "/admin/webhooks/{number}/remove",
    tags=["admin"],
    summary="Remove a webhook of the service",
    status_code=204,
    responses={**_ADMIN, **documented("csrf_failed", "cross_site", "not_found")},
)
def remove_service_webhook(request: Request, number: Number, identity: Admin) -> Response:
    """What waits for it is not sent any more."""
    with transaction() as database:
        drop(database, None, identity.handle, number)
    return see_other(request, "/admin/webhooks") or Response(status_code=204)
