"""`GET /leaderboard/{stage}`, as JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.catalog import standing
from api.dependencies import StageCatalog, StageName
from api.leaderboard import Entry, entries, gpu_models
from api.negotiation import JSON, preferred
from api.problems import Refusal, documented
from api.schemas import Leaderboard, LeaderboardRow
from api.views import base_url
from kernelgate.db import transaction
from kernelgate.models import ResultRow
from kernelgate.stages import Ranking, Stage
from kernelgate.verdicts import Verdict

router = APIRouter(tags=["stages"])
CSV = "text/csv"


@router.get(
    "/leaderboard/{stage}",
    summary="Who stands where",
    response_model=Leaderboard,
    responses={
        200: {
            "model": Leaderboard,
            "description": "JSON, or CSV with `Accept: text/csv` or `?format=csv`.",
            "content": {CSV: {"example": "rank,user,submission,…\n1,ada,9f2c4e61a07b3d58,…\n"}},
        },
        **documented("unknown_stage", "invalid_field"),
    },
)
def get_leaderboard(
    request: Request,
    stage: StageName,
    catalog: StageCatalog,
    gpu: Annotated[
        str | None, Query(max_length=100, description="A speedup board's GPU model; default: the most used.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Rows of a page.")] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Rows to skip.")] = 0,
    format: Annotated[Literal["json", "csv"] | None, Query(description="Instead of an Accept header.")] = None,  # noqa: A002
) -> Any:
    """One row for each account that was accepted.

    `first_accepted` boards rank by when the first accepted submission was made. `speedup` boards rank the best of each account
    on one GPU model; results whose intervals overlap share a rank, and the earlier stands first.
    """
    found = catalog.stage(stage)
    with transaction() as database:
        board = read_board(database, found, gpu=gpu, limit=limit, offset=offset)
    if offset + limit < board.total:
        board.next = f"{base_url(request)}/leaderboard/{stage}?limit={limit}&offset={offset + limit}"
        board.next += f"&gpu={gpu}" if gpu else ""
    if format == "csv" or (format is None and preferred(request.headers.get("accept", ""), (JSON, CSV)) == CSV):
        headers = {"Content-Disposition": f'attachment; filename="leaderboard-{stage}.csv"'}
        return Response(as_csv(board.rows), media_type=f"{CSV}; charset=utf-8", headers=headers)
    return board


def read_board(database: Session, stage: Stage, *, gpu: str | None, limit: int, offset: int) -> Leaderboard:
    """One page of a board. Raises Refusal for a GPU model without entries."""
    ranking, until = stage.spec.ranking, standing(database, stage).frozen_at
    models = gpu_models(database, stage.name, until) if ranking is Ranking.SPEEDUP else []
    if gpu is not None and gpu not in models:
        raise Refusal(
            "invalid_field",
            "There are no entries for that GPU model.",
            field="query.gpu",
            value=gpu,
            accepted=", ".join(models) or "no gpu parameter",
        )
    model = gpu or next(iter(models), None)
    found = entries(database, stage.name, ranking, gpu=model, until=until)
    page = found[offset : offset + limit]
    return Leaderboard(
        stage=stage.name,
        ranking=ranking,
        gpu_model=model,
        gpu_models=models,
        frozen_at=until,
        total=len(found),
        rows=_rows(database, page),
    )


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


def as_csv(rows: Sequence[LeaderboardRow]) -> str:
    columns = list(LeaderboardRow.model_fields)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in rows:
        body = row.model_dump(mode="json")
        writer.writerow(["" if body[name] is None else body[name] for name in columns])
    return text.getvalue()
