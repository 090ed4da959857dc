"""Opening a browser session: with a password or a token, with an invite, by signing up.

Guessing is limited by address, and for passwords also by account, however many addresses it comes from. An account that has no
password, or does not exist, answers like one whose password is another.
"""

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
from api.limits import (
    address_of,
    check_guessing_limit,
    check_sign_in_limit,
    count_sign_up,
    record_sign_in_failure,
)
from api.problems import Refusal
from kernelgate.accounts import HANDLE, AccountError, audit, create_token, create_user, digest, find_user
from kernelgate.credentials import PasswordError, note_use, password_matches, password_of, set_password
from kernelgate.db import transaction
from kernelgate.models import Course, Credential, Invite, Role, Scope, Token, User, now
from kernelgate.settings import settings

Found = TypeVar("Found")
_LOCAL = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]*")


@dataclass(frozen=True)
class Opened:
    """A session just opened. `cookie` goes into the cookie alone; `token` is the first of a new account that has no other way
    to sign in, and `course` the name of the one that it was invited to."""

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
            return opened(request, database, outcome.user, outcome)
    raise outcome


def sign_in_by_password(request: Request, handle: str, password: str) -> Opened:
    """A session of a person. Raises Refusal, the same one whatever is wrong."""
    if not settings().passwords:
        raise Refusal("no_passwords", "This service knows no passwords.")
    account = f"account {handle.strip().lower()[:60]}"
    with transaction() as database:
        check_guessing_limit(database, account)
        outcome = _attempt(request, database, lambda database: _by_password(database, handle.strip(), password))
        if isinstance(outcome, Credential):
            note_use(database, outcome)
            return opened(request, database, database.get_one(User, outcome.user_id), outcome)
        record_sign_in_failure(database, account)
    raise outcome


def _by_password(database: Session, handle: str, password: str) -> Credential:
    credential = password_of(database, find_user(database, handle) if HANDLE.fullmatch(handle) else None)
    if not password_matches(credential, password) or credential is None:
        raise Refusal("wrong_password", "No account has this handle with this password.", field="password")
    return credential


def sign_up(request: Request, handle: str, password: str = "") -> Opened:
    """A new account and a session for it. Raises Refusal when sign-up is closed, or handle or password cannot be had."""
    if not settings().open_signup:
        raise Refusal("signup_closed", "Accounts are made by invite here.")
    with transaction() as database:
        count_sign_up(database, address_of(request))
        return _new_account(request, database, handle, Role.SUBMITTER, password)


def accept_invite(request: Request, secret: str, handle: str, password: str = "") -> Opened:
    """A new account with the invite's role, and a session for it. Each acceptance takes one of the invite's uses."""
    with transaction() as database:
        outcome = _attempt(request, database, lambda database: take_invite(database, digest(secret)))
        if isinstance(outcome, Invite):
            # A handle that cannot be had rolls all of it back: the invite keeps its use.
            made = _new_account(request, database, handle, Role(outcome.role), password)
            return replace(made, course=into_course(database, made.handle, outcome))
    raise outcome


def take_invite(database: Session, hashed: bytes) -> Invite:
    """Takes one of the invite's uses. Raises Refusal when it has none left."""
    taken = update(Invite).where(Invite.hash == hashed, Invite.uses_left > 0, Invite.expires_at > now())
    invite = database.scalars(taken.values(uses_left=Invite.uses_left - 1).returning(Invite)).one_or_none()
    if invite is None:
        raise unusable_invite()
    return invite


def into_course(database: Session, handle: str, invite: Invite) -> str | None:
    """Gives a new account its seat in the invite's course; the course's name, if it leads into one."""
    if invite.course_id is None:
        return None
    user, course = find_user(database, handle), database.get_one(Course, invite.course_id)
    enter(database, course, user.id if user else 0, invite)
    return course.name


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


def _new_account(request: Request, database: Session, handle: str, role: Role, password: str) -> Opened:
    """With a password, or with a first token in its place."""
    if password and not settings().passwords:
        raise Refusal("no_passwords", "This service knows no passwords.")
    user = new_user(database, handle, role)
    if not password:
        token, secret = create_token(database, user, name="first", days=settings().account_days)
        return opened(request, database, user, token, secret)
    return opened(request, database, user, new_password(database, user, password))


def new_user(database: Session, handle: str, role: Role) -> User:
    """Raises Refusal for a handle that cannot be had."""
    handle = handle.strip()
    if HANDLE.fullmatch(handle) and find_user(database, handle) is not None:
        raise Refusal("handle_taken", "Somebody has that handle.", field="handle", value=handle)
    try:
        user = create_user(database, handle, role)
    except AccountError as error:
        raise account_refusal(error, handle) from error
    audit(database, user.handle, "account.create", user.handle, role=str(role))
    return user


def new_password(database: Session, user: User, password: str, *, token_id: int | None = None) -> Credential:
    """Raises Refusal for a password that cannot be had."""
    try:
        return set_password(database, user, password, token_id=token_id)
    except PasswordError as error:
        raise Refusal("invalid_field", f"The password cannot be had: {error}.", field="password") from error


def account_refusal(error: AccountError, value: str) -> Refusal:
    accepted = "1 to 39 letters, digits, '_', '.' or '-', starting with a letter or digit"
    return Refusal("invalid_field", str(error), field="handle", value=value, accepted=accepted)


def opened(
    request: Request, database: Session, user: User, opened_with: Token | Credential, secret: str | None = None
) -> Opened:
    """A session with a new id; the one the browser came with ends, whoever's it was."""
    close_session(database, request.cookies.get(cookie_name()))
    cookie, csrf = open_session(database, user, opened_with)
    return Opened(user.handle, Role(user.role), cookie, csrf, secret)


def local_page(path: str | None) -> str:
    """`path` when it leads to a page of this service, else the first page: a redirect must not lead elsewhere."""
    return path if path and _LOCAL.fullmatch(path) else "/"
