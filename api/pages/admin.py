"""For administrators: accounts, invites and the audit log. Forms go to the API's routes unless a secret comes back."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from api.administration import submission_counts, user_named, user_view
from api.auth import Identity
from api.body import read_form, validated
from api.dependencies import Admin, Handle
from api.directory import audit_page, make_invite, usable_invites, users_page
from api.negotiation import HtmlRoute
from api.own_credentials import recovery_link
from api.pages.account import read_form_lists
from api.pages.site.environment import page
from api.problems import Refusal
from api.schemas import InviteBody, NewInvite, NewToken, TokenBody
from api.tokens import token_for, tokens_of
from kernelgate.accounts import scopes_of
from kernelgate.db import transaction
from kernelgate.models import Role

router = APIRouter(prefix="/admin", route_class=HtmlRoute, include_in_schema=False)


@router.get("")
def admin_start(viewer: Admin) -> Response:  # noqa: ARG001 - only administrators are sent on
    return RedirectResponse("/admin/queue", 303)


@router.get("/users")
def users(request: Request, viewer: Admin) -> Response:  # noqa: ARG001 - for administrators only
    search, after = request.query_params.get("search", "")[:64], request.query_params.get("after", "")[:64]
    found = users_page(request, search=search or None, limit=100, after=after or None)
    return page(request, "admin_users.html", found=found, search=search, first=not after)


@router.get("/users/{handle}")
def user(request: Request, viewer: Admin, handle: Handle) -> Response:  # noqa: ARG001 - for administrators only
    return _user(request, handle)


def _user(
    request: Request, handle: str, *, made: NewToken | None = None, problem: Refusal | None = None, link: str = ""
) -> Response:
    with transaction() as database:
        account = user_named(database, handle)
        shown = user_view(account, submission_counts(database, [account.id]).get(account.id, 0))
        tokens = tokens_of(database, account.id)
    return page(
        request,
        "admin_user.html",
        status=problem.kind.status if problem else 200,
        user=shown,
        tokens=tokens,
        made=made,
        scopes=scopes_of(Role(shown.role)),
        own=None,
        link=link,
        problem=problem.document() if problem else None,
    )


@router.post("/users/{handle}/recovery")
def add_recovery(request: Request, viewer: Admin, handle: Handle) -> Response:
    with transaction() as database:
        link = recovery_link(request, viewer, user_named(database, handle), database)
    return _user(request, handle, link=link)


@router.post("/users/{handle}/tokens")
async def add_token(request: Request, viewer: Admin, handle: Handle) -> Response:
    form = await read_form_lists(request)
    try:
        made = await run_in_threadpool(_add_token, viewer, handle, validated(TokenBody, form))
    except Refusal as refusal:
        return await run_in_threadpool(_user, request, handle, problem=refusal)
    return await run_in_threadpool(_user, request, handle, made=made)


def _add_token(viewer: Identity, handle: str, body: TokenBody) -> NewToken:
    with transaction() as database:
        return token_for(database, viewer, user_named(database, handle), body)


@router.get("/invites")
def invites(request: Request, viewer: Admin) -> Response:  # noqa: ARG001 - for administrators only
    return _invites(request)


def _invites(request: Request, *, made: NewInvite | None = None, problem: Refusal | None = None) -> Response:
    return page(
        request,
        "admin_invites.html",
        status=problem.kind.status if problem else 200,
        invites=usable_invites(),
        made=made,
        roles=list(Role),
        problem=problem.document() if problem else None,
    )


@router.post("/invites")
async def add_invite(request: Request, viewer: Admin) -> Response:
    fields = {name: value for name, value in (await read_form(request)).items() if value != ""}
    try:
        made = await run_in_threadpool(make_invite, request, viewer, validated(InviteBody, fields))
    except Refusal as refusal:
        return await run_in_threadpool(_invites, request, problem=refusal)
    return await run_in_threadpool(_invites, request, made=made)


@router.get("/audit")
def audit_log(request: Request, viewer: Admin) -> Response:  # noqa: ARG001 - for administrators only
    before = request.query_params.get("before", "")
    number = int(before) if before.isdigit() and 0 < len(before) < 19 else None
    found = audit_page(request, limit=100, before=number)
    return page(request, "admin_audit.html", found=found, first=number is None)
