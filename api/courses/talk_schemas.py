"""What the routes of comments, questions and feeds answer with, and what they read."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, Field

from api.courses.schemas import Empty, Prose
from api.schemas import Body, Word


class CommentBody(Body):
    line: Annotated[int | None, Empty] = Field(None, ge=1, description="The line of the file; none: on all of it.")
    text: Prose


class CommentView(BaseModel):
    id: int
    line: int | None = None
    user: str
    author: bool = Field(description="Whether it is the submission's author who says it.")
    text: str
    at: datetime
    seen_at: datetime | None = Field(None, description="When the other side first looked.")


class QuestionBody(Body):
    stage: Annotated[Word | None, Empty] = Field(None, description="The course's stage that it is about.")
    text: Prose


class AnswerBody(Body):
    text: Prose
    to_all: bool = Field(
        False, description="Whether all of the course read question and answer; who asked is not said."
    )


class QuestionView(BaseModel):
    id: int
    stage: str | None = None
    text: str
    at: datetime
    user: str | None = Field(None, description="Who asked: for the staff, and for themselves.")
    answer: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    to_all: bool = False


class FeedView(BaseModel):
    url: str = Field(description="An Atom feed for whoever knows the address. It is shown this once.")
