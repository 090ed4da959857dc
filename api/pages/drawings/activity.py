"""The days on which somebody submitted something, as squares: a column a week, the newest at the right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

WEEKS = 26
_STEPS = (1, 3, 6, 12)


class Day(NamedTuple):
    """x, y: the square's place, in squares. depth: 0 to 4."""

    x: int
    y: int
    day: date
    submissions: int
    depth: int


class Activity(NamedTuple):
    """days: of the last WEEKS weeks. total: submissions in them. active: days with any."""

    days: list[Day]
    weeks: int
    total: int
    active: int


def activity(moments: Sequence[datetime], today: date | None = None) -> Activity:
    last = today or datetime.now(UTC).date()
    first = last - timedelta(days=last.weekday(), weeks=WEEKS - 1)
    counts = Counter(moment.astimezone(UTC).date() for moment in moments)
    days = []
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        count = counts[day]
        days.append(Day(number // 7, number % 7, day, count, sum(count >= step for step in _STEPS)))
    return Activity(days, WEEKS, sum(day.submissions for day in days), sum(day.submissions > 0 for day in days))
