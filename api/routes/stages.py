"""The exercises: what they ask, and the files that go with them."""

from __future__ import annotations

import io
import zipfile

from fastapi import APIRouter, Response
from starlette.responses import PlainTextResponse

from api.catalog import standing, standings
from api.dependencies import StageCatalog, StageName
from api.problems import Refusal, documented
from api.schemas import StageSummary, StageView
from api.views import downloads, stage_summary, stage_view
from kernelgate.db import transaction
from kernelgate.public_part import public_files

router = APIRouter(prefix="/stages", tags=["stages"])
_UNKNOWN = documented("unknown_stage")


@router.get("", summary="All stages")
def list_stages(catalog: StageCatalog) -> list[StageSummary]:
    """In the order of their paths; a closed one says why it takes no submissions."""
    stages = catalog.stages()
    with transaction() as database:
        found = standings(database, stages)
    return [stage_summary(stage, found[name]) for name, stage in stages.items()]


@router.get("/{name}", summary="One stage: contract, cases, tolerances, mistakes, limits", responses=_UNKNOWN)
def get_stage(name: StageName, catalog: StageCatalog) -> StageView:
    """Everything a submitter may know. Downloads lie under `/stages/{name}/files/`."""
    stage = catalog.stage(name, field="path.name")
    with transaction() as database:
        return stage_view(stage, standing(database, stage))


@router.get(
    "/{name}/lesson",
    summary="The lesson, as Markdown",
    response_class=PlainTextResponse,
    responses={200: {"content": {"text/markdown": {"example": "# Online softmax\n"}}}, **_UNKNOWN},
)
def get_lesson(name: StageName, catalog: StageCatalog) -> Response:
    """Formulas are LaTeX between `$`. A browser gets the page instead."""
    return Response(catalog.stage(name, field="path.name").text("lesson.md"), media_type="text/markdown; charset=utf-8")


@router.get(
    "/{name}/bundle",
    summary="Download the public part of a stage",
    response_class=Response,
    responses={
        200: {
            "description": "A zip archive.",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        },
        **documented("unknown_stage"),
    },
)
def get_bundle(name: StageName, catalog: StageCatalog) -> Response:
    """Starter, provided files, lesson and figures, and what `kernelgate check` judges by: the reference, the listed and drawn
    cases, the named mistakes. No solution, no test submission, no hidden case. `kernelgate pull` unpacks it.
    """
    stage = catalog.stage(name, field="path.name")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as bundle:
        for path, body in sorted(public_files(stage).items()):
            bundle.writestr(zipfile.ZipInfo(path), body)
    headers = {"Content-Disposition": f'attachment; filename="{stage.name}.zip"'}
    return Response(packed.getvalue(), media_type="application/zip", headers=headers)


@router.get(
    "/{name}/files/{path:path}",
    summary="Download the starter or a provided file",
    response_class=PlainTextResponse,
    responses={
        200: {"content": {"text/plain": {"example": "import torch\n"}}},
        **documented("unknown_stage", "not_found"),
    },
)
def get_file(name: StageName, path: str, catalog: StageCatalog) -> Response:
    """Files of `starter/`, `provided/` and `figures/`; a stage's solution, grader and test submissions are not served."""
    stage = catalog.stage(name, field="path.name")
    served = downloads(stage)
    if path not in served:
        raise Refusal(
            "not_found",
            f"{name} has no download of that name.",
            field="path.path",
            value=path,
            accepted=", ".join(served),
        )
    if path.endswith(".svg"):
        return Response(stage.files[path], media_type="image/svg+xml", headers={"Cache-Control": "max-age=300"})
    headers = {"Content-Disposition": f'attachment; filename="{path.rsplit("/", 1)[1]}"'}
    return Response(stage.files[path], media_type="text/plain; charset=utf-8", headers=headers)
