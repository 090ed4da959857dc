"""A course's webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import Response

from api.auth import Identity
from api.body import read_form, validated
from api.courses.seats import Right, seat
from api.dependencies import CourseName, Reader, Submitter
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.problems import Refusal
from api.webhooks.holding import hold_for_course, webhooks
from api.webhooks.schemas import NewWebhook, WebhookBody
from kernelgate.db import transaction

router = APIRouter(prefix="/courses", route_class=HtmlRoute, include_in_schema=False)


@router.get("/{course}/webhooks")
def webhooks_page(request: Request, viewer: Reader, course: CourseName) -> Response:
    return _page(request, viewer, course)


@router.post("/{course}/webhooks")
async def add_webhook(request: Request, viewer: Submitter, course: CourseName) -> Response:
    """Shows the secret in the answer itself: a redirect would have to carry it."""
    try:
        body = validated(WebhookBody, await read_form(request))
        made = await run_in_threadpool(hold_for_course, viewer, course, body)
    except Refusal as refusal:
        return await run_in_threadpool(_page, request, viewer, course, problem=refusal)
    return await run_in_threadpool(_page, request, viewer, course, made=made)


def _page(
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
        webhooks=found,
        made=made,
        problem=problem.document() if problem else None,
    )
