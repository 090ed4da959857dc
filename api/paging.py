"""Pages of submissions, newest first, by the last one seen: a page stays right while new ones arrive."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session, defer

from api.problems import Refusal
from api.schemas import SubmissionPage
from api.views import base_url, summary
from kernelgate.models import Submission, User
from kernelgate.verdicts import State, Verdict

Limit = Annotated[int, Query(ge=1, le=200, description="Items of a page.")]
Before = Annotated[str | None, Query(max_length=64, description="Only items older than this one; from `next`.")]


def next_address(request: Request, **changed: object) -> str:
    """This request's address with other parameters."""
    query = {**request.query_params, **{name: str(value) for name, value in changed.items()}}
    return f"{base_url(request)}{request.url.path}?{urlencode(query)}"


def filtered(
    user_id: int, *, stage: str | None = None, state: State | None = None, verdict: Verdict | None = None
) -> Select[Any]:
    """A person's submissions with this stage, state and verdict; None: any."""
    wanted = select(Submission).where(Submission.user_id == user_id, Submission.trial.is_(None))
    for column, value in ((Submission.stage, stage), (Submission.state, state), (Submission.verdict, verdict)):
        wanted = wanted if value is None else wanted.where(column == value)
    return wanted


class Apart(StrEnum):
    """How a submission is set apart from those that count."""

    HIDDEN = "hidden"
    HELD = "held"


def of_everybody(
    *,
    stage: str | None = None,
    verdict: Verdict | None = None,
    user: str | None = None,
    mistake: str | None = None,
    apart: Apart | None = None,
) -> Select[Any]:
    """Everybody's submissions with this stage, verdict, owner and named mistake, or set apart like this; None: any."""
    wanted = select(Submission).join(User, User.id == Submission.user_id).where(Submission.trial.is_(None))
    for column, value in ((Submission.stage, stage), (Submission.verdict, verdict), (Submission.mistake, mistake)):
        wanted = wanted if value is None else wanted.where(column == value)
    if user is not None:
        wanted = wanted.where(func.lower(User.handle) == user.lower())
    if apart is Apart.HIDDEN:
        wanted = wanted.where(Submission.hidden)
    if apart is Apart.HELD:
        wanted = wanted.where(Submission.held.is_not(None), Submission.hidden.is_(False))
    return wanted


def submissions_page(
    request: Request, database: Session, wanted: Select[Any], *, limit: int, before: str | None
) -> SubmissionPage:
    """One page of the submissions that `wanted` selects. Raises Refusal for a `before` that is no submission."""
    if before is not None:
        anchor = database.execute(
            select(Submission.created_at, Submission.id).where(Submission.id == before)
        ).one_or_none()
        if anchor is None:
            raise Refusal("invalid_field", "There is no such submission.", field="query.before", value=before)
        wanted = wanted.where(tuple_(Submission.created_at, Submission.id) < tuple_(*anchor))
    newest_first = wanted.order_by(Submission.created_at.desc(), Submission.id.desc()).limit(limit + 1)
    rows = database.scalars(newest_first.options(defer(Submission.source))).all()
    more = len(rows) > limit
    items = [summary(request, row) for row in rows[:limit]]
    return SubmissionPage(items=items, next=next_address(request, before=items[-1].id) if more else None)
