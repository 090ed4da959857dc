"""A course's webhooks, for its instructors, and those of the service, for administrators."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from api.auth import Identity
from api.body import read_form, validated
from api.courses.seats import Right, seat
from api.dependencies import Admin, CourseName, Reader, Submitter
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.problems import Refusal
from api.webhooks.holding import hold_for_course, hold_for_service, webhooks
from api.webhooks.schemas import NewWebhook, WebhookBody
from kernelgate.db import transaction
from kernelgate.outbox import Happening

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
_EVENTS = {
    Happening.FIRST_ACCEPTED: "the first accepted submission to a stage",
    Happening.RECORD: "a record: faster than all before on its GPU model",
    Happening.JUDGE_ERROR: "a failure of the service's own",
}


@router.get("/courses/{course}/webhooks")
def webhooks_page(request: Request, viewer: Reader, course: CourseName) -> Response:
    return _of_course(request, viewer, course)


@router.post("/courses/{course}/webhooks")
async def add_webhook(request: Request, viewer: Submitter, course: CourseName) -> Response:
    """Shows the secret in the answer itself: a redirect would have to carry it."""
    try:
        made = await run_in_threadpool(hold_for_course, viewer, course, await _stated(request))
    except Refusal as refusal:
        return await run_in_threadpool(_of_course, request, viewer, course, problem=refusal)
    return await run_in_threadpool(_of_course, request, viewer, course, made=made)


def _of_course(
    request: Request, viewer: Identity, course: str, *, made: NewWebhook | None = None, problem: Refusal | None = None
) -> Response:
    with transaction() as database:
        by = seat(database, viewer, course, Right.INSTRUCTOR)
        found = webhooks(database, by.course)
    return page(
        request,
        "course_webhooks.html",
        status=problem.kind.status if problem else 200,
        seat=by,
        course=by.course,
        under=f"/courses/{by.course.name}/webhooks",
        webhooks=found,
        events=_EVENTS,
        made=made,
        problem=problem.document() if problem else None,
    )


@router.get("/admin/webhooks")
def service_webhooks_page(request: Request, viewer: Admin) -> Response:  # noqa: ARG001 - for administrators only
    return _of_service(request)


@router.post("/admin/webhooks")
async def add_service_webhook(request: Request, viewer: Admin) -> Response:
    try:
        made = await run_in_threadpool(hold_for_service, viewer, await _stated(request))
    except Refusal as refusal:
        return await run_in_threadpool(_of_service, request, problem=refusal)
    return await run_in_threadpool(_of_service, request, made=made)


def _of_service(request: Request, *, made: NewWebhook | None = None, problem: Refusal | None = None) -> Response:
    with transaction() as database:
        found = webhooks(database, None)
    return page(
        request,
        "admin_webhooks.html",
        status=problem.kind.status if problem else 200,
        under="/admin/webhooks",
        webhooks=found,
        events=_EVENTS,
        made=made,
        problem=problem.document() if problem else None,
    )


async def _stated(request: Request) -> WebhookBody:
    """The form, in which each event is a check box."""
    fields = await read_form(request)
    events = [name.removeprefix("event_") for name in fields if name.startswith("event_")]
    rest = {name: value for name, value in fields.items() if not name.startswith("event_")}
    return validated(WebhookBody, {**rest, "events": events})
