"""For administrators: accounts, tokens and invites, and the audit log. Queue, stages and judging: admin_grading."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.concurrency import run_in_threadpool

from api.administration import change_user, end_user, rename, submission_counts, user_named, user_view
from api.auth import Identity
from api.body import described, payload
from api.dependencies import Admin, Handle
from api.directory import audit_page, invite_view, make_invite, usable_invites, users_page
from api.negotiation import see_other
from api.own_credentials import recovery_link
from api.problems import SIGNED_IN, Refusal, documented
from api.schemas import (
    AuditPage,
    HandleChange,
    InviteBody,
    InviteView,
    NewInvite,
    NewToken,
    RecoveryLink,
    TokenBody,
    TokenView,
    UserBody,
    UserChange,
    UserEnd,
    UserEnded,
    UserPage,
    UserView,
)
from api.sign_in import account_refusal
from api.tokens import revoke, token_for, tokens_of
from kernelgate.accounts import HANDLE, AccountError, audit, create_user, find_user
from kernelgate.credentials import RECOVERY
from kernelgate.db import transaction
from kernelgate.models import Invite, now

router = APIRouter(prefix="/admin", tags=["admin"])
REFUSALS = documented(*SIGNED_IN, "missing_role")
CHANGES = documented("csrf_failed", "cross_site", "invalid_field", "malformed_json")
Number = Annotated[int, Path(ge=1, le=2**62, description="Its number, from the list.")]


@router.get("/users", summary="Accounts", responses=REFUSALS)
def list_users(
    request: Request,
    admin: Admin,  # noqa: ARG001
    search: Annotated[str | None, Query(max_length=64, description="Part of a handle.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    after: Annotated[str | None, Query(max_length=64, description="Handles after this one; from `next`.")] = None,
) -> UserPage:
    """By handle, with how much each submitted."""
    return users_page(request, search=search, limit=limit, after=after)


@router.post(
    "/users",
    summary="Make an account",
    status_code=201,
    response_model=UserView,
    openapi_extra=described(UserBody, example={"handle": "ada", "role": "submitter"}),
    responses={**REFUSALS, **CHANGES, **documented("handle_taken")},
)
async def add_user(request: Request, admin: Admin, body: Annotated[UserBody, Depends(payload(UserBody))]) -> Any:
    """An account without a token; make one under `/admin/users/{handle}/tokens`."""
    answer = await run_in_threadpool(_add_user, admin, body)
    return see_other(request, "/admin/users") or answer


def _add_user(admin: Identity, body: UserBody) -> UserView:
    with transaction() as database:
        if HANDLE.fullmatch(body.handle) and find_user(database, body.handle) is not None:
            raise Refusal("handle_taken", "Somebody has that handle.", field="handle", value=body.handle)
        try:
            user = create_user(database, body.handle, body.role)
        except AccountError as error:
            raise account_refusal(error, body.handle) from error
        database.refresh(user)
        audit(database, admin.handle, "user.create", user.handle, role=user.role)
        return user_view(user)


@router.post(
    "/users/{handle}",
    summary="Change an account's role, disable or enable it",
    response_model=UserView,
    openapi_extra=described(UserChange, example={"disabled": True}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_user", "last_admin")},
)
async def edit_user(
    request: Request, admin: Admin, handle: Handle, body: Annotated[UserChange, Depends(payload(UserChange))]
) -> Any:
    """Disabling ends the account's sessions, makes its tokens useless and takes it off the leaderboards."""
    answer = await run_in_threadpool(_edit_user, admin, handle, body)
    return see_other(request, "/admin/users") or answer


def _edit_user(admin: Identity, handle: str, body: UserChange) -> UserView:
    with transaction() as database:
        user = change_user(database, admin, user_named(database, handle), body)
        return user_view(user, submission_counts(database, [user.id]).get(user.id, 0))


@router.post(
    "/users/{handle}/recovery",
    summary="Make a link to sign in again",
    status_code=201,
    responses={**REFUSALS, **documented("unknown_user", "csrf_failed")},
)
def make_recovery(request: Request, admin: Admin, handle: Handle) -> RecoveryLink:
    """For whoever lost password, identity and token. The link is in the answer, this once; its bearer sets a new password,
    once, and then sessions, password and identities that were there end. Tokens stay: revoke those that others may have."""
    with transaction() as database:
        user = user_named(database, handle)
        url = recovery_link(request, admin, user, database)
        return RecoveryLink(handle=user.handle, url=url, expires_at=now() + RECOVERY)


@router.post(
    "/users/{handle}/rename",
    summary="Give an account another handle",
    response_model=UserView,
    openapi_extra=described(HandleChange, example={"handle": "ada_lovelace"}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_user", "handle_taken")},
)
async def rename_user(
    request: Request, admin: Admin, handle: Handle, body: Annotated[HandleChange, Depends(payload(HandleChange))]
) -> Any:
    """Everything of the account stays, and is shown under the new handle from now on. The audit log keeps the old one."""
    answer = await run_in_threadpool(_rename, admin, handle, body.handle)
    return see_other(request, f"/admin/users/{answer.handle}") or answer


def _rename(admin: Identity, handle: str, new: str) -> UserView:
    with transaction() as database:
        return user_view(rename(database, admin, user_named(database, handle), new))


@router.post(
    "/users/{handle}/remove",
    summary="Merge an account into another one, or delete it",
    response_model=UserEnded,
    openapi_extra=described(UserEnd, example={"into": "ada", "confirm": "ada2"}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_user", "last_admin")},
)
async def remove_user(
    request: Request, admin: Admin, handle: Handle, body: Annotated[UserEnd, Depends(payload(UserEnd))]
) -> Any:
    """With `into`, its submissions, results and seats in courses become that account's, its tokens end. Without, all of it is
    deleted, for good. Not while something of it is queued or running."""
    answer = await run_in_threadpool(_remove, admin, handle, body)
    return see_other(request, f"/admin/users/{answer.into}" if answer.into else "/admin/users") or answer


def _remove(admin: Identity, handle: str, body: UserEnd) -> UserEnded:
    with transaction() as database:
        return end_user(database, admin, user_named(database, handle), body)


@router.get(
    "/users/{handle}/tokens", summary="An account's tokens", responses={**REFUSALS, **documented("unknown_user")}
)
def list_tokens(admin: Admin, handle: Handle) -> list[TokenView]:  # noqa: ARG001
    """Without their secrets, which nobody has."""
    with transaction() as database:
        return tokens_of(database, user_named(database, handle).id)


@router.post(
    "/users/{handle}/tokens",
    summary="Make a token for an account",
    status_code=201,
    response_model=NewToken,
    openapi_extra=described(TokenBody, example={"name": "course", "days": 120}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_user", "too_many_tokens", "too_many_tokens_per_hour")},
)
async def add_token(admin: Admin, handle: Handle, body: Annotated[TokenBody, Depends(payload(TokenBody))]) -> Any:
    """Its secret is in the answer, this once. One for oneself, or with the scope `admin`, ends with the maker's token."""
    return await run_in_threadpool(_add_token, admin, handle, body)


def _add_token(admin: Identity, handle: str, body: TokenBody) -> NewToken:
    with transaction() as database:
        return token_for(database, admin, user_named(database, handle), body)


@router.post(
    "/tokens/{id}/revoke",
    summary="Revoke anyone's token",
    response_model=TokenView,
    responses={**REFUSALS, **documented("unknown_token_id", "csrf_failed")},
)
def revoke_any(request: Request, admin: Admin, id: Number) -> Any:  # noqa: A002
    """From now on requests with it get 401; so do the sessions opened with it and the tokens made from it."""
    with transaction() as database:
        answer = revoke(database, id, admin.handle, owner=None)
    return see_other(request, "/admin/users") or answer


@router.get("/invites", summary="Invites that can be used", responses=REFUSALS)
def list_invites(admin: Admin) -> list[InviteView]:  # noqa: ARG001
    """Newest first, without their links, which were shown once."""
    return usable_invites()


@router.post(
    "/invites",
    summary="Make an invite",
    status_code=201,
    response_model=NewInvite,
    openapi_extra=described(InviteBody, example={"role": "submitter", "uses": 30, "days": 14, "note": "course 2"}),
    responses={**REFUSALS, **CHANGES},
)
async def add_invite(request: Request, admin: Admin, body: Annotated[InviteBody, Depends(payload(InviteBody))]) -> Any:
    """The link is in the answer, this once. Whoever opens it chooses a handle and has an account."""
    return await run_in_threadpool(make_invite, request, admin, body)


@router.post(
    "/invites/{id}/revoke",
    summary="Take an invite back",
    response_model=InviteView,
    responses={**REFUSALS, **documented("unusable_invite", "csrf_failed")},
)
def revoke_invite(request: Request, admin: Admin, id: Number) -> Any:  # noqa: A002
    """Its link stops working; accounts made with it stay."""
    with transaction() as database:
        invite = database.get(Invite, id)
        if invite is None:
            raise Refusal("unusable_invite", "There is no such invite.", field="path.id", value=id)
        invite.uses_left = 0
        audit(database, admin.handle, "invite.revoke", f"invite {invite.id}")
        answer = invite_view(invite)
    return see_other(request, "/admin/invites") or answer


@router.get("/audit", summary="What administrators did", responses=REFUSALS)
def list_audit(
    request: Request,
    admin: Admin,  # noqa: ARG001
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only lines before this one; from `next`.")] = None,
) -> AuditPage:
    """Newest first."""
    return audit_page(request, limit=limit, before=before)
