"""How submissions ended, in a few words: what lists say of them besides their verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import cast, func, select
from sqlalchemy.dialects.postgresql import JSONPATH
from sqlalchemy.orm import Session

from kernelgate.models import ResultRow, Submission
from kernelgate.text import line


class Outcome(NamedTuple):
    """What a list of submissions says of one besides its verdict: the named mistake, and how many cases were right of those
    that ran, and of all."""

    mistake: str | None
    right: int
    ran: int
    cases: int


def outcomes(database: Session, submissions: Iterable[str]) -> dict[str, Outcome]:
    """By submission, of its newest judging."""
    body = ResultRow.body
    paths = ('$.cases[*] ? (@.state == "right")', '$.cases[*] ? (@.state != "not_run")', "$.cases[*]")
    states = [func.jsonb_path_query_array(body, cast(path, JSONPATH)) for path in paths]
    rows = database.execute(
        select(
            Submission.id,
            body["mistake"]["title"].as_string(),
            *(func.jsonb_array_length(each) for each in states),
        )
        .join(ResultRow, (ResultRow.submission_id == Submission.id) & (ResultRow.round == Submission.round))
        .where(Submission.id.in_([*submissions]))
    )
    return {row[0]: Outcome(row[1] and line(row[1], 160), *row[2:]) for row in rows}
