"""Signing in, signing up, invites, and one's account. A secret appears on one page, the answer to the form that made it."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select
from starlette.responses import RedirectResponse, Response

from api.auth import Identity, clear_cookie, identify, set_cookie
from api.body import read_form, validated
from api.dependencies import Reader, Submitter, Viewer, same_site
from api.negotiation import HtmlRoute
from api.own_credentials import change_password, end_sessions, recover, recovered_handle, unlink, ways
from api.pages.site.environment import page, wait_words
from api.problems import Refusal
from api.schemas import NewToken, TokenBody
from api.sign_in import Opened, accept_invite, find_invite, local_page, sign_in, sign_in_by_password, sign_up
from api.tokens import own_token, tokens_of
from kernelgate.accounts import digest
from kernelgate.db import transaction
from kernelgate.models import Course, Scope, Token
from kernelgate.settings import settings

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
InviteSecret = Annotated[str, Path(max_length=200)]


def door(request: Request, kind: str, *, problem: Refusal | None = None, **context: object) -> Response:
    """The form to sign in, to sign up or to accept an invite; with what was wrong about the last try."""
    shown = {
        "kind": kind,
        "problem": problem.document() if problem else None,
        "wait": wait_words(problem) if problem else "",
        "next": "",
        "handle": "",
        "invite": None,
        "course": None,
        "secret": "",
        "choice": None,
        "by_token": False,
        **context,
    }
    response = page(request, "door.html", status=problem.kind.status if problem else 200, **shown)
    response.headers.update(problem.headers if problem else {})
    return response


@router.get("/sign-in")
def sign_in_page(request: Request, viewer: Viewer) -> Response:
    onward = local_page(request.query_params.get("next"))
    return RedirectResponse(onward, 303) if viewer else door(request, "sign-in", next=onward)


@router.post("/sign-in", dependencies=[Depends(same_site)])
async def post_sign_in(request: Request) -> Response:
    fields = await read_form(request)
    onward, handle = local_page(str(fields.get("next", ""))), str(fields.get("handle", ""))[:100]
    try:
        if "token" in fields:
            opened = await run_in_threadpool(sign_in, request, str(fields["token"])[:200])
        else:
            opened = await run_in_threadpool(sign_in_by_password, request, handle, str(fields.get("password", "")))
    except Refusal as refusal:
        return door(request, "sign-in", problem=refusal, next=onward, handle=handle, by_token="token" in fields)
    response = RedirectResponse(onward, 303)
    set_cookie(response, opened.cookie)
    return response


@router.get("/sign-up")
def sign_up_page(request: Request, viewer: Viewer) -> Response:
    if viewer:
        return RedirectResponse("/me/tokens", 303)
    if not settings().open_signup:
        raise Refusal("signup_closed", "Accounts are made by invite here.")
    return door(request, "sign-up", next=local_page(request.query_params.get("next")))


@router.post("/sign-up", dependencies=[Depends(same_site)])
async def post_sign_up(request: Request) -> Response:
    fields = await read_form(request)
    handle, onward = str(fields.get("handle", ""))[:100], local_page(str(fields.get("next", "")))
    known = await run_in_threadpool(identify, request)
    if known is not None and known.handle == handle.strip():  # the form was sent twice
        return RedirectResponse(f"/welcome?{urlencode({'next': onward})}", 303)
    try:
        opened = await run_in_threadpool(sign_up, request, handle, str(fields.get("password", "")))
    except Refusal as refusal:
        return door(request, "sign-up", problem=refusal, handle=handle, next=onward)
    return _welcome(opened, onward)


@router.get("/invite/{secret}")
def invite_page(request: Request, secret: InviteSecret, viewer: Viewer) -> Response:  # noqa: ARG001 - the header shows the viewer
    return door(request, "invite", **_invited(secret))


def _invited(secret: str) -> dict[str, Any]:
    """The invite of a link, and the course it leads into, if it does."""
    invite = find_invite(secret)
    with transaction() as database:
        course = database.get(Course, invite.course_id) if invite.course_id is not None else None
    return {"invite": invite, "course": course, "secret": secret}


@router.post("/invite/{secret}", dependencies=[Depends(same_site)])
async def post_invite(request: Request, secret: InviteSecret) -> Response:
    fields = await read_form(request)
    handle, password = str(fields.get("handle", ""))[:100], str(fields.get("password", ""))
    try:
        opened = await run_in_threadpool(accept_invite, request, secret, handle, password)
    except Refusal as refusal:
        if refusal.code not in ("handle_taken", "invalid_field"):
            raise
        invited = await run_in_threadpool(_invited, secret)
        return door(request, "invite", problem=refusal, handle=handle, **invited)
    return _welcome(opened, f"/courses/{opened.course}" if opened.course else "/")


WELCOME, _SHOWN_S = "kernelgate_welcome", 600


def _welcome(opened: Opened, onward: str = "/") -> Response:
    """To the page that shows the account's first token. It goes there in a cookie of that page alone, so that a reload shows it
    again for some minutes: whoever loses it and has no password needs an administrator. Who has one goes on at once."""
    if opened.token is None:
        response = RedirectResponse(onward if onward != "/" else "/stages", 303)
        set_cookie(response, opened.cookie)
        return response
    if opened.token is None:
        response = RedirectResponse(onward if onward != "/" else "/stages", 303)
        set_cookie(response, opened.cookie)
        return response
    response = RedirectResponse(f"/welcome?{urlencode({'next': onward})}", 303)
    set_cookie(response, opened.cookie)
    secure = settings().cookie_secure
    response.set_cookie(
        WELCOME, opened.token, _SHOWN_S, path="/welcome", httponly=True, samesite="strict", secure=secure
    )
    return response


@router.get("/welcome")
def welcome(request: Request, viewer: Reader) -> Response:
    """The first token of whoever has just made an account; later, and for everybody else, the page of tokens."""
    secret, onward = request.cookies.get(WELCOME, ""), local_page(request.query_params.get("next"))
    with transaction() as database:
        known = select(Token.id).where(Token.hash == digest(secret), Token.user_id == viewer.user_id)
        if database.scalar(known) is None:
            return RedirectResponse("/me/tokens", 303)
    return page(request, "welcome.html", token=secret, next=onward if onward != "/" else "/stages")


@router.get("/me")
def me(viewer: Reader) -> Response:  # noqa: ARG001 - to be signed in
    return RedirectResponse("/me/tokens", 303)


@router.get("/me/tokens")
def account_page(request: Request, viewer: Reader) -> Response:
    return _account(request, viewer)


def _account(
    request: Request, viewer: Identity, *, made: NewToken | None = None, problem: Refusal | None = None
) -> Response:
    with transaction() as database:
        tokens = tokens_of(database, viewer.user_id)
    return page(
        request,
        "account.html",
        status=problem.kind.status if problem else 200,
        tokens=tokens,
        made=made,
        problem=problem.document() if problem else None,
        scopes=[scope for scope in Scope if viewer.may(scope)],
        own=next((token for token in tokens if token.id == viewer.token_id), None),
        ways=ways(viewer),
    )


@router.post("/me/password")
async def set_own_password(request: Request, viewer: Submitter) -> Response:
    fields = {name: str(value) for name, value in (await read_form(request)).items()}
    try:
        opened = await run_in_threadpool(
            change_password, request, viewer, fields.get("current", ""), fields.get("password", "")
        )
    except Refusal as refusal:
        return await run_in_threadpool(_account, request, viewer, problem=refusal)
    response = RedirectResponse("/me/tokens", 303)
    set_cookie(response, opened.cookie)
    return response


@router.post("/me/identities/{number}/unlink")
def unlink_identity(viewer: Submitter, number: Annotated[int, Path(ge=1, le=2**62)]) -> Response:
    unlink(viewer, number)
    return RedirectResponse("/me/tokens", 303)


@router.post("/me/sessions/end")
def sign_out_everywhere(viewer: Reader) -> Response:
    end_sessions(viewer)
    response = RedirectResponse("/sign-in", 303)
    clear_cookie(response)
    return response


@router.get("/recover/{secret}")
def recover_page(request: Request, secret: InviteSecret, viewer: Viewer) -> Response:  # noqa: ARG001 - the header shows the viewer
    return door(request, "recover", handle=recovered_handle(secret), secret=secret)


@router.post("/recover/{secret}", dependencies=[Depends(same_site)])
async def post_recover(request: Request, secret: InviteSecret) -> Response:
    password = str((await read_form(request)).get("password", ""))
    try:
        opened = await run_in_threadpool(recover, request, secret, password)
    except Refusal as refusal:
        if refusal.code != "invalid_field":
            raise
        handle = await run_in_threadpool(recovered_handle, secret)
        return door(request, "recover", problem=refusal, handle=handle, secret=secret)
    response = RedirectResponse("/stages", 303)
    set_cookie(response, opened.cookie)
    return response


@router.post("/me/tokens")
async def make_token(request: Request, viewer: Submitter) -> Response:
    """Shows the token in the answer itself: a redirect would have to carry the secret."""
    form = await read_form_lists(request)
    try:
        made = await run_in_threadpool(_make, viewer, validated(TokenBody, form))
    except Refusal as refusal:
        return await run_in_threadpool(_account, request, viewer, problem=refusal)
    return await run_in_threadpool(_account, request, viewer, made=made)


async def read_form_lists(request: Request) -> dict[str, object]:
    """A token's form: the check boxes `scope_*` as the list `scopes`."""
    fields = await read_form(request)
    scopes = [name.removeprefix("scope_") for name in fields if name.startswith("scope_")]
    rest = {name: value for name, value in fields.items() if not name.startswith("scope_") and value != ""}
    return {**rest, "scopes": scopes}


def _make(viewer: Identity, body: TokenBody) -> NewToken:
    with transaction() as database:
        return own_token(database, viewer, body)
