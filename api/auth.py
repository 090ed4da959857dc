"""Who is asking: API tokens, browser sessions, and what protects a session's cookie.

A bearer token is sent on purpose and needs no more. A cookie is sent by the browser whoever caused the request, so a request
that changes something and is signed in by cookie must carry the session's anti-forgery value and must not come from
another site. A session gets a new random id at every sign-in and is never taken from the request.

A session is the token or the credential (password, a provider's identity) it was opened with, in another form. Whether it
still holds is asked of those and of the account at every request: so it ends with whatever ends them.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal
from urllib.parse import urlsplit

from fastapi.concurrency import run_in_threadpool
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session as Database
from starlette.requests import Request
from starlette.responses import Response

from api.body import CSRF_FIELD, FORMS, content_type, form_items
from api.problems import Refusal
from kernelgate.accounts import TOKEN_PREFIX, digest, is_live, scopes_of
from kernelgate.db import transaction
from kernelgate.models import Credential, Role, Scope, Session, Token, User, now
from kernelgate.settings import settings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_HEADER = "x-csrf-token"
_TOKEN = re.compile(re.escape(TOKEN_PREFIX) + r"[A-Za-z0-9_-]{32}")
_USED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class Identity:
    """An account and the token or credential it signed in with; `csrf` is set for a browser.

    token_id: None in a session that a credential opened. credential_id: None for every token. course: the name of the only one
    that the token is good for.
    """

    user_id: int
    handle: str
    role: Role
    scopes: frozenset[Scope]
    token_id: int | None
    via: Literal["token", "session"]
    csrf: str = ""
    credential_id: int | None = None
    course: str | None = None

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes and scope in scopes_of(self.role)

    @property
    def reads_all(self) -> bool:
        """Instructors and admins read every submission."""
        return self.role in (Role.INSTRUCTOR, Role.ADMIN) and self.may(Scope.READ)

    @property
    def administers(self) -> bool:
        return self.role is Role.ADMIN and self.may(Scope.ADMIN)


def challenge(code: str, detail: str) -> Refusal:
    """A 401 whose WWW-Authenticate says which of RFC 6750's errors it is."""
    error = "" if code == "not_signed_in" else f', error="invalid_token", error_description="{detail}"'
    headers = {"WWW-Authenticate": f'Bearer realm="kernelgate"{error}'}
    return Refusal(code, detail, field="header.authorization", accepted="Bearer kg_…", headers=headers)


def by_token(secret: str) -> Identity:
    """The identity of a token. Raises Refusal: unknown, expired, revoked, or of a disabled account."""
    with transaction() as database:
        token = database.scalars(select(Token).where(Token.hash == digest(secret))).one_or_none()
        if token is None:
            raise challenge("unknown_token", "No token like this one exists.")
        if token.revoked_at is not None:
            raise challenge("revoked_token", f"The token {token.hint}... was revoked on {token.revoked_at:%Y-%m-%d}.")
        if token.expires_at <= now():
            raise challenge(
                "expired_token", f"The token {token.hint}... expired on {token.expires_at:%Y-%m-%d %H:%M} UTC."
            )
        _check_enabled(token.user)
        _mark_used(database, token)
        return replace(_identity(token.user, token.scopes, token.id, "token"), course=token.course)


def _identity(
    user: User,
    scopes: list[str],
    token_id: int | None,
    via: Literal["token", "session"],
    csrf: str = "",
    credential_id: int | None = None,
) -> Identity:
    may = frozenset(map(Scope, scopes))
    return Identity(user.id, user.handle, Role(user.role), may, token_id, via, csrf, credential_id)


def _check_enabled(user: User) -> None:
    if user.disabled_at is not None:
        raise Refusal("account_disabled", f"The account {user.handle} was disabled on {user.disabled_at:%Y-%m-%d}.")


def _mark_used(database: Database, token: Token) -> None:
    """Once a minute is enough; a write for each request would make every read a write."""
    if token.last_used_at is None or token.last_used_at < now() - _USED_EVERY:
        database.execute(update(Token).where(Token.id == token.id).values(last_used_at=now()))


def by_session(secret: str) -> Identity | None:
    """The identity behind a session cookie; None when the session is unknown or over, its token does not work any more, or
    the account is disabled. One that a credential opened is deleted with it."""
    with transaction() as database:
        session = database.get(Session, digest(secret))
        if session is None or session.expires_at <= now():
            return None
        token, user = session.token, session.user
        if user.disabled_at is not None or (token is not None and not is_live(token)):
            return None
        if token is not None:
            _mark_used(database, token)
        scopes = session.scopes if token is None else token.scopes
        return _identity(user, scopes, session.token_id, "session", session.csrf, session.credential_id)


def bearer(request: Request) -> str | None:
    """The token of the Authorization header. Raises Refusal for another scheme or something that cannot be a token."""
    header = request.headers.get("authorization")
    if header is None:
        return None
    scheme, _, secret = header.partition(" ")
    if scheme.lower() != "bearer" or not _TOKEN.fullmatch(secret.strip()):
        raise challenge("malformed_token", "The Authorization header is not a bearer token of this service.")
    return secret.strip()


def identify(request: Request) -> Identity | None:
    """Who is asking, or None. A token wins over a cookie."""
    secret = bearer(request)
    if secret is not None:
        return by_token(secret)
    cookie = request.cookies.get(cookie_name())
    return by_session(cookie) if cookie and len(cookie) < 100 else None


async def identify_safely(request: Request) -> Identity | None:
    """`identify`, and for a change that is signed in by cookie the anti-forgery checks. Cached on the request."""
    if not hasattr(request.state, "identity"):
        request.state.identity = await run_in_threadpool(identify, request)
    identity: Identity | None = request.state.identity
    if request.method not in SAFE_METHODS:
        check_same_site(request)
        if identity is not None and identity.via == "session":
            await _check_csrf(request, identity)
    return identity


def check_same_site(request: Request) -> None:
    """Refuses what another site made a browser send. Clients that are no browsers send neither header."""
    origin = request.headers.get("origin")
    fetch_site = request.headers.get("sec-fetch-site", "same-origin")
    public = urlsplit(settings().public_url).netloc
    hosts = {host for host in (request.headers.get("host", ""), public) if host}
    foreign = origin is not None and urlsplit(origin).netloc not in hosts
    if bearer(request) is None and (foreign or fetch_site == "cross-site"):
        raise Refusal(
            "cross_site",
            "The request was caused by another site.",
            field="header.origin",
            value=origin,
            accepted=" or ".join(sorted(hosts)),
        )


async def _check_csrf(request: Request, identity: Identity) -> None:
    sent: object = request.headers.get(CSRF_HEADER)
    if sent is None and content_type(request) in FORMS:
        sent = dict(await form_items(request)).get(CSRF_FIELD)
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), identity.csrf.encode()):
        raise Refusal(
            "csrf_failed",
            "The session's anti-forgery value is missing or old.",
            field=CSRF_FIELD,
            accepted=f"the value of the page that was loaded last, as field {CSRF_FIELD} or header X-CSRF-Token",
        )


def cookie_name() -> str:
    """`__Host-` binds the cookie to this host and to https; browsers refuse the prefix without Secure."""
    return "__Host-kernelgate" if settings().cookie_secure else "kernelgate"


def open_session(database: Database, user: User, opened_with: Token | Credential) -> tuple[str, str]:
    """A new session of a token that works or a credential: (cookie value, anti-forgery value).

    Sessions that are over are swept away.
    """
    _check_enabled(user)
    if isinstance(opened_with, Token) and opened_with.course is not None:
        detail = f"The token is good for the course {opened_with.course} alone, and for programs: it opens no session."
        raise Refusal("missing_scope", detail, field="token")
    secret, csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)
    database.execute(delete(Session).where(Session.expires_at <= now()))
    end = now() + timedelta(days=settings().session_days)
    session = Session(hash=digest(secret), user_id=user.id, csrf=csrf, expires_at=end)
    if isinstance(opened_with, Token):
        session.token_id, session.expires_at = opened_with.id, min(end, opened_with.expires_at)
    else:
        # A promotion gives an open session nothing: whoever holds a forgotten one would be an administrator from then on.
        session.credential_id, session.scopes = opened_with.id, [*map(str, scopes_of(Role(user.role)))]
    database.add(session)
    return secret, csrf


def close_session(database: Database, cookie: str | None) -> None:
    if cookie:
        database.execute(delete(Session).where(Session.hash == digest(cookie)))


def set_cookie(response: Response, secret: str) -> None:
    response.set_cookie(
        cookie_name(),
        secret,
        max_age=settings().session_days * 86400,
        path="/",
        httponly=True,
        samesite="lax",
        secure=settings().cookie_secure,
    )


def clear_cookie(response: Response) -> None:
    response.delete_cookie(cookie_name(), path="/", httponly=True, samesite="lax", secure=settings().cookie_secure)
