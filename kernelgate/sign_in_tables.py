"""How people sign in: passwords, a provider's identities, ways back in; and what bounds guessing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from kernelgate.table_base import Base, in_list


class CredentialKind(StrEnum):
    """What a person proves who they are with."""

    PASSWORD = "password"  # noqa: S105 - the word, no password
    PROVIDER = "provider"


class Credential(Base):
    """A way for a person to sign in. An account has at most one password, and may be linked to several identities.

    `token_id`: the token that it was set up with, directly or through sessions; revoking that ends it, as it ends the tokens
    made from it, so that whoever had somebody's token for a while keeps nothing. None: set up with the account, or with a
    recovery link.
    """

    __tablename__ = "credentials"
    __table_args__ = (
        CheckConstraint(in_list("kind", CredentialKind), name="kind"),
        CheckConstraint("(kind = 'provider') = (issuer <> '' AND subject <> '')", name="identity"),
        CheckConstraint("(kind = 'password') = (secret <> '')", name="secret"),
        Index("uq_credentials_identity", "issuer", "subject", unique=True, postgresql_where=text("kind = 'provider'")),
        Index("uq_credentials_password", "user_id", unique=True, postgresql_where=text("kind = 'password'")),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    kind: Mapped[str]
    issuer: Mapped[str] = mapped_column(default="")
    subject: Mapped[str] = mapped_column(default="")
    """Who it is to the provider, for ever; the address and the name may change."""
    label: Mapped[str] = mapped_column(default="")
    """What the owner knows the identity by: its address or name."""
    secret: Mapped[str] = mapped_column(default="")
    """A password's Argon2id hash with its parameters."""
    token_id: Mapped[int | None] = mapped_column(ForeignKey("tokens.id", ondelete="SET NULL"), index=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_used_at: Mapped[datetime | None]


class ProviderFlow(Base):
    """A sign-in on its way to the provider and back, kept ten minutes. `hash` is of a cookie that only this browser has.

    `state` is emptied when it came back once. `identity`: who the provider then said it is, until an account is chosen.
    """

    __tablename__ = "provider_flows"

    hash: Mapped[bytes] = mapped_column(primary_key=True)
    state: Mapped[str]
    nonce: Mapped[str]
    verifier: Mapped[str]
    onward: Mapped[str]
    invite_hash: Mapped[bytes | None]
    recovery_hash: Mapped[bytes | None]
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    """Who was signed in and wants to be linked."""
    identity: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    address: Mapped[str] = mapped_column(index=True)
    expires_at: Mapped[datetime]


class Recovery(Base):
    """An administrator's link that lets the owner of an account set up how to sign in again; it works once.

    `token_id`: as a credential's, and it becomes that of what is set up with the link.
    """

    __tablename__ = "recoveries"

    hash: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_id: Mapped[int | None] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]


class SignInFailure(Base):
    """A failed sign-in, kept 15 minutes, so that the limit on guessing holds across API processes."""

    __tablename__ = "sign_in_failures"
    __table_args__ = (Index("ix_sign_in_failures_address_at", "address", "at"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    address: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=func.now())


class SignUp(Base):
    """An account that was made without an invite, kept an hour, so that the limit holds across API processes."""

    __tablename__ = "sign_ups"
    __table_args__ = (Index("ix_sign_ups_address_at", "address", "at"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    address: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=func.now())
