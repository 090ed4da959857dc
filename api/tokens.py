"""API tokens: listing, making and revoking them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.problems import Refusal
from api.schemas import NewToken, TokenBody, TokenView
from kernelgate.accounts import AccountError, audit, create_token, scopes_of
from kernelgate.models import Role, Scope, Token, User, now
from kernelgate.settings import settings

_DAY_S = 86400


def token_view(token: Token) -> TokenView:
    return TokenView.model_validate({name: getattr(token, name) for name in TokenView.model_fields})


def tokens_of(database: Session, user_id: int) -> list[TokenView]:
    """Newest first, the revoked and expired ones too."""
    rows = database.scalars(select(Token).where(Token.user_id == user_id).order_by(Token.id.desc()))
    return [token_view(token) for token in rows]


def own_token(database: Session, identity: Identity, body: TokenBody) -> NewToken:
    """A token for oneself. One made with a token gets no scope and no day that the maker's token does not have."""
    user = database.get_one(User, identity.user_id)
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
    days = body.days if body.days is not None else float(settings().token_days)
    if identity.token_id is not None:
        left = database.get_one(Token, identity.token_id).expires_at - now()
        days = min(days, left.total_seconds() / _DAY_S)
    return new_token(database, user, identity.handle, body.name, scopes, days)


def _usual(identity: Identity) -> list[Scope]:
    return [scope for scope in (Scope.READ, Scope.SUBMIT) if identity.may(scope)]


def token_for(database: Session, user: User, actor: str, body: TokenBody) -> NewToken:
    """A token that an administrator makes for somebody."""
    scopes = body.scopes if body.scopes is not None else [s for s in scopes_of(Role(user.role)) if s is not Scope.ADMIN]
    return new_token(database, user, actor, body.name, scopes, body.days or float(settings().token_days))


def new_token(database: Session, user: User, actor: str, name: str, scopes: Iterable[Scope], days: float) -> NewToken:
    """Raises Refusal for scopes beyond the account's role, or none."""
    try:
        token, secret = create_token(database, user, name=name, scopes=scopes, days=days)
    except AccountError as error:
        raise Refusal("invalid_field", str(error), field="scopes", value=", ".join(map(str, scopes))) from error
    database.refresh(token)
    audit(database, actor, "token.create", user.handle, token=token.id, scopes=token.scopes)
    return NewToken.model_validate({**token_view(token).model_dump(), "token": secret})


def revoke(database: Session, token_id: int, actor: str, *, owner: int | None) -> TokenView:
    """Revokes a token; `owner`: only one of theirs. Raises Refusal when there is none."""
    token = database.get(Token, token_id)
    if token is None or (owner is not None and token.user_id != owner):
        raise Refusal("unknown_token_id", "There is no such token.", field="path.id", value=token_id)
    if token.revoked_at is None:
        token.revoked_at = now()
        audit(database, actor, "token.revoke", token.user.handle, token=token.id)
    return token_view(token)
