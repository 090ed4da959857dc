"""The tables of contests: a course's stages against one clock."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, func
from sqlalchemy.orm import Mapped, mapped_column

from kernelgate.models import Base


class Contest(Base):
    """A course's start and end, and how its board shows what was done between them."""

    __tablename__ = "contests"
    __table_args__ = (
        CheckConstraint("ends_at > starts_at", name="ends_at"),
        CheckConstraint("freezes_at > starts_at AND freezes_at < ends_at", name="freezes_at"),
        CheckConstraint("penalty BETWEEN 0 AND 1440", name="penalty"),
        CheckConstraint("revealed >= 0", name="revealed"),
    )

    course_id: Mapped[int] = mapped_column(
        BigInteger, ForeignKey("courses.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    freezes_at: Mapped[datetime | None]
    """What is made from then on stands on the board as tried, until it is revealed."""
    penalty: Mapped[int] = mapped_column(default=20)
    """Minutes for each attempt before the one that counts."""
    public: Mapped[bool] = mapped_column(default=False)
    virtual: Mapped[bool] = mapped_column(default=False)
    """Whether those who missed the start may have a start of their own."""
    revealed: Mapped[int] = mapped_column(default=0)
    """How many of the results that the freeze keeps back are shown, from the last place upwards."""


class ContestStart(Base):
    """Somebody's own start in a contest."""

    __tablename__ = "contest_starts"

    course_id: Mapped[int] = mapped_column(ForeignKey("contests.course_id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    started_at: Mapped[datetime] = mapped_column(server_default=func.now())
