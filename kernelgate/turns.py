"""Whose turn it is: who has one submission waiting goes before who has five.

A submission's turn is 1, and one more for each of the same person's that waits before it, runs, or was begun while it waited:
the fifth of five keeps turn 5 as the others end. Lower turns go first, and within a turn who has waited longer. Workers claim
by this order; pages tell places and waits by it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Subquery, func, or_, select
from sqlalchemy.orm import aliased

from kernelgate.models import EventRow, Submission
from kernelgate.protocol import EventKind
from kernelgate.verdicts import State

BURST = timedelta(hours=1)
"""What somebody sent so long before is no part of what is being sent now."""


def queued_since() -> ColumnElement[datetime]:
    """When a queued submission was put into its queue: when it was made, judged again, or given back by a worker."""
    said = (
        select(func.max(EventRow.at))
        .where(
            EventRow.submission_id == Submission.id,
            EventRow.kind == EventKind.STATE,
            EventRow.data["state"].as_string() == State.QUEUED,
        )
        .correlate(Submission)
        .scalar_subquery()
    )
    return func.coalesce(said, Submission.created_at)


def turns() -> Subquery:
    """All that wait: `id`, `queue`, `turn`, `since`. Ordered by turn, since and id they are in the order of their claims."""
    other, since = aliased(Submission), queued_since()
    served = (
        select(func.count())
        .select_from(other)
        .where(
            other.user_id == Submission.user_id,
            other.id != Submission.id,
            other.queue == Submission.queue,
            other.created_at > since - BURST,
            or_(other.state == State.RUNNING, other.claimed_at > since),
        )
        .correlate(Submission)
        .scalar_subquery()
    )
    own = func.row_number().over(partition_by=(Submission.user_id, Submission.queue), order_by=(since, Submission.id))
    return (
        select(Submission.id, Submission.queue, (own + served).label("turn"), since.label("since"))
        .where(Submission.state == State.QUEUED, Submission.cancel_requested.is_(False))
        .subquery()
    )
