"""Passwords, linked identities and recovery links: what the pages and the command line do with them alike.

A password is the one secret here that a person chose, so it alone is hashed slowly (Argon2id). Whoever asks for an account that
has none waits as long as for one that has.
"""

from __future__ import annotations

import secrets
import threading
from datetime import timedelta
from typing import NamedTuple

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session as Database

from kernelgate.accounts import digest
from kernelgate.models import Session, User
from kernelgate.sign_in_tables import Credential, CredentialKind, Recovery
from kernelgate.table_base import now

PASSWORD_LENGTH = (10, 200)
RECOVERY = timedelta(days=2)
_HASHER = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
_AT_ONCE = threading.BoundedSemaphore(4)
"""Each hash takes 19 MiB: a flood of sign-ins is not to take all of the host's memory."""
_NOBODYS = _HASHER.hash(secrets.token_urlsafe(16))
_GUESSED = """
1234567890 12345678910 123456789a 0123456789 0987654321 1111111111 0000000000 qwertyuiop 1q2w3e4r5t qwerty12345 password12
password123 password1234 passw0rd123 passwordpassword iloveyou123 letmein123 welcome123 admin12345 administrator changeme123
abcdefghij abc1234567 q1w2e3r4t5 1qaz2wsx3edc kernelgate kernelgate1 kernelgate123
"""
_GUESSED_FIRST = frozenset(_GUESSED.split())


class PasswordError(ValueError):
    """A password that cannot be had; the text says why and what is accepted."""


def check_password(password: str, handle: str) -> None:
    """Raises PasswordError for one that is short or among the first to be guessed."""
    low, high = PASSWORD_LENGTH
    if not low <= len(password) <= high:
        raise PasswordError(f"it has {len(password)} characters; {low} to {high} are accepted")
    plain = password.lower()
    if plain in _GUESSED_FIRST or len(set(plain)) < 4 or plain.strip("0123456789!.-_ ") in (handle.lower(), "password"):
        raise PasswordError(
            "it is among the first to be guessed; accepted: three or four words that do not belong together"
        )


def password_of(database: Database, user: User | None) -> Credential | None:
    if user is None:
        return None
    wanted = select(Credential).where(Credential.user_id == user.id, Credential.kind == CredentialKind.PASSWORD)
    return database.scalars(wanted).one_or_none()


def credentials_of(database: Database, user_id: int) -> list[Credential]:
    return list(database.scalars(select(Credential).where(Credential.user_id == user_id).order_by(Credential.id)))


def password_matches(credential: Credential | None, password: str) -> bool:
    """Takes the same time whether or not there is a password to compare with."""
    if len(password) > PASSWORD_LENGTH[1]:
        return False
    with _AT_ONCE:
        try:
            _HASHER.verify(credential.secret if credential else _NOBODYS, password)
        except (VerificationError, InvalidHashError):
            return False
    return credential is not None


def set_password(database: Database, user: User, password: str, *, token_id: int | None) -> Credential:
    """The account's password from now on; every session of the one before ends. Raises PasswordError."""
    check_password(password, user.handle)
    with _AT_ONCE:
        secret = _HASHER.hash(password)
    before = Credential.user_id == user.id, Credential.kind == CredentialKind.PASSWORD
    database.execute(delete(Credential).where(*before))
    credential = Credential(user_id=user.id, kind=CredentialKind.PASSWORD, secret=secret, token_id=token_id)
    database.add(credential)
    database.flush()
    return credential


def identity_of(database: Database, issuer: str, subject: str) -> Credential | None:
    """The link between this identity of a provider and an account, if there is one."""
    wanted = select(Credential).where(Credential.issuer == issuer, Credential.subject == subject)
    return database.scalars(wanted).one_or_none()


def link(
    database: Database, user: User, issuer: str, subject: str, label: str, *, token_id: int | None = None
) -> Credential:
    """Links an identity that no account has to this one."""
    credential = Credential(
        user_id=user.id,
        kind=CredentialKind.PROVIDER,
        issuer=issuer,
        subject=subject,
        label=label[:200],
        token_id=token_id,
    )
    database.add(credential)
    database.flush()
    return credential


class Recovered(NamedTuple):
    """The account of a link that was used, and the token that ends what is set up with it."""

    user: User
    token_id: int | None


def create_recovery(database: Database, user: User, *, token_id: int | None = None) -> str:
    """The secret of a new recovery link, which is not stored; the account's earlier ones stop working."""
    database.execute(delete(Recovery).where((Recovery.user_id == user.id) | (Recovery.expires_at <= now())))
    secret = "kgr_" + secrets.token_urlsafe(24)
    database.add(Recovery(hash=digest(secret), user_id=user.id, token_id=token_id, expires_at=now() + RECOVERY))
    database.flush()
    return secret


def find_recovery(database: Database, hashed: bytes) -> Recovery | None:
    return database.scalars(select(Recovery).where(Recovery.hash == hashed, Recovery.expires_at > now())).one_or_none()


def use_recovery(database: Database, hashed: bytes) -> Recovered | None:
    """The account of a link, which works no more; what opened it until now ends, but for its tokens: sessions, password,
    identities. None when the link does not work."""
    gone = delete(Recovery).where(Recovery.hash == hashed, Recovery.expires_at > now())
    used = database.execute(gone.returning(Recovery.user_id, Recovery.token_id)).one_or_none()
    if used is None:
        return None
    user = database.get_one(User, used.user_id, with_for_update=True)
    database.execute(delete(Session).where(Session.user_id == user.id))
    database.execute(delete(Credential).where(Credential.user_id == user.id))
    return Recovered(user, used.token_id)


def note_use(database: Database, credential: Credential) -> None:
    database.execute(update(Credential).where(Credential.id == credential.id).values(last_used_at=now()))
