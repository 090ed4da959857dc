"""How somebody signs in, changed by themselves: password, linked identities, sessions; and an administrator's way back in.

A token is no person. Whoever holds one could otherwise set a password with it and have the account for good. So only an account
that has no other way yet may set one up with a token, only with its own first one (or an administrator's), and what is set up
that way ends when the token is revoked.
"""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session as Database

from api.auth import Identity
from api.limits import check_guessing_limit, record_sign_in_failure
from api.problems import Refusal
from api.sign_in import Opened, new_password, opened
from api.views import base_url
from kernelgate.accounts import audit, digest, lock_tokens, scopes_of
from kernelgate.credentials import (
    create_recovery,
    credentials_of,
    find_recovery,
    password_matches,
    password_of,
    use_recovery,
)
from kernelgate.db import transaction
from kernelgate.models import Credential, Role, Session, Token, User, now


class Ways(NamedTuple):
    """How an account can be signed in to. current: what opened this session. closed: why it may change nothing, or ""."""

    password: Credential | None
    identities: list[Credential]
    current: int | None
    closed: str
    sessions: int


def ways(identity: Identity) -> Ways:
    with transaction() as database:
        found = credentials_of(database, identity.user_id)
        alive = select(func.count()).where(Session.user_id == identity.user_id, Session.expires_at > now())
        try:
            descent(database, identity)
            closed = ""
        except Refusal as refusal:
            closed = refusal.detail
        return Ways(
            next((each for each in found if each.kind == "password"), None),
            [each for each in found if each.kind == "provider"],
            identity.credential_id,
            closed,
            database.scalar(alive) or 0,
        )


def descent(database: Database, identity: Identity) -> int | None:
    """The token whose revocation ends what is set up now; None: none does. Raises Refusal where nothing may be set up."""
    if identity.credential_id is not None:
        credential = database.get(Credential, identity.credential_id)
        if credential is None:
            raise Refusal("own_sign_in_first", "What this session was opened with has just ended.")
        return credential.token_id
    lock_tokens(database)
    token = database.get_one(Token, identity.token_id, populate_existing=True)
    if credentials_of(database, identity.user_id):
        raise Refusal("own_sign_in_first", "You are signed in with a token, and the account has a way of its own.")
    confined = token.course is not None or token.parent_id is not None
    if confined or token.revoked_at is not None or set(token.scopes) < set(scopes_of(identity.role)):
        raise Refusal(
            "own_sign_in_first", f"The token {token.hint}… is not the account's own, or may not do all that it may."
        )
    return token.id


def change_password(request: Request, identity: Identity, current: str, password: str) -> Opened:
    """The account's password from now on. Every session of the one before ends; this browser gets a new one."""
    account = f"account {identity.handle.lower()}"
    with transaction() as database:
        check_guessing_limit(database, account)
        came_from = descent(database, identity)
        user = database.get_one(User, identity.user_id, with_for_update=True)
        known = password_of(database, user)
        if known is None or password_matches(known, current):
            credential = new_password(database, user, password, token_id=came_from)
            audit(database, identity.handle, "password.set", user.handle)
            return opened(request, database, user, credential)
        record_sign_in_failure(database, account)
    raise Refusal("wrong_password", "That is not the password of now.", field="current")


def unlink(identity: Identity, number: int) -> None:
    """Ends the link to an identity, and the sessions that it opened. Raises Refusal for the last way in."""
    with transaction() as database:
        descent(database, identity)
        user = database.get_one(User, identity.user_id, with_for_update=True)
        found = credentials_of(database, user.id)
        gone = next((each for each in found if each.id == number and each.kind == "provider"), None)
        if gone is None:
            raise Refusal("not_found", "No identity of this number is linked.", field="path.id", value=number)
        if len(found) == 1:
            raise Refusal("last_credential", f"{gone.label} is the only way to sign in to {user.handle}.")
        audit(database, identity.handle, "credential.unlink", user.handle, issuer=gone.issuer, identity=gone.label)
        database.delete(gone)


def end_sessions(identity: Identity) -> None:
    """Every browser of the account is signed out, this one too. Tokens stay."""
    with transaction() as database:
        database.execute(delete(Session).where(Session.user_id == identity.user_id))
        audit(database, identity.handle, "session.end", identity.handle)


def recovery_link(request: Request, admin: Identity, user: User, database: Database) -> str:
    """An administrator's link for whoever cannot sign in any more; it works once, for two days."""
    # One for an administrator ends with the maker's token, as every token for one does: a stolen one is not to outlive itself.
    token_id = None
    if user.role == Role.ADMIN:
        credential = database.get(Credential, admin.credential_id) if admin.credential_id else None
        token_id = credential.token_id if credential else admin.token_id
    secret = create_recovery(database, user, token_id=token_id)
    audit(database, admin.handle, "recovery.create", user.handle)
    return f"{base_url(request)}/recover/{secret}"


def recovered_handle(secret: str) -> str:
    """Whose link it is. Raises Refusal when it does not work."""
    with transaction() as database:
        recovery = find_recovery(database, digest(secret))
        if recovery is None:
            raise unusable_recovery()
        return database.get_one(User, recovery.user_id).handle


def recover(request: Request, secret: str, password: str) -> Opened:
    """Sets the password of a link's account; what opened the account until now ends, but for its tokens."""
    with transaction() as database:
        used = use_recovery(database, digest(secret))
        if used is None:
            raise unusable_recovery()
        credential = new_password(database, used.user, password, token_id=used.token_id)
        audit(database, used.user.handle, "password.recover", used.user.handle)
        return opened(request, database, used.user, credential)


def unusable_recovery() -> Refusal:
    return Refusal("unusable_recovery", "The link is unknown, used or over.", field="path.secret")
