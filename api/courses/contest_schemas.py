"""What the routes of contests answer with, and what they read."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from api.courses.schemas import Moment
from api.schemas import Body


class ContestState(StrEnum):
    BEFORE = "before"
    RUNNING = "running"
    FROZEN = "frozen"
    """It runs, and the board stands still."""
    KEPT_BACK = "kept_back"
    """It is over, and not everything is revealed."""
    OVER = "over"


class ContestRules(BaseModel):
    """Times are in UTC."""

    starts_at: Moment = Field(description="Before, nobody of the course can submit to its stages.")
    ends_at: Moment = Field(description="What is submitted later does not stand on the board.")
    freezes_at: Moment = Field(
        None, description="From then on the board shows that somebody tried, and not what came out."
    )
    penalty: int = Field(20, ge=0, le=1440, description="Minutes for each attempt before the one that counts.")
    public: bool = Field(False, description="Whether everybody may see the board, at /contests/NAME.")
    virtual: bool = Field(False, description="Whether who missed the start may start later, on a clock of their own.")


class ContestBody(ContestRules, Body):
    @model_validator(mode="after")
    def _consistent(self) -> ContestBody:
        if self.starts_at is None or self.ends_at is None:
            raise ValueError("starts_at, ends_at: a contest has both")
        if self.starts_at >= self.ends_at:
            raise ValueError("ends_at: it is not after starts_at")
        if self.freezes_at is not None and not self.starts_at < self.freezes_at < self.ends_at:
            raise ValueError("freezes_at: it is not between starts_at and ends_at")
        return self


class RevealBody(Body):
    what: Literal["next", "all", "none"] = Field(
        "next", description="`next`: one result more, from the last place upwards; `all`; `none`: frozen again."
    )


class ContestCell(BaseModel):
    stage: str
    points: float = 0
    minutes: int = Field(0, description="From the start to the attempt that counts, with penalties.")
    tries: int = Field(0, description="Judged attempts up to the one that counts; all, where none does.")
    hidden: int = Field(0, description="Attempts whose results the freeze keeps back.")


class ContestRow(BaseModel):
    rank: int
    name: str = Field(description="The team, or the handle of who has none.")
    virtual: bool = Field(False, description="They had a start of their own.")
    points: float
    minutes: int
    cells: list[ContestCell] = Field(description="In the order of the stages.")


class ContestView(ContestRules):
    course: str
    title: str
    state: ContestState
    stages: dict[str, str] = Field(description="Name → title; none before the start.")
    your_start: datetime | None = Field(None, description="When the caller's clock started, if they take part.")
    your_end: datetime | None = None
    may_start: bool = Field(False, description="Whether the caller may have a start of their own now.")
    to_reveal: int = Field(0, description="Results that are still kept back.")
    last: tuple[str, str] | None = Field(None, description="Whose result in which stage was revealed last.")
    rows: list[ContestRow]
