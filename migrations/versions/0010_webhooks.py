"""Webhooks, and the outbox of what they are told.

Revision: 0010; follows: 0009.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0009"

_NOW = sa.text("now()")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False)


def _time(name: str, *, begins: bool = False, required: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=_NOW if begins else None, nullable=not required)


def upgrade() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("course_id", sa.BigInteger(), nullable=True),
        _text("url"),
        _text("secret"),
        sa.Column("events", postgresql.ARRAY(sa.String()), nullable=False),
        _text("created_by"),
        _time("created_at", begins=True, required=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        _time("off_at"),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name=op.f("fk_webhooks_course_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    op.create_index(op.f("ix_webhooks_course_id"), "webhooks", ["course_id"])
    op.create_table(
        "deliveries",
        _text("id"),
        sa.Column("webhook_id", sa.BigInteger(), nullable=False),
        _text("event"),
        sa.Column("body", postgresql.JSONB(), nullable=False),
        _time("created_at", begins=True, required=True),
        _time("next_at", begins=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        _time("delivered_at"),
        _text("answer"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    op.create_index(op.f("ix_deliveries_webhook_id"), "deliveries", ["webhook_id"])
    op.create_index("ix_deliveries_next_at", "deliveries", ["next_at"], postgresql_where=sa.text("next_at IS NOT NULL"))


def downgrade() -> None:
    op.drop_table("deliveries")
    op.drop_table("webhooks")
