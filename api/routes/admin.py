"""For administrators: accounts, tokens and invites, and the audit log. Queue, stages and judging: admin_grading."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import func, select

from api.administration import change_user, submission_counts, user_named, user_view
from api.auth import Identity
from api.body import described, payload
from api.dependencies import Admin
from api.negotiation import see_other
from api.paging import next_address
from api.problems import SIGNED_IN, Refusal, documented
from api.schemas import (
    AuditPage,
    AuditView,
    InviteBody,
    InviteView,
    NewInvite,
    NewToken,
    TokenBody,
    TokenView,
    UserBody,
    UserChange,
    UserPage,
    UserView,
)
from api.sign_in import account_refusal
from api.tokens import revoke, token_for, tokens_of
from api.views import base_url
from kernelgate.accounts import HANDLE, AccountError, audit, create_invite, create_user, find_user
from kernelgate.db import transaction
from kernelgate.models import Audit, Invite, User, now

router = APIRouter(prefix="/admin", tags=["admin"])
REFUSALS = documented(*SIGNED_IN, "missing_role")
CHANGES = documented("csrf_failed", "cross_site", "invalid_field", "malformed_json")
Handle = Annotated[str, Path(max_length=64, description="The account's handle.", examples=["ada"])]
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
    key = func.lower(User.handle)
    wanted = select(User).order_by(key).limit(limit + 1)
    if search:
        wanted = wanted.where(key.contains(search.lower(), autoescape=True))
    if after:
        wanted = wanted.where(key > after.lower())
    with transaction() as database:
        users = database.scalars(wanted).all()
        counts = submission_counts(database, [user.id for user in users])
    items = [user_view(user, counts.get(user.id, 0)) for user in users[:limit]]
    more = len(users) > limit
    return UserPage(items=items, next=next_address(request, after=items[-1].handle) if more else None)


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
    usable = select(Invite).where(Invite.uses_left > 0, Invite.expires_at > now()).order_by(Invite.id.desc())
    with transaction() as database:
        return [_invite_view(invite) for invite in database.scalars(usable)]


def _invite_view(invite: Invite) -> InviteView:
    return InviteView.model_validate({name: getattr(invite, name) for name in InviteView.model_fields})


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


def make_invite(request: Request, admin: Identity, body: InviteBody) -> NewInvite:
    """An invite and its link."""
    with transaction() as database:
        by = database.get_one(User, admin.user_id)
        invite, secret = create_invite(database, by=by, role=body.role, uses=body.uses, days=body.days, note=body.note)
        database.refresh(invite)
        audit(database, admin.handle, "invite.create", f"invite {invite.id}", role=str(body.role), uses=body.uses)
        url = f"{base_url(request)}/invite/{secret}"
        return NewInvite.model_validate({**_invite_view(invite).model_dump(), "url": url})


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
        answer = _invite_view(invite)
    return see_other(request, "/admin/invites") or answer


@router.get("/audit", summary="What administrators did", responses=REFUSALS)
def list_audit(
    request: Request,
    admin: Admin,  # noqa: ARG001
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only lines before this one; from `next`.")] = None,
) -> AuditPage:
    """Newest first."""
    wanted = select(Audit).order_by(Audit.id.desc()).limit(limit + 1)
    with transaction() as database:
        rows = database.scalars(wanted if before is None else wanted.where(Audit.id < before)).all()
    names = AuditView.model_fields
    items = [AuditView.model_validate({name: getattr(row, name) for name in names}) for row in rows[:limit]]
    return AuditPage(items=items, next=next_address(request, before=items[-1].id) if len(rows) > limit else None)
