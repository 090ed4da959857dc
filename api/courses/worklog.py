"""The work log of one person in a course, as Markdown: every attempt in every stage, what came of it, and what counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy.orm import Session

from api.courses.schedule import stages_of
from api.courses.schemas import Timeline
from api.courses.seats import Seat
from api.courses.timeline import person_in, timelines
from kernelgate.stages import Stage
from kernelgate.verdicts import ABOUT


def worklog(database: Session, by: Seat, handle: str, stages: Mapping[str, Stage]) -> list[Timeline]:
    """Of every stage of the course, in its order. Raises Refusal for somebody whose work the caller may not see."""
    member = person_in(database, by, handle)
    return timelines(database, by, member, stages_of(database, by.course), stages)


def markdown(title: str, person: str, log: Sequence[Timeline], stages: Mapping[str, Stage]) -> str:
    return "\n".join(_lines(title, person, log, stages)) + "\n"


def _lines(title: str, person: str, log: Sequence[Timeline], stages: Mapping[str, Stage]) -> Iterator[str]:
    yield f"# {_plain(title)}: {_plain(person)}"
    yield ""
    yield f"{sum(len(each.attempts) for each in log)} attempts, {sum(each.cell.points for each in log):g} points."
    for each in log:
        yield ""
        yield f"## {_plain(stages[each.stage].spec.title if each.stage in stages else each.stage)}"
        yield ""
        due = f", due {each.due_at:%Y-%m-%d %H:%M} UTC" if each.due_at else ""
        by_hand = f"; by hand: {_plain(each.cell.override)}" if each.cell.override is not None else ""
        yield f"{each.cell.points:g} points{due}{by_hand}."
        if each.attempts:
            yield ""
            yield from _table(each)


def _table(each: Timeline) -> Iterator[str]:
    yield "| when (UTC) | verdict | speedup | cases right | lines | mistake | submission |"
    yield "|---|---|---:|---:|---:|---|---|"
    for attempt in each.attempts:
        verdict = ABOUT[attempt.verdict].title if attempt.verdict else "waits"
        cells = [
            f"{attempt.at:%Y-%m-%d %H:%M}",
            verdict + (f", {attempt.days_late} d late" if attempt.days_late else ""),
            f"{attempt.speedup:.3f}×" if attempt.speedup else "",
            f"{attempt.right} of {attempt.ran}" if attempt.ran else "",
            f"+{attempt.added} −{attempt.removed}",
            _plain(attempt.mistake or ""),
            attempt.id + (", counts" if attempt.id == each.cell.counts else ""),
        ]
        yield f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """Text that is nothing else in Markdown: no markup, no link, no cell's end."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~-])", r"\\\1", " ".join(text.split()))
