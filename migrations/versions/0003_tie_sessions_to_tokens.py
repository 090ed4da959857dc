"""Tie a session to the token it was opened with and a token to the one it was made with; count sign-ups by address.

Of the sessions that are open nobody knows the token, so they end and their owners sign in again.

Revision: 0003; follows: 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("parent_id", sa.BigInteger(), nullable=True))
    op.create_index("ix_tokens_parent_id", "tokens", ["parent_id"])
    op.create_foreign_key("fk_tokens_parent_id", "tokens", "tokens", ["parent_id"], ["id"], ondelete="SET NULL")
    op.execute("DELETE FROM sessions")
    op.add_column("sessions", sa.Column("token_id", sa.BigInteger(), nullable=False))
    op.create_index("ix_sessions_token_id", "sessions", ["token_id"])
    op.create_foreign_key("fk_sessions_token_id", "sessions", "tokens", ["token_id"], ["id"], ondelete="CASCADE")
    op.create_table(
        "sign_ups",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_ups")),
    )
    op.create_index("ix_sign_ups_address_at", "sign_ups", ["address", "at"])


def downgrade() -> None:
    op.drop_index("ix_sign_ups_address_at", table_name="sign_ups")
    op.drop_table("sign_ups")
    op.drop_constraint("fk_sessions_token_id", "sessions", type_="foreignkey")
    op.drop_index("ix_sessions_token_id", table_name="sessions")
    op.drop_column("sessions", "token_id")
    op.drop_constraint("fk_tokens_parent_id", "tokens", type_="foreignkey")
    op.drop_index("ix_tokens_parent_id", table_name="tokens")
    op.drop_column("tokens", "parent_id")
