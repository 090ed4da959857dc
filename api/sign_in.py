"""Opening a browser session: with a token, with an invite, by signing up. Guessing is limited by address."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from fastapi import Request
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from api.auth import close_session, cookie_name, open_session
from api.courses.roster import enter
from api.limits import address_of, check_sign_in_limit, count_sign_up, record_sign_in_failure
from api.problems import Refusal
from kernelgate.accounts import HANDLE, AccountError, audit, create_token, create_user, digest, find_user
from kernelgate.db import transaction
from kernelgate.models import Course, Invite, Role, Scope, Token, now
from kernelgate.settings import settings

Found = TypeVar("Found")
_LOCAL = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


@dataclass(frozen=True)
class Opened:
    """A session just opened. `cookie` goes into the cookie alone; `token` is the account's first, when it is new, and `course`
    the name of the one that it was invited to."""

    handle: str
    role: Role
    cookie: str
    csrf: str
    token: str | None = None
    course: str | None = None


def sign_in(request: Request, secret: str) -> Opened:
    """A session of a token. It may do what the token may, and reading pages is the least of it."""
    with transaction() as database:
        outcome = _attempt(request, database, lambda database: _by_token(database, secret.strip()))
        if isinstance(outcome, Token):
            return _open(request, database, outcome)
    raise outcome


def sign_up(request: Request, handle: str) -> Opened:
    """A new account and a session for it. Raises Refusal when sign-up is closed or the handle cannot be had."""
    if not settings().open_signup:
        raise Refusal("signup_closed", "Accounts are made by invite here.")
    with transaction() as database:
        count_sign_up(database, address_of(request))
        return _new_account(request, database, handle, Role.SUBMITTER)


def accept_invite(request: Request, secret: str, handle: str) -> Opened:
    """A new account with the invite's role, and a session for it. Each acceptance takes one of the invite's uses."""

    def use(database: Session) -> Invite:
        taken = update(Invite).where(Invite.hash == digest(secret), Invite.uses_left > 0, Invite.expires_at > now())
        invite = database.scalars(taken.values(uses_left=Invite.uses_left - 1).returning(Invite)).one_or_none()
        if invite is None:
            raise unusable_invite()
        return invite

    with transaction() as database:
        outcome = _attempt(request, database, use)
        if isinstance(outcome, Invite):
            # A handle that cannot be had rolls all of it back: the invite keeps its use.
            opened = _new_account(request, database, handle, Role(outcome.role))
            if outcome.course_id is not None:
                user, course = find_user(database, opened.handle), database.get_one(Course, outcome.course_id)
                enter(database, course, user.id if user else 0, outcome)
                return replace(opened, course=course.name)
            return opened
    raise outcome


def find_invite(secret: str) -> Invite:
    """The invite behind a link, for the page that shows it. Raises Refusal when it cannot be used."""
    with transaction() as database:
        found = select(Invite).where(Invite.hash == digest(secret), Invite.uses_left > 0, Invite.expires_at > now())
        invite = database.scalars(found).one_or_none()
    if invite is None:
        raise unusable_invite()
    return invite


def unusable_invite() -> Refusal:
    return Refusal("unusable_invite", "The invite is unknown, used up or expired.", field="path.secret")


def sign_out(request: Request) -> None:
    with transaction() as database:
        close_session(database, request.cookies.get(cookie_name()))


def _attempt(request: Request, database: Session, find: Callable[[Session], Found]) -> Found | Refusal:
    """What `find` gives; its refusal is returned and counted, so that the caller's transaction keeps the count."""
    address = address_of(request)
    check_sign_in_limit(database, address)
    try:
        return find(database)
    except Refusal as refusal:
        record_sign_in_failure(database, address)
        return refusal


def _by_token(database: Session, secret: str) -> Token:
    token = database.scalars(select(Token).where(Token.hash == digest(secret))).one_or_none()
    if token is None:
        raise Refusal(
            "unknown_token", "No token like this one exists.", field="token", accepted="kg_…, as it was shown"
        )
    if token.revoked_at is not None:
        raise Refusal("revoked_token", f"The token {token.hint}… was revoked.", field="token")
    if token.expires_at <= now():
        raise Refusal(
            "expired_token", f"The token {token.hint}… expired on {token.expires_at:%Y-%m-%d}.", field="token"
        )
    if Scope.READ not in token.scopes:
        raise Refusal(
            "missing_scope",
            f"A session reads pages; the token {token.hint}… may only: {', '.join(token.scopes)}.",
            field="token",
            accepted="a token with the scope read",
        )
    return token


def _new_account(request: Request, database: Session, handle: str, role: Role) -> Opened:
    handle = handle.strip()
    if HANDLE.fullmatch(handle) and find_user(database, handle) is not None:
        raise Refusal("handle_taken", "Somebody has that handle.", field="handle", value=handle)
    try:
        user = create_user(database, handle, role)
        token, secret = create_token(database, user, name="first", days=settings().account_days)
    except AccountError as error:
        raise account_refusal(error, handle) from error
    audit(database, user.handle, "account.create", user.handle, role=str(role))
    return _open(request, database, token, secret)


def account_refusal(error: AccountError, value: str) -> Refusal:
    accepted = "1 to 39 letters, digits, '_', '.' or '-', starting with a letter or digit"
    return Refusal("invalid_field", str(error), field="handle", value=value, accepted=accepted)


def _open(request: Request, database: Session, token: Token, secret: str | None = None) -> Opened:
    """A session with a new id; the one the browser came with ends, whoever's it was."""
    close_session(database, request.cookies.get(cookie_name()))
    cookie, csrf = open_session(database, token)
    return Opened(token.user.handle, Role(token.user.role), cookie, csrf, secret)


def local_page(path: str | None) -> str:
    """`path` when it leads to a page of this service, else the first page: a redirect must not lead elsewhere."""
    return path if path and _LOCAL.fullmatch(path) else "/"
