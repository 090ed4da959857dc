"""One submission: its result, its events, its source, and calling it off."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from api.auth import Identity, identify
from api.catalog import Catalog
from api.dependencies import EventHub, OpenStreams, StageCatalog, SubmissionId, Submitter, Viewer
from api.events import Hub, follow, read, sse
from api.limits import address_of
from api.negotiation import JSON, TEXT, preferred, see_other
from api.problems import SIGNED_IN, Refusal, documented
from api.schemas import SubmissionView
from api.submissions import cancel, find
from api.views import plain_view, view
from kernelgate.db import transaction
from kernelgate.models import Submission

router = APIRouter(prefix="/submissions", tags=["submissions"])
_REFUSALS = documented(*SIGNED_IN, "unknown_submission")
_LAST_ID = 2**62


def find_for(identity: Identity | None, submission_id: str, catalog: Catalog) -> Submission:
    """`find`, in a transaction of its own."""
    with transaction() as database:
        return find(database, submission_id, identity, catalog)


@router.get(
    "/{id}",
    summary="A submission and its result",
    response_model=SubmissionView,
    responses={
        200: {
            "model": SubmissionView,
            "description": "JSON, or with `Accept: text/plain` the evidence block.",
            "content": {TEXT: {"example": "VERDICT  wrong_answer\nREASON   wrong_value\n…"}},
        },
        **_REFUSALS,
    },
)
def get_submission(request: Request, id: SubmissionId, identity: Viewer, catalog: StageCatalog) -> Any:  # noqa: A002
    """The state of a submission and, once it is graded, its newest result. Its owner, instructors and admins see it."""
    with transaction() as database:
        submission = find(database, id, identity, catalog)
        if preferred(request.headers.get("accept", ""), (JSON, TEXT)) == TEXT:
            return PlainTextResponse(plain_view(request, database, submission, catalog.stages()))
        return view(request, database, submission)


@router.get(
    "/{id}/source",
    summary="The submitted file",
    response_class=PlainTextResponse,
    responses={200: {"content": {TEXT: {"example": "import torch\n"}}}, **_REFUSALS},
)
def get_source(id: SubmissionId, identity: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    """The bytes as they were submitted, always as text to be shown or saved, never as something a browser runs."""
    with transaction() as database:
        submission = find(database, id, identity, catalog)
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", submission.filename)
    headers = {"Content-Disposition": f'inline; filename="{safe}"'}
    return Response(submission.source, media_type="text/plain; charset=utf-8", headers=headers)


@router.post(
    "/{id}/cancel",
    summary="Call a submission off",
    response_model=SubmissionView,
    responses={**_REFUSALS, **documented("already_final", "csrf_failed")},
)
def cancel_submission(request: Request, id: SubmissionId, identity: Submitter, catalog: StageCatalog) -> Any:  # noqa: A002
    """A queued submission ends at once; a running one is killed within a second and ends as `cancelled`."""
    with transaction() as database:
        submission = find(database, id, identity, catalog)
        if submission.user_id != identity.user_id and not identity.administers:
            raise Refusal("missing_role", "Only its owner or an administrator may call a submission off.")
        answer = view(request, database, cancel(database, submission))
    return see_other(request, f"/submissions/{id}") or answer


class EventStream(StreamingResponse):
    """A text/event-stream that gives its place back however it ends, even if it never began."""

    def __init__(self, content: AsyncIterator[bytes], released: Callable[[], None]) -> None:
        super().__init__(
            content, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )
        self._released = released

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._released()


async def stream(hub: Hub, submission_id: str, after: int, shown: Callable[[], bool]) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for event in follow(hub, submission_id, after, shown):
        yield sse(event)


@router.get(
    "/{id}/events",
    summary="What happens to a submission, live",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "One event for each change of state, phase, case and measurement; the data is an `Event`.",
            "content": {
                "text/event-stream": {
                    "example": 'id: 7\nevent: case\ndata: {"id":7,"kind":"case","data":{"index":0,"state":"right"}}\n\n'
                }
            },
        },
        204: {"description": "Finished, and nothing after Last-Event-ID: do not connect again."},
        **_REFUSALS,
        **documented("too_many_streams"),
    },
)
async def get_events(
    request: Request,
    id: SubmissionId,  # noqa: A002
    identity: Viewer,
    catalog: StageCatalog,
    hub: EventHub,
    streams: OpenStreams,
    last_event_id: Annotated[str | None, Header(description="Only events after this one.")] = None,
) -> Response:
    """Server-sent events: those stored already, then each as it happens, until the submission is finished.

    A client that lost the connection sends the last id it saw as `Last-Event-ID` and misses nothing.
    """
    after = _last_id(last_event_id)
    id = (await run_in_threadpool(find_for, identity, id, catalog)).id  # noqa: A001 - it may have been a beginning
    news = await run_in_threadpool(read, id, after)
    if news.final and not news.events:
        return Response(status_code=204)
    holder = identity.handle if identity else f"address {address_of(request)}"
    streams.take(holder)
    shown = partial(still_shown, request, id, catalog)
    return EventStream(stream(hub, id, after, shown), lambda: streams.give(holder))


def still_shown(request: Request, submission_id: str, catalog: Catalog) -> bool:
    """Whether whoever opened a stream may still see what it tells: a token can end and a submission be hidden meanwhile."""
    try:
        find_for(identify(request), submission_id, catalog)
    except Refusal:
        return False
    return True


def _last_id(value: str | None) -> int:
    if value is None or not value:
        return 0
    if not re.fullmatch(r"[0-9]{1,19}", value) or int(value) > _LAST_ID:
        raise Refusal(
            "invalid_field",
            "The last event's id is a number.",
            field="header.last-event-id",
            value=value,
            accepted="the id of an event of this stream",
        )
    return int(value)
