"""`GET /leaderboard/{stage}`, as JSON or CSV."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response

from api.boards import board_csv, whole_board
from api.dependencies import StageCatalog, StageName
from api.leaderboard import Each
from api.negotiation import JSON, preferred
from api.problems import documented
from api.schemas import Leaderboard
from api.views import base_url
from kernelgate.db import transaction

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
    each: Annotated[
        Each, Query(description="What has a place on a speedup board: each person's best, or each submission.")
    ] = Each.PERSON,
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
        page = whole_board(database, found, gpu=gpu, each=each).page(database, limit, offset)
    if offset + limit < page.total:
        page.next = f"{base_url(request)}/leaderboard/{stage}?limit={limit}&offset={offset + limit}"
        page.next += f"&each={each}" if each is not Each.PERSON else ""
        page.next += f"&gpu={gpu}" if gpu else ""
    if format == "csv" or (format is None and preferred(request.headers.get("accept", ""), (JSON, CSV)) == CSV):
        headers = {"Content-Disposition": f'attachment; filename="leaderboard-{stage}.csv"'}
        return Response(board_csv(page.rows), media_type=f"{CSV}; charset=utf-8", headers=headers)
    return page
