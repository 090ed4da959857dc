"""The tables of what people say to each other: comments on files, questions to a course, announcements, feeds."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, func, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from kernelgate.models import Base, User


class Comment(Base):
    """On a line of a submission, or on all of it (line None): of those who teach its author, and the author's answers."""

    __tablename__ = "comments"
    __table_args__ = (
        CheckConstraint("line > 0", name="line"),
        Index("ix_comments_unseen", "submission_id", postgresql_where=text("seen_at IS NULL")),
    )

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    submission_id: Mapped[str] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), index=True)
    line: Mapped[int | None]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    text: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    seen_at: Mapped[datetime | None]
    """When the other side first looked: the author, or for an answer of theirs somebody who teaches them."""

    user: Mapped[User] = relationship(lazy="joined")


class Question(Base):
    """What a member asks the staff of a course, about a stage or all of it, and the answer: to one or to all."""

    __tablename__ = "questions"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    stage: Mapped[str | None]
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    text: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    answer: Mapped[str | None]
    answered_by: Mapped[str | None]
    answered_at: Mapped[datetime | None]
    to_all: Mapped[bool] = mapped_column(default=False)

    user: Mapped[User] = relationship(lazy="joined")


class FeedLink(Base):
    """Where a program reads what a course announces for one of its people: a secret address, of which the hash is kept.

    It ends with the seat that it belongs to.
    """

    __tablename__ = "feed_links"
    __table_args__ = (
        ForeignKeyConstraint(
            ["course_id", "user_id"],
            ["course_members.course_id", "course_members.user_id"],
            ondelete="CASCADE",
            onupdate="CASCADE",
        ),
    )

    course_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    hash: Mapped[bytes] = mapped_column(unique=True)


class Announcement(Base):
    """What the staff of a course says to all of it."""

    __tablename__ = "announcements"

    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    course_id: Mapped[int] = mapped_column(ForeignKey("courses.id", ondelete="CASCADE"), index=True)
    text: Mapped[str]
    actor: Mapped[str]
    at: Mapped[datetime] = mapped_column(server_default=func.now())
