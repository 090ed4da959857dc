"""Contests: a course's start and end with a board over its stages, and starts of people's own.

Revision: 0008; follows: 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def _time(name: str, **more: object) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), **more)  # type: ignore[arg-type]


def upgrade() -> None:
    op.create_table(
        "contests",
        sa.Column("course_id", sa.BigInteger(), autoincrement=False, nullable=False),
        _time("starts_at", nullable=False),
        _time("ends_at", nullable=False),
        _time("freezes_at", nullable=True),
        sa.Column("penalty", sa.Integer(), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("virtual", sa.Boolean(), nullable=False),
        sa.Column("revealed", sa.Integer(), nullable=False),
        sa.CheckConstraint("ends_at > starts_at", name=op.f("ck_contests_ends_at")),
        sa.CheckConstraint("freezes_at > starts_at AND freezes_at < ends_at", name=op.f("ck_contests_freezes_at")),
        sa.CheckConstraint("penalty BETWEEN 0 AND 1440", name=op.f("ck_contests_penalty")),
        sa.CheckConstraint("revealed >= 0", name=op.f("ck_contests_revealed")),
        sa.ForeignKeyConstraint(["course_id"], ["courses.id"], name=op.f("fk_contests_course_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("course_id", name=op.f("pk_contests")),
    )
    op.create_table(
        "contest_starts",
        sa.Column("course_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        _time("started_at", server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id"], ["contests.course_id"], name=op.f("fk_contest_starts_course_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_contest_starts_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("course_id", "user_id", name=op.f("pk_contest_starts")),
    )
    op.create_index(op.f("ix_contest_starts_user_id"), "contest_starts", ["user_id"])


def downgrade() -> None:
    op.drop_table("contest_starts")
    op.drop_table("contests")
