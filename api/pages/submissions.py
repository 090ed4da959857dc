"""A submission: live while it is graded, then its verdict with everything that explains it; and its source."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.auth import Identity
from api.catalog import Catalog
from api.csv_text import as_csv
from api.dependencies import StageCatalog, SubmissionId, Viewer
from api.negotiation import HtmlRoute
from api.pages.answers import answer
from api.pages.drawings import errormap
from api.pages.site.environment import page
from api.problems import Refusal
from api.submissions import find, newest_result
from kernelgate.db import transaction
from kernelgate.protocol import Result

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
files = APIRouter(include_in_schema=False)


@router.get("/submissions/{id}")
def submission_page(request: Request, id: SubmissionId, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    return _page(request, "submission.html", id, viewer, catalog)


@router.get("/submissions/{id}/answer")
def answer_part(request: Request, id: SubmissionId, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    """What stands beside the editor: a part of a page, which the script of a stage's page puts there."""
    return _page(request, "answer.html", id, viewer, catalog)


def _page(request: Request, template: str, submission_id: str, viewer: Identity | None, catalog: Catalog) -> Response:
    with transaction() as database:
        submission = find(database, submission_id, viewer, catalog)
        context = answer(request, database, submission, viewer, catalog)
    return page(request, template, no_script_refresh=True, **context)


@files.get("/submissions/{id}/error-map.png")
def error_map(id: SubmissionId, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    result = _result(id, viewer, catalog)
    if result.wrong is None or result.wrong.map is None:
        raise Refusal("not_found", "This submission has no error map.")
    body = errormap.png(result.wrong.map)
    return Response(body, media_type="image/png", headers={"Cache-Control": "private, max-age=60"})


@files.get("/submissions/{id}/tables/{number}.csv")
def table(id: SubmissionId, number: int, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    """A result table as CSV (RFC 4180). A cell that a spreadsheet would run as a formula is written as text."""
    tables = _result(id, viewer, catalog).tables
    if not 0 <= number < len(tables):
        raise Refusal("not_found", f"This submission has {len(tables)} tables, counted from 0.")
    body = as_csv(tables[number].columns, tables[number].rows)
    headers = {"Content-Disposition": f'attachment; filename="{id}-{number}.csv"'}
    return Response(body, media_type="text/csv; charset=utf-8", headers=headers)


def _result(submission_id: str, viewer: Identity | None, catalog: Catalog) -> Result:
    with transaction() as database:
        submission = find(database, submission_id, viewer, catalog)
        row = newest_result(database, submission.id)
    if row is None:
        raise Refusal("not_final", "The submission has no result yet.")
    return Result.model_validate(row.body)
