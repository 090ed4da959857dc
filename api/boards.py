"""A stage's leaderboard as it is shown: of one GPU model, whole, in pages, as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.catalog import standing
from api.csv_text import as_csv
from api.leaderboard import Each, Entry, Places, board
from api.problems import Refusal
from api.schemas import Leaderboard, LeaderboardRow
from kernelgate.models import ResultRow
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict


@dataclass(frozen=True)
class Shown:
    """A board of one GPU model, whole, with what can be chosen instead."""

    stage: Stage
    model: str | None
    models: tuple[str, ...]
    frozen_at: datetime | None
    places: Places

    def only(self, wanted: Callable[[Entry], bool]) -> Shown:
        """The same board with the places that are wanted; their ranks stay."""
        return replace(self, places=Places(tuple(filter(wanted, self.places.entries))))

    def page(self, database: Session, limit: int, offset: int) -> Leaderboard:
        return Leaderboard(
            stage=self.stage.name,
            ranking=self.stage.spec.ranking,
            gpu_model=self.model,
            gpu_models=list(self.models),
            frozen_at=self.frozen_at,
            total=len(self.places),
            rows=_rows(database, self.places.entries[offset : offset + limit]),
        )


def whole_board(database: Session, stage: Stage, *, gpu: str | None, each: Each = Each.PERSON) -> Shown:
    """Every place of a stage's board. Raises Refusal for a GPU model without entries."""
    until = standing(database, stage).frozen_at
    found = board(database, stage.name, stage.spec.ranking, each=each, until=until)
    if gpu is not None and gpu not in found.models:
        raise Refusal(
            "invalid_field",
            "There are no entries for that GPU model.",
            field="query.gpu",
            value=gpu,
            accepted=", ".join(found.models) or "no gpu parameter",
        )
    model = gpu or next(iter(found.models), None)
    return Shown(stage, model, found.models, until, found.of(model))


def _rows(database: Session, page: Sequence[Entry]) -> list[LeaderboardRow]:
    """The page's entries with their times, which only the stored result has."""
    timing = ResultRow.body["timing"]
    rows = database.execute(
        select(ResultRow.submission_id, timing["user_ms"].as_float(), timing["baseline_ms"].as_float())
        .where(ResultRow.submission_id.in_([entry.submission for entry in page if entry.speedup is not None]))
        .order_by(ResultRow.round)
    )
    times = {submission: (user_ms, baseline_ms) for submission, user_ms, baseline_ms in rows}
    return [
        LeaderboardRow(
            rank=entry.rank,
            user=entry.user,
            submission=entry.submission,
            verdict=Verdict.ACCEPTED,
            accepted_at=entry.accepted_at,
            attempts=entry.attempts,
            speedup=entry.speedup,
            speedup_low=entry.speedup_low,
            speedup_high=entry.speedup_high,
            user_ms=times.get(entry.submission, (None, None))[0],
            baseline_ms=times.get(entry.submission, (None, None))[1],
        )
        for entry in page
    ]


def board_csv(rows: Sequence[LeaderboardRow]) -> str:
    columns = list(LeaderboardRow.model_fields)
    bodies = (row.model_dump(mode="json") for row in rows)
    return as_csv(columns, ([body[name] for name in columns] for body in bodies))
