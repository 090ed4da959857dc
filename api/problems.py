"""Answers that say no: RFC 9457 problem documents, each of a kind listed in KINDS.

A problem names the field, the value that was sent, what is accepted and the next step. The list is the documentation:
docs/api.md is written from it, and a test fails when a kind has no test of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from api.negotiation import prefers_html
from kernelgate.text import line

log = logging.getLogger(__name__)
MEDIA_TYPE = "application/problem+json"


class Kind(NamedTuple):
    """A kind of refusal: its status, a title that never varies, and what the client can do about it."""

    status: int
    title: str
    next_step: str


KINDS: dict[str, Kind] = {
    "malformed_json": Kind(400, "The body is not JSON", "Correct the JSON at the position named and send it again."),
    "malformed_form": Kind(400, "The form cannot be read", "Send each field once, as curl -F does."),
    "not_signed_in": Kind(401, "Sign in first", "Send `Authorization: Bearer kg_…`, or sign in with a browser."),
    "malformed_token": Kind(401, "That is not a token", "Send `Authorization: Bearer kg_…`, exactly as it was shown."),
    "unknown_token": Kind(401, "Unknown token", "Check for a cut-off copy, or make a new token."),
    "expired_token": Kind(401, "The token has expired", "Make a new token under /me/tokens."),
    "wrong_password": Kind(
        401, "Handle or password is wrong", "Try again, or ask an administrator for a link to set a new one."
    ),
    "revoked_token": Kind(401, "The token was revoked", "Make a new token under /me/tokens."),
    "account_disabled": Kind(403, "The account is disabled", "Ask an administrator."),
    "missing_scope": Kind(403, "The token may not do this", "Use a token that has the scope."),
    "missing_role": Kind(403, "The account may not do this", "Ask an administrator."),
    "csrf_failed": Kind(403, "The form is out of date", "Reload the page and send the form again."),
    "cross_site": Kind(403, "The request came from another site", "Send it from this service's own pages."),
    "no_passwords": Kind(403, "No passwords here", "Sign in with the provider, or with a token."),
    "own_sign_in_first": Kind(
        403, "Sign in as yourself first", "Sign in with your password or the provider, not with a token."
    ),
    "no_account": Kind(403, "No account goes with this identity", "Ask an administrator for an invite."),
    "signup_closed": Kind(403, "Sign-up is closed", "Ask an administrator for an invite."),
    "not_found": Kind(404, "Nothing there", "Check the address."),
    "unknown_submission": Kind(404, "No such submission", "List your own under /me/submissions."),
    "unknown_stage": Kind(404, "No such stage", "List the stages under /stages."),
    "unknown_course": Kind(404, "No such course", "List yours under /courses."),
    "no_contest": Kind(404, "No such contest", "Open the course's page, or ask its staff."),
    "unknown_member": Kind(404, "Not in the course", "List who is under /courses/NAME/members."),
    "unknown_user": Kind(404, "No such account", "List the accounts under /admin/users."),
    "unknown_token_id": Kind(404, "No such token", "List your tokens under /me/tokens."),
    "unusable_recovery": Kind(404, "The link cannot be used", "Ask an administrator for a new one."),
    "no_provider": Kind(404, "No provider to sign in with", "Sign in with a password or a token."),
    "sign_in_lost": Kind(409, "The sign-in was not completed", "Begin again with the button to sign in."),
    "unusable_invite": Kind(404, "The invite cannot be used", "Ask for a new invite."),
    "method_not_allowed": Kind(405, "Wrong method", "Use a method of the Allow header."),
    "slow_body": Kind(408, "The body took too long", "Send the body without pauses."),
    "stage_closed": Kind(409, "The stage is closed", "Choose another stage under /stages."),
    "stage_unverified": Kind(
        409, "The stage is not verified", "Wait until a worker has verified it, or ask an administrator."
    ),
    "not_open_yet": Kind(409, "The stage is not open yet", "Wait until it opens."),
    "no_own_start": Kind(409, "There is no start of your own", "Take part on the contest's own clock."),
    "contest_runs": Kind(409, "The contest is not over", "Wait until it ends."),
    "course_taken": Kind(409, "There is a course of that name", "Choose another name."),
    "too_many_webhooks": Kind(409, "Too many webhooks", "Remove one that is not needed."),
    "last_instructor": Kind(409, "Nobody would be left to instruct", "Make another member an instructor first."),
    "not_held": Kind(409, "The submission is not held", "List those that are under /admin/held."),
    "already_final": Kind(409, "The submission is finished", "Submit again if you want another verdict."),
    "not_final": Kind(409, "The submission is not finished", "Wait for its verdict, or cancel it first."),
    "identity_taken": Kind(409, "The identity is linked already", "Sign in with it, or unlink it there first."),
    "last_credential": Kind(
        409, "Nothing would be left to sign in with", "Set a password, or link an identity, first."
    ),
    "handle_taken": Kind(409, "The handle is taken", "Choose another handle."),
    "too_many_tokens": Kind(409, "Too many tokens work at once", "Revoke one that is not needed."),
    "last_admin": Kind(409, "Nobody would be left to administer", "Make another account an admin first."),
    "body_too_large": Kind(413, "The body is too large", "Send a smaller file."),
    "source_too_large": Kind(413, "The source is too large", "Send a smaller file."),
    "unsupported_body": Kind(415, "The body has another type", "Send a type that is accepted."),
    "invalid_field": Kind(422, "A field cannot be accepted", "Correct the fields named and send it again."),
    "empty_source": Kind(422, "The source is empty", "Send the file that you want graded."),
    "binary_source": Kind(422, "The source is not text", "Send the source file, not something built from it."),
    "not_utf8": Kind(422, "The source is not UTF-8", "Save the file as UTF-8 and send it again."),
    "wrong_filename": Kind(422, "The file has another name", "Rename the file, or choose the stage that it is for."),
    "idempotency_mismatch": Kind(
        422, "The Idempotency-Key was used for something else", "Use a new key for a new submission."
    ),
    "too_many_pending": Kind(429, "Too many submissions are pending", "Wait for one to finish, or cancel one."),
    "quota_used": Kind(429, "The course's quota is used up", "Wait as Retry-After says."),
    "too_many_messages": Kind(429, "Too many messages within the hour", "Wait as Retry-After says."),
    "too_many_per_hour": Kind(429, "Too many submissions within the hour", "Wait as Retry-After says."),
    "too_many_tokens_per_hour": Kind(429, "Too many tokens within the hour", "Wait as Retry-After says."),
    "too_many_sign_ups": Kind(429, "Too many new accounts from one address", "Wait as Retry-After says."),
    "too_many_sign_ins": Kind(429, "Too many failed sign-ins", "Wait as Retry-After says."),
    "too_many_streams": Kind(429, "Too many open event streams", "Close one, or poll the submission."),
    "internal_error": Kind(500, "The service failed", "Try again; if it stays, tell an administrator."),
    "provider_failed": Kind(
        502, "The provider did not answer as it should", "Try again; if it stays, tell an administrator."
    ),
    "database_unavailable": Kind(503, "The database does not answer", "Try again in a few seconds."),
}


SIGNED_IN = (
    "not_signed_in", "malformed_token", "unknown_token", "expired_token", "revoked_token", "account_disabled",
    "missing_scope",
)  # fmt: skip
"""What a route that needs an account can answer before it looks at anything else."""


class FieldProblem(BaseModel):
    """One thing that is wrong with one field."""

    field: str = Field(description="Where: a body field, `query.<name>`, `path.<name>` or `header.<name>`.")
    value: str | None = Field(None, description="What was sent, shortened; secrets are left out.")
    problem: str = Field(description="What is wrong with it.")
    accepted: str | None = Field(None, description="What is accepted.")


class Problem(BaseModel):
    """An RFC 9457 problem document."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="`urn:kernelgate:problem:<code>`.")
    title: str
    status: int
    detail: str = Field(description="What happened, in a sentence.")
    code: str = Field(description="The kind of problem, as a word for machines.")
    next_step: str = Field(description="What to do about it.")
    errors: list[FieldProblem] = Field(default_factory=list, description="The fields that are wrong.")


class Refusal(Exception):  # noqa: N818 - it is an answer, and raised where one is due
    """Ends a request with a problem of kind `code`. Raises KeyError for a code that is not in KINDS.

    detail: one sentence. field, value, accepted: the one field that is wrong; errors: when there are several.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        field: str | None = None,
        value: object = None,
        accepted: str | None = None,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.kind = KINDS[code]
        self.detail = detail
        self.headers = dict(headers or {})
        self.errors = list(errors)
        if field is not None:
            self.errors.insert(0, FieldProblem(field=field, value=shown(value), problem=detail, accepted=accepted))

    def document(self) -> Problem:
        return Problem(
            type=f"urn:kernelgate:problem:{self.code}",
            title=self.kind.title,
            status=self.kind.status,
            detail=self.detail,
            code=self.code,
            next_step=self.kind.next_step,
            errors=self.errors,
        )


def shown(value: object) -> str | None:
    """A value as it may stand in an answer: one line, at most 80 characters, nothing that steers a terminal."""
    return None if value is None else line(value if isinstance(value, str) else repr(value), 80)


def problem_response(refusal: Refusal) -> JSONResponse:
    body = refusal.document().model_dump(mode="json")
    return JSONResponse(body, refusal.kind.status, headers=refusal.headers, media_type=MEDIA_TYPE)


def documented(*codes: str) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route that can answer with these kinds, one example for each."""
    by_status: dict[int | str, dict[str, Any]] = {}
    for code in codes:
        kind = KINDS[code]
        entry = by_status.setdefault(
            kind.status,
            {
                "description": HTTPStatus(kind.status).phrase,
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": {}}},
            },
        )
        example = Refusal(code, kind.title + ".").document().model_dump(mode="json")
        entry["content"][MEDIA_TYPE]["examples"][code] = {"summary": kind.title, "value": example}
    return by_status


def from_exception(error: Exception) -> Refusal:
    """The refusal that an exception amounts to. Only what was not foreseen is logged, with its trace."""
    match error:
        case Refusal():
            return error
        case RequestValidationError():
            return invalid(error.errors())
        case HTTPException():
            return _from_http(error)
        case OperationalError() | PoolTimeoutError():
            log.error("the database does not answer: %s", error)
            return _database()
        case DBAPIError() if error.connection_invalidated:
            return _database()
    log.error("unforeseen", exc_info=error)
    return Refusal("internal_error", "The service failed on this request; it was written to its log.")


def _database() -> Refusal:
    return Refusal(
        "database_unavailable", "The database cannot be reached at the moment.", headers={"Retry-After": "5"}
    )


def _from_http(error: HTTPException) -> Refusal:
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            return Refusal("not_found", "There is nothing at this address.")
        case 405:
            return Refusal("method_not_allowed", f"Accepted here: {headers.get('Allow', 'GET')}.", headers=headers)
        case 400:
            return Refusal("malformed_form", f"The form cannot be read: {line(str(error.detail))}")
    log.error("unforeseen HTTP error %s: %s", error.status_code, error.detail)
    return Refusal("internal_error", "The service failed on this request; it was written to its log.")


def invalid(errors: Sequence[Any]) -> Refusal:
    """A refusal from pydantic's list of errors: each field with its value and what is accepted."""
    found = [_field_problem(error) for error in errors[:20]]
    detail = "; ".join(f"{each.field}: {each.problem}" for each in found[:3])
    return Refusal("invalid_field", line(detail, 500), errors=found)


def _field_problem(error: Any) -> FieldProblem:
    where = [line(str(part), 80) for part in error["loc"]]
    if where[:1] == ["body"] and len(where) > 1:
        where = where[1:]
    kind = error["type"]
    secret = where[-1:] in (["token"], ["csrf_token"], ["password"], ["current"])
    value = None if kind == "missing" or secret else shown(error.get("input"))
    accepted = "no other fields" if kind == "extra_forbidden" else None
    return FieldProblem(
        field=".".join(where) or "body",
        value=value,
        problem=line(error["msg"].removeprefix("Value error, "), 300),
        accepted=accepted,
    )


async def handle(request: Request, error: Exception) -> Response:
    """The application's one exception handler: a page for a person, a problem document for everyone else."""
    refusal = from_exception(error)
    page = getattr(request.app.state, "problem_page", None)
    if page is not None and prefers_html(request.scope):
        rendered: Response = page(request, refusal)
        rendered.headers.update(refusal.headers)
        return rendered
    return problem_response(refusal)
