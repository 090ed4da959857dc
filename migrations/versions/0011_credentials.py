"""Passwords, linked identities, recovery links; sessions that these open; an account's address and whether its page is public.

Revision: 0011; follows: 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"

_NOW = sa.text("now()")


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def _made() -> sa.Column[object]:
    return sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False)


def _to(table: str, column: str, other: str, ends: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=op.f(f"fk_{table}_{column}"), ondelete=ends)


def _index(table: str, column: str) -> None:
    op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def upgrade() -> None:
    op.add_column("users", sa.Column("email", sa.String(), server_default="", nullable=False))
    op.add_column("users", sa.Column("public", sa.Boolean(), server_default="false", nullable=False))
    op.create_index(
        "uq_users_email_lower", "users", [sa.text("lower(email)")], unique=True, postgresql_where=sa.text("email <> ''")
    )
    _credentials()
    _flows()
    op.alter_column("sessions", "token_id", nullable=True)
    op.add_column("sessions", sa.Column("credential_id", sa.BigInteger(), nullable=True))
    op.add_column("sessions", sa.Column("scopes", sa.ARRAY(sa.String()), server_default="{}", nullable=False))
    op.create_foreign_key(
        op.f("fk_sessions_credential_id"), "sessions", "credentials", ["credential_id"], ["id"], ondelete="CASCADE"
    )
    op.create_check_constraint(
        op.f("ck_sessions_opened_with"), "sessions", "(token_id IS NULL) <> (credential_id IS NULL)"
    )
    _index("sessions", "credential_id")


def _credentials() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("issuer", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("token_id", sa.BigInteger(), nullable=True),
        _made(),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('password', 'provider')", name=op.f("ck_credentials_kind")),
        sa.CheckConstraint(
            "(kind = 'provider') = (issuer <> '' AND subject <> '')", name=op.f("ck_credentials_identity")
        ),
        sa.CheckConstraint("(kind = 'password') = (secret <> '')", name=op.f("ck_credentials_secret")),
        _to("credentials", "user_id", "users", "CASCADE"),
        _to("credentials", "token_id", "tokens", "SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credentials")),
    )
    for name, columns, kind in (
        ("uq_credentials_identity", ["issuer", "subject"], "provider"),
        ("uq_credentials_password", ["user_id"], "password"),
    ):
        op.create_index(name, "credentials", columns, unique=True, postgresql_where=sa.text(f"kind = '{kind}'"))
    _index("credentials", "user_id")
    _index("credentials", "token_id")


def _flows() -> None:
    op.create_table(
        "provider_flows",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("state", "nonce", "verifier", "onward")),
        sa.Column("invite_hash", sa.LargeBinary(), nullable=True),
        sa.Column("recovery_hash", sa.LargeBinary(), nullable=True),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("identity", postgresql.JSONB(none_as_null=True), nullable=True),
        sa.Column("address", sa.String(), nullable=False),
        _time("expires_at"),
        _to("provider_flows", "user_id", "users", "CASCADE"),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_provider_flows")),
    )
    _index("provider_flows", "user_id")
    _index("provider_flows", "address")
    op.create_table(
        "recoveries",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("token_id", sa.BigInteger(), nullable=True),
        _made(),
        _time("expires_at"),
        _to("recoveries", "user_id", "users", "CASCADE"),
        _to("recoveries", "token_id", "tokens", "CASCADE"),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_recoveries")),
    )
    _index("recoveries", "user_id")
    _index("recoveries", "token_id")


def downgrade() -> None:
    op.execute("DELETE FROM sessions WHERE token_id IS NULL")
    op.drop_constraint(op.f("ck_sessions_opened_with"), "sessions", type_="check")
    op.drop_column("sessions", "credential_id")
    op.drop_column("sessions", "scopes")
    op.alter_column("sessions", "token_id", nullable=False)
    for table in ("recoveries", "provider_flows", "credentials"):
        op.drop_table(table)
    op.drop_index("uq_users_email_lower", table_name="users")
    op.drop_column("users", "public")
    op.drop_column("users", "email")
