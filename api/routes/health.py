"""For machines that watch: alive, ready, measured."""

from __future__ import annotations

from typing import cast

from fastapi import APIRouter, Request, Response
from starlette.responses import PlainTextResponse

from api.dependencies import StageCatalog
from api.metrics import CONTENT_TYPE, Metrics
from api.readiness import readiness
from api.schemas import Readiness

router = APIRouter(tags=["health"])


@router.get("/livez", summary="Whether the process answers", response_class=PlainTextResponse)
async def livez() -> str:
    """Answers `alive` without asking anything else; a process that does not is to be restarted."""
    return "alive\n"


@router.get(
    "/readyz",
    summary="Whether a submission would be graded",
    responses={503: {"model": Readiness, "description": "Not ready; `problems` says why."}},
)
def readyz(response: Response, catalog: StageCatalog) -> Readiness:
    """Database, migrations, broker, live workers by queue, the oldest queued submission and the stages that are open."""
    answer = readiness(catalog)
    response.status_code = 200 if answer.ready else 503
    return answer


@router.get(
    "/metrics",
    summary="Measurements for Prometheus",
    response_class=PlainTextResponse,
    responses={
        200: {"content": {"text/plain": {"example": 'kernelgate_queue_depth{queue="cpu",state="queued"} 0.0\n'}}}
    },
)
def metrics(request: Request) -> Response:
    """Queue depth and age, verdicts, durations and workers from Postgres; requests and streams of this process."""
    return Response(cast(Metrics, request.app.state.metrics).exposition(), media_type=CONTENT_TYPE)
