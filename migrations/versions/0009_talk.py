"""Comments on submitted files, questions to a course, links of feeds.

Revision: 0009; follows: 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_NOW = sa.text("now()")


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _text(name: str, *, required: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=not required)


def _said(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=_NOW, nullable=False)


def _later(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=True)


def _of(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [other], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "comments",
        _number("id"),
        _text("submission_id", required=True),
        sa.Column("line", sa.Integer(), nullable=True),
        _number("user_id"),
        _text("text", required=True),
        _said("at"),
        _later("seen_at"),
        sa.CheckConstraint("line > 0", name=op.f("ck_comments_line")),
        _of("comments", "submission_id", "submissions.id"),
        _of("comments", "user_id", "users.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_comments")),
    )
    op.create_index(op.f("ix_comments_submission_id"), "comments", ["submission_id"])
    op.create_index(op.f("ix_comments_user_id"), "comments", ["user_id"])
    op.create_index("ix_comments_unseen", "comments", ["submission_id"], postgresql_where=sa.text("seen_at IS NULL"))
    op.create_table(
        "questions",
        _number("id"),
        _number("course_id"),
        _text("stage"),
        _number("user_id"),
        _text("text", required=True),
        _said("at"),
        _text("answer"),
        _text("answered_by"),
        _later("answered_at"),
        sa.Column("to_all", sa.Boolean(), nullable=False),
        _of("questions", "course_id", "courses.id"),
        _of("questions", "user_id", "users.id"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_questions")),
    )
    op.create_index(op.f("ix_questions_course_id"), "questions", ["course_id"])
    op.create_index(op.f("ix_questions_user_id"), "questions", ["user_id"])
    op.create_table(
        "feed_links",
        _number("course_id"),
        _number("user_id"),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["course_id", "user_id"],
            ["course_members.course_id", "course_members.user_id"],
            name=op.f("fk_feed_links_course_id"),
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
        sa.PrimaryKeyConstraint("course_id", "user_id", name=op.f("pk_feed_links")),
        sa.UniqueConstraint("hash", name=op.f("uq_feed_links_hash")),
    )


def downgrade() -> None:
    for table in ("feed_links", "questions", "comments"):
        op.drop_table(table)
