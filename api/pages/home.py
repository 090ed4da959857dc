"""The start page and the list of stages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.auth import Identity
from api.catalog import Catalog, standings
from api.dependencies import StageCatalog, Viewer
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.pages.standing import latest_accepted, now_running, reached
from api.queues import live_workers
from api.schemas import StageSummary
from api.views import stage_summary
from kernelgate.db import transaction

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)


def paths_of(identity: Identity | None, catalog: Catalog) -> dict[str, Any]:
    """Stages by path in their order, and how far the viewer is in each; those that are closed stay to be read."""
    with transaction() as database:
        stages = catalog.stages()
        states = standings(database, stages)
        progress = reached(database, identity.user_id, stages) if identity else {}
    paths: dict[str, list[StageSummary]] = {}
    for name, stage in stages.items():
        paths.setdefault(stage.spec.path, []).append(stage_summary(stage, states[name]))
    passed = [name for name, reached_there in progress.items() if reached_there.passed]
    return {"paths": paths, "progress": progress, "passed_names": passed}


@router.get("/")
def home(request: Request, viewer: Viewer, catalog: StageCatalog) -> Response:
    shown = paths_of(viewer, catalog)
    with transaction() as database:
        latest = latest_accepted(database, catalog.stages())
        now = now_running(database, viewer.user_id if viewer else None)
        workers = live_workers(database)
    able = {backend for worker in workers for backend in worker.backends}
    served = [name for name, stage in catalog.stages().items() if able.intersection(stage.spec.backends)]
    first = first_to_try(
        [stage for stages in shown["paths"].values() for stage in stages], shown["passed_names"], served
    )
    return page(request, "home.html", latest=latest, now=now, first=first, **shown)


def first_to_try(listed: list[StageSummary], passed: Collection[str], served: Collection[str]) -> StageSummary | None:
    """Where the home page sends its reader: the first stage in order not passed yet that a live worker can grade now.

    Else one that takes submissions, else one that is passed; None only where there is no stage.
    """
    wishes = [
        [stage for stage in listed if stage.open and stage.name in served and stage.name not in passed],
        [stage for stage in listed if stage.open and stage.name not in passed],
        [stage for stage in listed if stage.open],
        listed,
    ]
    return next((stages[0] for stages in wishes if stages), None)


@router.get("/stages")
def stages(request: Request, viewer: Viewer, catalog: StageCatalog) -> Response:
    return page(request, "stages.html", **paths_of(viewer, catalog))
