"""Courses: people, teams, stages with times and points, extensions, overrides, announcements; invites that lead into one.

A submission does not name a course: it counts in every course of its owner that has its stage, so nothing of what is stored
changes, and a service without courses has empty tables.

Revision: 0007; follows: 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"

_NOW = sa.text("now()")


def _time(name: str, *, required: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=not required)


def _of_course(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["course_id"], ["courses.id"], name=op.f(f"fk_{table}_course_id"), ondelete="CASCADE"
    )


def _of_user(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f(f"fk_{table}_user_id"), ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "courses",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("late_days", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.CheckConstraint("name ~ '^[a-z0-9][a-z0-9-]{0,38}$'", name=op.f("ck_courses_name")),
        sa.CheckConstraint("late_days BETWEEN 0 AND 100", name=op.f("ck_courses_late_days")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_courses")),
        sa.UniqueConstraint("name", name=op.f("uq_courses_name")),
    )
    op.create_table(
        "course_teams",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("course_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        _of_course("course_teams"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_course_teams")),
        sa.UniqueConstraint("course_id", "name", name=op.f("uq_course_teams_course_id_name")),
    )
    _people()
    _stages()
    op.create_table(
        "announcements",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("course_id", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        _of_course("announcements"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_announcements")),
    )
    op.create_index(op.f("ix_announcements_course_id"), "announcements", ["course_id"])
    _invites()


def _people() -> None:
    op.create_table(
        "course_members",
        sa.Column("course_id", sa.BigInteger(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.String(), nullable=False),
        sa.Column("team_id", sa.BigInteger(), nullable=True),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("joined_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.CheckConstraint("role IN ('instructor', 'assistant', 'member')", name=op.f("ck_course_members_role")),
        _of_course("course_members"),
        _of_user("course_members"),
        sa.ForeignKeyConstraint(
            ["team_id"], ["course_teams.id"], name=op.f("fk_course_members_team_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("course_id", "user_id", name=op.f("pk_course_members")),
    )
    op.create_index(op.f("ix_course_members_user_id"), "course_members", ["user_id"])
    op.create_index(op.f("ix_course_members_team_id"), "course_members", ["team_id"])


def _stages() -> None:
    op.create_table(
        "course_stages",
        sa.Column("course_id", sa.BigInteger(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        *(_time(name) for name in ("opens_at", "due_at", "freezes_at", "marked_at")),
        sa.Column("late", sa.String(), nullable=False),
        sa.Column("late_percent", sa.Double(), nullable=False),
        sa.Column("late_limit", sa.Integer(), nullable=False),
        sa.Column("quota", sa.Integer(), nullable=True),
        sa.Column("joint", sa.Boolean(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("points", sa.Double(), nullable=False),
        sa.Column("steps", postgresql.JSONB(), nullable=False),
        sa.CheckConstraint("late IN ('none', 'penalty', 'days')", name=op.f("ck_course_stages_late")),
        sa.CheckConstraint("rule IN ('pass', 'thresholds', 'ratio', 'cases')", name=op.f("ck_course_stages_rule")),
        sa.CheckConstraint("late_percent BETWEEN 0 AND 100", name=op.f("ck_course_stages_late_percent")),
        sa.CheckConstraint("late_limit BETWEEN 0 AND 100", name=op.f("ck_course_stages_late_limit")),
        sa.CheckConstraint("quota > 0", name=op.f("ck_course_stages_quota")),
        sa.CheckConstraint("points >= 0", name=op.f("ck_course_stages_points")),
        _of_course("course_stages"),
        sa.PrimaryKeyConstraint("course_id", "stage", name=op.f("pk_course_stages")),
    )
    for table, columns in (
        ("course_extensions", (_time("due_at", required=True), sa.Column("reason", sa.String(), nullable=False))),
        (
            "course_overrides",
            (
                sa.Column("points", sa.Double(), nullable=False),
                sa.Column("reason", sa.String(), nullable=False),
                sa.Column("actor", sa.String(), nullable=False),
                sa.Column("at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
                sa.CheckConstraint("points >= 0", name=op.f("ck_course_overrides_points")),
            ),
        ),
    ):
        op.create_table(
            table,
            sa.Column("course_id", sa.BigInteger(), nullable=False),
            sa.Column("stage", sa.String(), nullable=False),
            sa.Column("user_id", sa.BigInteger(), nullable=False),
            *columns,
            _of_course(table),
            _of_user(table),
            sa.PrimaryKeyConstraint("course_id", "stage", "user_id", name=op.f(f"pk_{table}")),
        )
        op.create_index(op.f(f"ix_{table}_user_id"), table, ["user_id"])


def _invites() -> None:
    op.add_column("invites", sa.Column("course_id", sa.BigInteger(), nullable=True))
    op.add_column("invites", sa.Column("course_role", sa.String(), server_default="member", nullable=False))
    for name in ("email", "person", "team"):
        op.add_column("invites", sa.Column(name, sa.String(), server_default="", nullable=False))
    op.create_index(op.f("ix_invites_course_id"), "invites", ["course_id"])
    op.create_foreign_key(op.f("fk_invites_course_id"), "invites", "courses", ["course_id"], ["id"], ondelete="CASCADE")
    op.create_check_constraint(
        op.f("ck_invites_course_role"), "invites", "course_role IN ('instructor', 'assistant', 'member')"
    )
    op.create_check_constraint(op.f("ck_invites_course"), "invites", "course_id IS NULL OR role = 'submitter'")


def downgrade() -> None:
    op.execute("DELETE FROM invites WHERE course_id IS NOT NULL")
    op.drop_constraint(op.f("ck_invites_course"), "invites")
    op.drop_constraint(op.f("ck_invites_course_role"), "invites")
    for name in ("team", "person", "email", "course_role", "course_id"):
        op.drop_column("invites", name)
    for table in (
        "announcements", "course_overrides", "course_extensions", "course_stages", "course_members", "course_teams", "courses",
    ):  # fmt: skip
        op.drop_table(table)
