"""The tables that triggers of the migrations keep: who stands where, and how many judgings ended how."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from kernelgate.table_base import Base


class BoardVersion(Base):
    """What a board's version is: it changes in every transaction that changes the board, by triggers of the migrations."""

    __tablename__ = "board_versions"

    stage: Mapped[str] = mapped_column(primary_key=True)
    """Empty: every stage's, for what an account shows stands on several boards."""
    version: Mapped[str]
    places: Mapped[str] = mapped_column(default="", server_default="")
    """The version that last moved anybody: judgings that change no place leave it."""


class Place(Base):
    """Who stands on a stage's board, kept by triggers of the migrations in every transaction that moves somebody.

    kind: `first`, the first accepted submission; `right`, the first that is right in every value; `best`, the fastest accepted
    one on a GPU model, and `timed` every other accepted one that was timed. attempts: graded submissions up to and with it.
    """

    __tablename__ = "places"
    __table_args__ = (
        CheckConstraint("kind IN ('first', 'right', 'best', 'timed')", name="kind"),
        Index("ix_places_stage_kind", "stage", "kind"),
    )

    stage: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(primary_key=True)
    submission_id: Mapped[str] = mapped_column(primary_key=True)
    gpu_model: Mapped[str | None]
    created_at: Mapped[datetime]
    attempts: Mapped[int] = mapped_column(BigInteger)
    speedup: Mapped[float | None]
    speedup_low: Mapped[float | None]
    speedup_high: Mapped[float | None]


class PlacesWorkedOut(Base):
    """By which transaction somebody's places in a stage were worked out: one that changes a hundred rows does it once."""

    __tablename__ = "places_worked_out"

    stage: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    by: Mapped[str]


class Judgings(Base):
    """How many judgings ended in each verdict, kept by a trigger; what is deleted stays counted."""

    __tablename__ = "judgings"

    stage: Mapped[str] = mapped_column(primary_key=True)
    verdict: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigInteger)
