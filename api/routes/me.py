"""The caller's own account: who they are, what they submitted, their tokens."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import func, select

from api.auth import Identity
from api.body import described, payload
from api.dependencies import Reader, Submitter
from api.negotiation import see_other
from api.paging import Before, Limit, filtered, submissions_page
from api.problems import SIGNED_IN, documented
from api.schemas import Me, NewToken, SubmissionPage, TokenBody, TokenView
from api.tokens import own_token, revoke, tokens_of
from kernelgate.db import transaction
from kernelgate.models import Scope, Submission
from kernelgate.settings import settings
from kernelgate.verdicts import State, Verdict

router = APIRouter(prefix="/me", tags=["account"])
_REFUSALS = documented(*SIGNED_IN)
TokenId = Annotated[int, Path(description="The token's number, from the list.", ge=1, le=2**62)]


@router.get("", summary="Who am I", responses=_REFUSALS)
def get_me(identity: Reader) -> Me:
    """The account, what it may do, and how much of its limits is used."""
    with transaction() as database:
        unfinished = Submission.state.in_([State.QUEUED, State.RUNNING])
        mine = Submission.user_id == identity.user_id, Submission.trial.is_(None)
        pending = database.scalar(select(func.count()).where(*mine, unfinished)) or 0
    return Me(
        handle=identity.handle,
        role=identity.role,
        scopes=[scope for scope in Scope if identity.may(scope)],
        via=identity.via,
        csrf_token=identity.csrf or None,
        pending=pending,
        pending_limit=settings().pending_limit,
        hourly_limit=settings().hourly_limit,
        run_hourly_limit=settings().run_hourly_limit,
    )


@router.get("/submissions", summary="My submissions", responses={**_REFUSALS, **documented("invalid_field")})
def my_submissions(
    request: Request,
    identity: Reader,
    limit: Limit = 50,
    before: Before = None,
    stage: Annotated[str | None, Query(max_length=64, description="Only this stage's.")] = None,
    state: Annotated[State | None, Query(description="Only in this state.")] = None,
    verdict: Annotated[Verdict | None, Query(description="Only with this verdict.")] = None,
) -> SubmissionPage:
    """Newest first; `next` leads to older ones."""
    wanted = filtered(identity.user_id, stage=stage, state=state, verdict=verdict)
    with transaction() as database:
        return submissions_page(request, database, wanted, limit=limit, before=before)


@router.get("/tokens", summary="My tokens", responses=_REFUSALS)
def my_tokens(identity: Reader) -> list[TokenView]:
    """Newest first, without their secrets."""
    with transaction() as database:
        return tokens_of(database, identity.user_id)


@router.post(
    "/tokens",
    summary="Make a token",
    status_code=201,
    response_model=NewToken,
    openapi_extra=described(TokenBody, example={"name": "laptop", "scopes": ["read", "submit"], "days": 90}),
    responses={
        **_REFUSALS,
        **documented("csrf_failed", "invalid_field", "malformed_json", "too_many_tokens", "too_many_tokens_per_hour"),
    },
)
async def make_token(identity: Submitter, body: Annotated[TokenBody, Depends(payload(TokenBody))]) -> Any:
    """Its secret is in the answer, this once. It comes from the token that one is signed in with, itself or by a session.

    So it gets no scope and no day that that one lacks, and ends with it.
    """
    return await run_in_threadpool(_make, identity, body)


def _make(identity: Identity, body: TokenBody) -> NewToken:
    with transaction() as database:
        return own_token(database, identity, body)


@router.post(
    "/tokens/{id}/revoke",
    summary="Revoke a token",
    response_model=TokenView,
    responses={**_REFUSALS, **documented("unknown_token_id", "csrf_failed")},
)
def revoke_token(request: Request, id: TokenId, identity: Submitter) -> Any:  # noqa: A002
    """From now on requests with it get 401; so do the sessions opened with it and the tokens made from it."""
    with transaction() as database:
        answer = revoke(database, id, identity.handle, owner=identity.user_id)
    return see_other(request, "/me/tokens") or answer
