"""Tokens that are good for one course alone, and end with it.

Revision: 0012; follows: 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("tokens", sa.Column("course", sa.String(), nullable=True))
    op.create_index(op.f("ix_tokens_course"), "tokens", ["course"])
    op.create_foreign_key(op.f("fk_tokens_course"), "tokens", "courses", ["course"], ["name"], ondelete="CASCADE")


def downgrade() -> None:
    # Without the column they would be good for everything.
    op.execute("DELETE FROM tokens WHERE course IS NOT NULL")
    op.drop_constraint(op.f("fk_tokens_course"), "tokens")
    op.drop_index(op.f("ix_tokens_course"), "tokens")
    op.drop_column("tokens", "course")
