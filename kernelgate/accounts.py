"""Accounts, tokens and invites: made by the API and by the command line alike.

A secret is shown once, when it is made. Stored is its SHA-256: with 192 random bits there is nothing to guess, so a slow
hash would only slow every request down.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sqlalchemy import delete, func, select, text, tuple_, update
from sqlalchemy.orm import Session

from kernelgate.contests import ContestStart
from kernelgate.models import (
    Audit,
    Course,
    Credential,
    Extension,
    Invite,
    Member,
    Override,
    Recovery,
    Role,
    Scope,
    Submission,
    Token,
    User,
    now,
)
from kernelgate.talk import Comment, Question

HANDLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,38}")
TOKEN_PREFIX = "kg_"  # noqa: S105 - lets secret scanners find a leaked token; it is no secret itself


_TOKENS_LOCK = 0x6B67_0003


class AccountError(ValueError):
    """A handle, role, scope or expiry that cannot be; the text says the value and what is accepted."""


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def create_user(session: Session, handle: str, role: Role = Role.SUBMITTER) -> User:
    """A new account. Raises AccountError when the handle is malformed or taken (case does not distinguish handles)."""
    if not HANDLE.fullmatch(handle):
        raise AccountError(
            f"handle {handle[:60]!r}: 1 to 39 letters, digits, '_', '.' or '-', starting with a letter or digit"
        )
    if find_user(session, handle) is not None:
        raise AccountError(f"handle {handle!r} is taken; choose another")
    user = User(handle=handle, role=role)
    session.add(user)
    session.flush()
    return user


def find_user(session: Session, handle: str) -> User | None:
    return session.scalars(select(User).where(func.lower(User.handle) == handle.lower())).one_or_none()


def scopes_of(role: Role) -> tuple[Scope, ...]:
    """The most a token of an account with this role may do."""
    return tuple(Scope) if role == Role.ADMIN else (Scope.READ, Scope.SUBMIT)


def is_live(token: Token) -> bool:
    return token.revoked_at is None and token.expires_at > now()


def lock_tokens(session: Session) -> None:
    """Until the transaction ends, nobody else makes or revokes tokens: none can be made from one that is just being revoked."""
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _TOKENS_LOCK})


def create_token(
    session: Session,
    user: User,
    *,
    name: str = "",
    scopes: Iterable[Scope] | None = None,
    days: float,
    parent: Token | None = None,
    origin: int | None = None,
    course: str | None = None,
) -> tuple[Token, str]:
    """A token and its secret, which is not stored. One made from `parent` ends with it at the latest; the caller holds
    `lock_tokens` and has seen that `parent` is live. `origin`: the number of a token whose revocation ends this one, and whose
    last day does not. `course`: the name of the only course that it is good for.

    Raises AccountError for scopes beyond the role or a life not above zero.
    """
    allowed = scopes_of(Role(user.role))
    wanted = tuple(allowed if scopes is None else dict.fromkeys(scopes))
    beyond = [scope for scope in wanted if scope not in allowed]
    if beyond or not wanted:
        raise AccountError(f"scopes {[*map(str, wanted)]}: {user.handle} ({user.role}) may have {[*map(str, allowed)]}")
    if course is not None and not seated(session, user, course):
        raise AccountError(f"course {course}: {user.handle} is in no course of that name")
    if course is not None and Scope.ADMIN in wanted:
        raise AccountError(f"scopes {[*map(str, wanted)]}: a token of a course does not administer the service")
    if not 0 < days <= 3650:
        raise AccountError(f"days {days}: more than 0 and at most 3650")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(24)
    end = now() + timedelta(days=days)
    token = Token(
        user_id=user.id,
        name=name[:80],
        hash=digest(secret),
        hint=secret[:8],
        scopes=[*map(str, wanted)],
        parent_id=parent.id if parent else origin,
        course=course,
        expires_at=min(end, parent.expires_at) if parent else end,
    )
    session.add(token)
    session.flush()
    return token, secret


def seated(session: Session, user: User, course: str) -> bool:
    """Whether somebody is in the course of this name."""
    seat = select(Member.user_id).join(Course, Course.id == Member.course_id)
    return session.scalar(seat.where(Course.name == course, Member.user_id == user.id)) is not None


def revoke_token(session: Session, token: Token) -> list[int]:
    """Revokes a token and all that were made from it, and from those: whoever had it may have made them. Passwords and linked
    identities that were set up with them go too. The numbers of the tokens that worked until now."""
    lock_tokens(session)
    ended = select(Token.id).where(Token.id == token.id).cte("ended", recursive=True)
    ended = ended.union_all(select(Token.id).where(Token.parent_id == ended.c.id))
    live = update(Token).where(Token.id.in_(select(ended.c.id)), Token.revoked_at.is_(None))
    revoked = session.scalars(live.values(revoked_at=now()).returning(Token.id)).all()
    session.execute(delete(Credential).where(Credential.token_id.in_(select(ended.c.id))))
    session.execute(delete(Recovery).where(Recovery.token_id.in_(select(ended.c.id))))
    session.execute(delete(Recovery).where(Recovery.token_id.in_(select(ended.c.id))))
    session.execute(delete(Recovery).where(Recovery.token_id.in_(select(ended.c.id))))
    session.refresh(token)
    return sorted(revoked)


def create_invite(
    session: Session, *, by: User | None, role: Role = Role.SUBMITTER, uses: int = 1, days: float = 7, note: str = ""
) -> tuple[Invite, str]:
    """An invite and its secret. Raises AccountError for uses outside 1..1000 or a life outside 0..365 days."""
    if not 1 <= uses <= 1000:
        raise AccountError(f"uses {uses}: 1 to 1000")
    if not 0 < days <= 365:
        raise AccountError(f"days {days}: more than 0 and at most 365")
    secret = "kgi_" + secrets.token_urlsafe(24)
    invite = Invite(
        hash=digest(secret),
        role=role,
        note=note[:200],
        uses_left=uses,
        created_by=by.id if by else None,
        expires_at=now() + timedelta(days=days),
    )
    session.add(invite)
    session.flush()
    return invite, secret


def audit(session: Session, actor: str, action: str, target: str, **data: object) -> None:
    """Writes down what was done, in the transaction that does it."""
    session.add(Audit(actor=actor, action=action, target=target, data=dict(data)))


def rename_user(session: Session, user: User, handle: str) -> str:
    """Gives an account another handle; the one it had. Raises AccountError when the new one is malformed or taken."""
    if not HANDLE.fullmatch(handle):
        raise AccountError(
            f"handle {handle[:60]!r}: 1 to 39 letters, digits, '_', '.' or '-', starting with a letter or digit"
        )
    taken = find_user(session, handle)
    if taken is not None and taken.id != user.id:
        raise AccountError(f"handle {handle!r} is taken; choose another, or merge the two accounts")
    before, user.handle = user.handle, handle
    session.flush()
    return before


def merge_users(session: Session, user: User, into: User) -> int:
    """Moves everything of `user` to `into` and deletes it; how many submissions moved. Its tokens end with it.

    Where both are in a course, the seat of `into` stays. Raises AccountError for an account and itself, and while something of
    the one that goes is queued or running.
    """
    if user.id == into.id:
        raise AccountError(f"{user.handle} and {into.handle} are one account")
    _hold(session, user, into)
    _check_idle(session, user)
    theirs = Submission.user_id == user.id
    moved = len(
        session.scalars(
            update(Submission).where(theirs).values(user_id=into.id, idempotency_key=None).returning(Submission.id)
        ).all()
    )
    for said in (Comment, Question):
        session.execute(update(said).where(said.user_id == user.id).values(user_id=into.id))
    for model in (Member, Extension, Override, ContestStart):
        kept = select(*(_place(model))).where(model.user_id == into.id)
        twice = tuple_(*_place(model)).in_(kept)
        session.execute(update(model).where(model.user_id == user.id, ~twice).values(user_id=into.id))
    session.flush()
    session.delete(user)
    session.flush()
    return moved


def _place(model: type[Member | Extension | Override | ContestStart]) -> list[Any]:
    """What a person has one row for: a course, or a stage of one."""
    return [model.course_id, model.stage] if model in (Extension, Override) else [model.course_id]


def delete_user(session: Session, user: User) -> int:
    """Deletes an account with all it has: submissions, results, tokens, seats; how many submissions. The audit log stays.

    Raises AccountError while something of it is queued or running.
    """
    _hold(session, user)
    _check_idle(session, user)
    gone = session.scalars(delete(Submission).where(Submission.user_id == user.id).returning(Submission.id)).all()
    session.delete(user)
    session.flush()
    return len(gone)


def _hold(session: Session, *users: User) -> None:
    """Until the transaction ends nobody submits with these accounts: what was being stored is there afterwards, and is counted.

    Raises AccountError for one that somebody else deleted meanwhile.
    """
    wanted = sorted(user.id for user in users)
    # In one order, so that two who merge the same accounts into each other do not wait for each other.
    held = session.scalars(select(User.id).where(User.id.in_(wanted)).order_by(User.id).with_for_update()).all()
    gone = [user.handle for user in users if user.id not in held]
    if gone:
        raise AccountError(f"{' and '.join(gone)} was deleted meanwhile; look at the accounts again")


def _check_idle(session: Session, user: User) -> None:
    busy = select(func.count()).where(Submission.user_id == user.id, Submission.state.in_(["queued", "running"]))
    count = session.scalar(busy) or 0
    if count:
        raise AccountError(f"{count} submissions of {user.handle} are queued or running; cancel them first, or wait")
