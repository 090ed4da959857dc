"""The tables. Postgres is the truth of the service; the broker only rings.

A submission's row carries its lease: `attempt`, `lease_owner` and `lease_until` are one fencing token, and every write of a
running grading is conditional on all of it (see worker/leases/lease.py). A result row is written once per (submission,
round) and never changed: a rejudge opens a new round and the old result stays.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    ForeignKey,
    Index,
    String,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column, relationship

from kernelgate.board_tables import BoardVersion, Judgings, Place, PlacesWorkedOut
from kernelgate.sign_in_tables import Credential, ProviderFlow, Recovery, SignInFailure, SignUp
from kernelgate.table_base import Base, in_list, now
from kernelgate.verdicts import State

__all__ = [
    "Base",
    "BoardVersion",
    "Credential",
    "Judgings",
    "Place",
    "PlacesWorkedOut",
    "ProviderFlow",
    "Recovery",
    "SignInFailure",
    "SignUp",
    "in_list",
    "now",
]
"""Known to whoever imports the models, so that no table is missing from the schema."""


def new_id() -> str:
    """A public id: 16 hex digits from the system's random source, so that ids cannot be guessed or counted."""
    return secrets.token_hex(8)


class Role(StrEnum):
    """What an account may do. An instructor reads every submission; an admin also changes the service."""

    SUBMITTER = "submitter"
    INSTRUCTOR = "instructor"
    ADMIN = "admin"


class Scope(StrEnum):
    """What a token may do, within its account's role."""

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"


class CourseRole(StrEnum):
    """What somebody is in a course. Its staff, instructors and assistants, see and judge again what its members submit to its
    stages; instructors also change the course."""

    INSTRUCTOR = "instructor"
    ASSISTANT = "assistant"
    MEMBER = "member"

    @property
    def staff(self) -> bool:
        return self is not CourseRole.MEMBER


class LateRule(StrEnum):
    """What a submission after the due time is worth."""

    NONE = "none"
    """Nothing."""
    PENALTY = "penalty"
    """Its points less `late_percent` for each day begun."""
    DAYS = "days"
    """All its points, for days paid from the course's budget."""


class PointsRule(StrEnum):
    """How a stage's points are earned."""

    PASS = "pass"  # noqa: S105 - the word, no password
    THRESHOLDS = "thresholds"
    RATIO = "ratio"
    CASES = "cases"


class User(Base):
    """An account. `handle` is public. People sign in with credentials, machines with tokens.

    `email` is what an administrator wrote down: whoever the provider says has verified it gets this account.
    """

    __tablename__ = "users"
    __table_args__ = (
        CheckConstraint(r"handle ~ '^[A-Za-z0-9][A-Za-z0-9_.-]{0,38}$'", name="handle"),
        CheckConstraint(in_list("role", Role), name="role"),
        Index("uq_users_handle_lower", func.lower(text("handle")), unique=True),
        Index("uq_users_email_lower", func.lower(text("email")), unique=True, postgresql_where=text("email <> ''")),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    handle: Mapped[str]
    role: Mapped[str] = mapped_column(default=Role.SUBMITTER)
    email: Mapped[str] = mapped_column(default="", server_default="")
    public: Mapped[bool] = mapped_column(default=False, server_default="false")
    """Whether everybody may see the account's own page."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    disabled_at: Mapped[datetime | None]


class Token(Base):
    """An API token: only its SHA-256 is stored (it has 192 random bits, so a slow hash would add nothing).

    `parent_id` is the token that it was made with, directly or through a browser session; what was made with a token ends
    with it at the latest. None: made by an administrator for somebody, on the command line, or with the account.
    """

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(default="")
    hash: Mapped[bytes] = mapped_column(unique=True)
    hint: Mapped[str]
    """The token's first characters, so that a person can tell two tokens apart."""
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String))
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("tokens.id", ondelete="SET NULL"), index=True)
    course: Mapped[str | None] = mapped_column(ForeignKey("courses.name", ondelete="CASCADE"), index=True)
    """The only course that it is good for, and with which it ends; None: it is not confined."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]

    user: Mapped[User] = relationship(lazy="joined")


class Invite(Base):
    """A link that makes an account; each use counts against `uses_left`.

    With `course_id` it leads into that course, whoever has an account already keeps it, and `email`, `person` and `team` of the
    roster go into the membership.
    """

    __tablename__ = "invites"
    __table_args__ = (
        CheckConstraint("uses_left >= 0", name="uses_left"),
        CheckConstraint(in_list("role", Role), name="role"),
        CheckConstraint(in_list("course_role", CourseRole), name="course_role"),
        CheckConstraint("course_id IS NULL OR role = 'submitter'", name="course"),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    hash: Mapped[bytes] = mapped_column(unique=True)
    role: Mapped[str] = mapped_column(default=Role.SUBMITTER)
    note: Mapped[str] = mapped_column(default="")
    uses_left: Mapped[int] = mapped_column(default=1)
    created_by: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]
    course_id: Mapped[int | None] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    course_role: Mapped[str] = mapped_column(default=CourseRole.MEMBER, server_default=CourseRole.MEMBER)
    email: Mapped[str] = mapped_column(default="", server_default="")
    person: Mapped[str] = mapped_column(default="", server_default="")
    team: Mapped[str] = mapped_column(default="", server_default="")


class Session(Base):
    """A signed-in browser. `hash` is of the cookie's value; `csrf` is compared with what a form sends.

    It is the token or credential it was opened with in another form, and ends when that does. With a token it may do what the
    token may; with a credential, `scopes`: what the account might when it signed in.
    """

    __tablename__ = "sessions"
    __table_args__ = (CheckConstraint("(token_id IS NULL) <> (credential_id IS NULL)", name="opened_with"),)

    hash: Mapped[bytes] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    token_id: Mapped[int | None] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    credential_id: Mapped[int | None] = mapped_column(ForeignKey("credentials.id", ondelete="CASCADE"), index=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String), default=list, server_default="{}")
    csrf: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime]

    token: Mapped[Token | None] = relationship(lazy="joined")
    user: Mapped[User] = relationship(lazy="joined")


class StageVersion(Base):
    """A version of a stage that this service has seen; `verified`: its `stage verify` passed here."""

    __tablename__ = "stage_versions"

    stage: Mapped[str] = mapped_column(primary_key=True)
    hash: Mapped[str] = mapped_column(primary_key=True)
    verified: Mapped[bool] = mapped_column(default=False)
    report: Mapped[dict[str, Any] | None]
    seen_at: Mapped[datetime] = mapped_column(server_default=func.now())


class StageSwitch(Base):
    """An admin's decision about a stage that outlives its versions."""

    __tablename__ = "stage_switches"

    stage: Mapped[str] = mapped_column(primary_key=True)
    enabled: Mapped[bool] = mapped_column(default=True)
    frozen: Mapped[bool] = mapped_column(default=False)
    """A frozen leaderboard shows what was accepted until `frozen_at` and nothing later."""
    frozen_at: Mapped[datetime | None]


class Submission(Base):
    """One submitted file. `round` counts judgings (1, and one more per rejudge); `attempt` counts tries within a round."""

    __tablename__ = "submissions"
    __table_args__ = (
        CheckConstraint(in_list("state", State), name="state"),
        CheckConstraint("trial IS NULL OR (verdict IS NULL AND speedup IS NULL)", name="trial"),
        UniqueConstraint("user_id", "idempotency_key"),
        Index("ix_submissions_queued", "created_at", postgresql_where=text("state = 'queued'")),
        Index("ix_submissions_running", "lease_until", postgresql_where=text("state = 'running'")),
        Index("ix_submissions_user_created", "user_id", "created_at"),
        Index(
            "ix_submissions_stage_verdict_user",
            "stage",
            "verdict",
            "user_id",
            postgresql_where=text("verdict IS NOT NULL"),
        ),
        Index(
            "ix_submissions_stage_mistake_user",
            "stage",
            "mistake",
            "user_id",
            postgresql_where=text("mistake IS NOT NULL"),
        ),
        Index("ix_submissions_held", "created_at", postgresql_where=text("held IS NOT NULL")),
        Index("ix_submissions_created", "created_at", "id", postgresql_where=text("trial IS NULL")),
        Index("ix_submissions_stage_created", "stage", "created_at", "id", postgresql_where=text("trial IS NULL")),
        Index("ix_submissions_verdict_created", "verdict", "created_at", "id", postgresql_where=text("trial IS NULL")),
        Index(
            "ix_submissions_stage_user_created",
            "stage",
            "user_id",
            "created_at",
            "id",
            postgresql_where=text("trial IS NULL"),
        ),
        Index("ix_submissions_open", "queue", "state", postgresql_where=text("state IN ('queued', 'running')")),
        Index("ix_submissions_apart", "created_at", "id", postgresql_where=text("hidden")),
        Index(
            "ix_submissions_finished",
            "stage",
            "queue",
            "finished_at",
            postgresql_where=text("state = 'done' AND trial IS NULL"),
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True, default=new_id)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    stage: Mapped[str]
    stage_hash: Mapped[str]
    """The version of the stage it was submitted to; its result names the version it was graded by."""
    filename: Mapped[str]
    source: Mapped[bytes]
    source_hash: Mapped[str]
    via: Mapped[str] = mapped_column(default="api")
    idempotency_key: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(default=now)

    state: Mapped[str] = mapped_column(default=State.QUEUED)
    queue: Mapped[str] = mapped_column(default="cpu")
    rung_at: Mapped[datetime | None]
    round: Mapped[int] = mapped_column(default=1)
    attempt: Mapped[int] = mapped_column(default=0)
    lease_owner: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    claimed_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    hidden: Mapped[bool] = mapped_column(default=False)
    trial: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """`protocol.Trial`: the one case that is run and counts nowhere. Such a row never has a verdict of its own, so that nothing
    that goes by verdicts (boards, passing, rejudging) can take it for a submission; its result says what came out."""
    held: Mapped[str | None]
    """Why the newest result does not count until an administrator releases it; one that is hidden as well was dismissed."""

    verdict: Mapped[str | None]
    """The newest result's, with the five columns below, so that lists and leaderboards need no join into JSON."""
    reason: Mapped[str | None]
    backend: Mapped[str | None]
    gpu_model: Mapped[str | None]
    speedup: Mapped[float | None]
    mistake: Mapped[str | None]

    user: Mapped[User] = relationship(lazy="joined")


class ResultRow(Base):
    """A finished judging: `protocol.Result` as JSON. One per (submission, round), never updated."""

    __tablename__ = "results"
    __table_args__ = (UniqueConstraint("submission_id", "round"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    round: Mapped[int]
    attempt: Mapped[int]
    worker: Mapped[str]
    verdict: Mapped[str]
    reason: Mapped[str]
    stage_hash: Mapped[str]
    speedup: Mapped[float | None]
    speedup_low: Mapped[float | None]
    speedup_high: Mapped[float | None]
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class EventRow(Base):
    """One line of a submission's history; `id` is the SSE event id."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_submission_id_id", "submission_id", "id"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    round: Mapped[int]
    attempt: Mapped[int]
    kind: Mapped[str]
    data: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())


class WorkerRow(Base):
    """A worker process group as it last reported. `health` says per layer and per GPU what holds and what does not."""

    __tablename__ = "workers"

    name: Mapped[str] = mapped_column(primary_key=True)
    queues: Mapped[list[str]] = mapped_column(ARRAY(String))
    backends: Mapped[list[str]] = mapped_column(ARRAY(String))
    gpu_model: Mapped[str | None]
    healthy: Mapped[bool] = mapped_column(default=True)
    health: Mapped[dict[str, Any]]
    started_at: Mapped[datetime]
    heartbeat_at: Mapped[datetime]


class Audit(Base):
    """What an admin did: who, what, to whom. Written in the transaction that did it."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    actor: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    data: Mapped[dict[str, Any]]


class Course(Base):
    """A term: people, and stages with times. What somebody submits to a stage counts in every course of theirs that has it."""

    __tablename__ = "courses"
    __table_args__ = (
        CheckConstraint(r"name ~ '^[a-z0-9][a-z0-9-]{0,38}$'", name="name"),
        CheckConstraint("late_days BETWEEN 0 AND 100", name="late_days"),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    title: Mapped[str]
    late_days: Mapped[int] = mapped_column(default=0)
    """What everybody, and each team for what it does jointly, may be late in all."""
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class Team(Base):
    """People of a course who earn the points of joint stages, and pay their late days, together."""

    __tablename__ = "course_teams"
    __table_args__ = (UniqueConstraint("course_id", "name"),)

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"))
    name: Mapped[str]


class Member(Base):
    """Somebody in a course. `email` and `person` are the roster's, for the staff's eyes and for exports."""

    __tablename__ = "course_members"
    __table_args__ = (CheckConstraint(in_list("role", CourseRole), name="role"),)

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    role: Mapped[str] = mapped_column(default=CourseRole.MEMBER)
    team_id: Mapped[int | None] = mapped_column(ForeignKey("course_teams.id", ondelete="SET NULL"), index=True)
    email: Mapped[str] = mapped_column(default="")
    person: Mapped[str] = mapped_column(default="")
    joined_at: Mapped[datetime] = mapped_column(server_default=func.now())

    user: Mapped[User] = relationship(lazy="joined")
    team: Mapped[Team | None] = relationship(lazy="joined")


class CourseStage(Base):
    """A stage in a course: its times, and what its points are earned by.

    marked_at: judgings made until then count even where they are later than the due time, which else fixes what counts.
    """

    __tablename__ = "course_stages"
    __table_args__ = (
        CheckConstraint(in_list("late", LateRule), name="late"),
        CheckConstraint(in_list("rule", PointsRule), name="rule"),
        CheckConstraint("late_percent BETWEEN 0 AND 100", name="late_percent"),
        CheckConstraint("late_limit BETWEEN 0 AND 100", name="late_limit"),
        CheckConstraint("quota > 0", name="quota"),
        CheckConstraint("points >= 0", name="points"),
    )

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(primary_key=True)
    place: Mapped[int] = mapped_column(default=0)
    opens_at: Mapped[datetime | None]
    due_at: Mapped[datetime | None]
    freezes_at: Mapped[datetime | None]
    marked_at: Mapped[datetime | None]
    late: Mapped[str] = mapped_column(default=LateRule.NONE)
    late_percent: Mapped[float] = mapped_column(default=0.0)
    late_limit: Mapped[int] = mapped_column(default=0)
    """Days after the due time from which on nothing counts, whatever the rule."""
    quota: Mapped[int | None]
    joint: Mapped[bool] = mapped_column(default=False)
    rule: Mapped[str] = mapped_column(default=PointsRule.PASS)
    points: Mapped[float] = mapped_column(default=1.0)
    steps: Mapped[list[list[float]]] = mapped_column(JSONB, default=list)
    """Of thresholds: speedup and the points from it on, rising."""


class Extension(Base):
    """Another due time for one person in one stage of a course."""

    __tablename__ = "course_extensions"

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    due_at: Mapped[datetime]
    reason: Mapped[str]


class Override(Base):
    """Points that somebody of the staff gave by hand, in place of those that were earned."""

    __tablename__ = "course_overrides"
    __table_args__ = (CheckConstraint("points >= 0", name="points"),)

    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True)
    stage: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    points: Mapped[float]
    reason: Mapped[str]
    actor: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=func.now())
