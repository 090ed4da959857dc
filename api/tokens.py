"""API tokens: listing, making and revoking them.

A token that was made with another one, or in a session that another one opened, gets no scope and no day that the other lacks,
and is revoked with it. So whoever had a token for a while has nothing left when it is gone. One that is made in a session of a
password or a provider's identity is the person's own, unless that was itself set up with a token: then it ends with that one.
"""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.limits import check_token_limits
from api.problems import Refusal
from api.schemas import NewToken, TokenBody, TokenView
from kernelgate.accounts import AccountError, audit, create_token, is_live, lock_tokens, revoke_token, scopes_of, seated
from kernelgate.models import Credential, Role, Scope, Token, User
from kernelgate.settings import settings


def token_view(token: Token) -> TokenView:
    return TokenView.model_validate({name: getattr(token, name) for name in TokenView.model_fields})


def tokens_of(database: Session, user_id: int) -> list[TokenView]:
    """Newest first, the revoked and expired ones too."""
    rows = database.scalars(select(Token).where(Token.user_id == user_id).order_by(Token.id.desc()))
    return [token_view(token) for token in rows]


def own_token(database: Session, identity: Identity, body: TokenBody) -> NewToken:
    """A token for oneself, made from the token that one signed in with."""
    scopes = body.scopes if body.scopes is not None else _usual(identity)
    beyond = sorted(str(scope) for scope in scopes if not identity.may(scope))
    if beyond:
        has = ", ".join(sorted(identity.scopes))
        raise Refusal(
            "missing_scope",
            f"You cannot hand on what you do not have: {', '.join(beyond)}.",
            field="scopes",
            value=", ".join(beyond),
            accepted=has,
        )
    return _new_token(database, identity, database.get_one(User, identity.user_id), body, scopes, derived=True)


def _usual(identity: Identity) -> list[Scope]:
    return [scope for scope in (Scope.READ, Scope.SUBMIT) if identity.may(scope)]


def token_for(database: Session, admin: Identity, user: User, body: TokenBody) -> NewToken:
    """A token that an administrator makes for somebody. One for himself, or one that administers, comes from his own."""
    if user.id == admin.user_id:
        return own_token(database, admin, body)
    scopes = body.scopes
    if scopes is None:
        scopes = [scope for scope in scopes_of(Role(user.role)) if scope is not Scope.ADMIN]
    return _new_token(database, admin, user, body, scopes, derived=Scope.ADMIN in scopes)


def _new_token(
    database: Session, maker: Identity, user: User, body: TokenBody, scopes: list[Scope], *, derived: bool
) -> NewToken:
    """Raises Refusal for scopes beyond the account's role, or none, for too many tokens, and when the maker's is gone."""
    lock_tokens(database)
    check_token_limits(database, user.id)
    parent, origin = _descent(database, maker) if derived else (None, None)
    _check_course(database, user, body.course)
    days = body.days if body.days is not None else float(settings().token_days)
    try:
        token, secret = create_token(
            database, user, name=body.name, scopes=scopes, days=days, parent=parent, origin=origin,
            course=body.course or None,
        )  # fmt: skip
    except AccountError as error:
        raise Refusal("invalid_field", str(error), field="scopes", value=", ".join(map(str, scopes))) from error
    database.refresh(token)
    audit(database, maker.handle, "token.create", user.handle, token=token.id, scopes=token.scopes, by=maker.token_id)
    return NewToken.model_validate({**token_view(token).model_dump(), "token": secret})


def _check_course(database: Session, user: User, course: str | None) -> None:
    """Raises Refusal for a course that the account is not in."""
    if course and not seated(database, user, course):
        raise Refusal("unknown_course", f"{user.handle} is in no course of that name.", field="course", value=course)


def _descent(database: Session, maker: Identity) -> tuple[Token | None, int | None]:
    """What a token that `maker` makes ends with. Raises Refusal when that has just ended."""
    if maker.token_id is not None:
        parent = database.get_one(Token, maker.token_id, populate_existing=True)
        if not is_live(parent):
            raise Refusal("revoked_token", f"The token {parent.hint}… ended while this was asked for.")
        return parent, None
    credential = database.get(Credential, maker.credential_id or 0, populate_existing=True)
    if credential is None:
        raise Refusal("revoked_token", "What this session was opened with ended while this was asked for.")
    return None, credential.token_id


def revoke(database: Session, token_id: int, actor: str, *, owner: int | None) -> TokenView:
    """Revokes a token and what was made with it; `owner`: only one of theirs. Raises Refusal when there is none."""
    token = database.get(Token, token_id)
    if token is None or (owner is not None and token.user_id != owner):
        raise Refusal("unknown_token_id", "There is no such token.", field="path.id", value=token_id)
    ended = revoke_token(database, token)
    if ended:
        audit(database, actor, "token.revoke", token.user.handle, token=token.id, ended=ended)
    return token_view(token)
