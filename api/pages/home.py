"""The start page and the list of stages."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.auth import Identity
from api.catalog import Catalog, standings
from api.dependencies import StageCatalog, Viewer
from api.negotiation import HtmlRoute
from api.pages.environment import page
from api.pages.standing import latest_accepted, now_running, reached
from api.schemas import StageSummary
from api.views import stage_summary
from kernelgate.db import transaction

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


def paths_of(identity: Identity | None, catalog: Catalog) -> dict[str, Any]:
    """Stages by path in their order, and how far the viewer is in each; stages that an admin closed are left out."""
    with transaction() as database:
        stages = catalog.stages()
        states = standings(database, stages)
        progress = reached(database, identity.user_id) if identity else {}
    paths: dict[str, list[StageSummary]] = {}
    for name, stage in stages.items():
        if states[name].enabled:
            paths.setdefault(stage.spec.path, []).append(stage_summary(stage, states[name]))
    passed = [name for name, reached_there in progress.items() if reached_there.passed]
    return {"paths": paths, "progress": progress, "passed_names": passed}


@router.get("/")
def home(request: Request, viewer: Viewer, catalog: StageCatalog) -> Response:
    shown = paths_of(viewer, catalog)
    with transaction() as database:
        latest = latest_accepted(database, catalog.stages())
        now = now_running(database, viewer.user_id if viewer else None)
    listed = [stage for stages in shown["paths"].values() for stage in stages]
    ahead = [stage for stage in listed if stage.name not in shown["passed_names"]]
    return page(request, "home.html", latest=latest, now=now, first=(ahead or listed or [None])[0], **shown)


@router.get("/stages")
def stages(request: Request, viewer: Viewer, catalog: StageCatalog) -> Response:
    return page(request, "stages.html", **paths_of(viewer, catalog))
