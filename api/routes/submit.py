"""`POST /submit`: a file in, a submission out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse

from api.auth import Identity
from api.body import inlined
from api.catalog import Catalog
from api.dependencies import Bell, EventHub, StageCatalog, Submitter
from api.events import wait_final
from api.negotiation import JSON, TEXT, preferred, see_other
from api.problems import SIGNED_IN, Refusal, documented
from api.schemas import SubmissionView, SubmitBody
from api.sent import Sent
from api.submissions import create
from api.submitted import read_submission
from api.views import plain_view, view
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.settings import settings
from kernelgate.verdicts import State

router = APIRouter(tags=["submissions"])
_KEY = re.compile(r"[\x21-\x7e]{1,128}")
_EXAMPLE = {"stage": "online_softmax", "filename": "online_softmax.py", "source": "import torch\n…", "wait": 30}
_SCHEMA = inlined(SubmitBody.model_json_schema())
_FORM_SCHEMA = {
    "type": "object",
    "required": ["stage", "file"],
    "properties": {
        "stage": {"type": "string"},
        "file": {
            "type": "string",
            "format": "binary",
            "description": "The source file. A text field `source` also does; of both the file counts.",
        },
        "wait": {"type": "number", "minimum": 0},
        "gpu": {"type": "string"},
    },
}
_REQUEST_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {"schema": _FORM_SCHEMA, "example": {"stage": "online_softmax", "wait": 30}},
            "application/json": {"schema": _SCHEMA, "example": _EXAMPLE},
        },
    }
}


@router.post(
    "/submit",
    summary="Submit a file to a stage",
    status_code=202,
    response_model=SubmissionView,
    openapi_extra=_REQUEST_BODY,
    responses={
        200: {"model": SubmissionView, "description": "The verdict came within `wait`: JSON, or the evidence as `text/plain`."},
        202: {"model": SubmissionView, "description": "Stored; a worker will grade it."},
        **documented(
            *SIGNED_IN,
            "malformed_json", "malformed_form", "csrf_failed", "cross_site", "unknown_stage", "slow_body", "stage_closed",
            "stage_unverified", "body_too_large", "source_too_large", "unsupported_body", "invalid_field", "empty_source",
            "binary_source", "not_utf8", "wrong_filename", "idempotency_mismatch", "too_many_pending",
            "too_many_per_hour", "not_open_yet", "quota_used", "database_unavailable",
        ),
    },
)  # fmt: skip
async def submit(
    request: Request,
    response: Response,
    identity: Submitter,
    catalog: StageCatalog,
    bell: Bell,
    hub: EventHub,
    wait: Annotated[
        float | None, Query(ge=0, description="Seconds to wait for the verdict; the body's `wait` counts before it.")
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Header(description="1 to 128 printable characters. The same key with the same file gives the same submission."),
    ] = None,
) -> Any:
    """Stores a file to be graded: multipart as curl -F sends it, or JSON.

    Answers 202 with the submission's addresses, or 200 with its result when it finished within `wait` seconds.
    A file that cannot be graded at all (empty, binary, too large, another ending) is refused here; one that does not compile
    is graded and gets `compile_error`.
    """
    sent, stated = await read_submission(request, "web" if identity.via == "session" else "api")
    sent = _keyed(sent, idempotency_key)
    submission, new = await run_in_threadpool(_store, identity, sent, catalog)
    if new:
        bell.ring(submission.id, submission.queue)
    redirect = see_other(request, f"/submissions/{submission.id}")
    if redirect is not None:
        return redirect
    seconds = min((stated if stated is not None else wait) or 0.0, settings().wait_limit_s)
    if seconds > 0:
        await wait_final(hub, submission.id, seconds)
    answer, text = await run_in_threadpool(_view, request, submission.id, catalog)
    response.status_code = 200 if State(answer.state).final else 202
    response.headers["Location"] = answer.urls.submission
    if text is not None:
        return PlainTextResponse(text, response.status_code, headers=dict(response.headers))
    return answer


def _keyed(sent: Sent, key: str | None) -> Sent:
    if key is not None and not _KEY.fullmatch(key):
        raise Refusal(
            "invalid_field",
            "The key is not acceptable.",
            field="header.idempotency-key",
            value=key,
            accepted="1 to 128 printable ASCII characters without spaces",
        )
    return replace(sent, idempotency_key=key)


def _store(identity: Identity, sent: Sent, catalog: Catalog) -> tuple[Submission, bool]:
    with transaction() as database:
        return create(database, identity, sent, catalog)


def _view(request: Request, submission_id: str, catalog: Catalog) -> tuple[SubmissionView, str | None]:
    """The submission as JSON, and as text too where that is what the client asked for."""
    with transaction() as database:
        submission = database.get_one(Submission, submission_id)
        answer = view(request, database, submission)
        if preferred(request.headers.get("accept", ""), (JSON, TEXT)) != TEXT:
            return answer, None
        return answer, f"ID       {submission.id}\n" + plain_view(request, database, submission, catalog.stages())
