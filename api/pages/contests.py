"""A contest's board, in its course for those who are in it and under /contests as everybody sees it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.courses.contest import contest_view, public_course
from api.courses.seats import Right, seat
from api.dependencies import CourseName, Reader, StageCatalog, Viewer
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.problems import Refusal
from kernelgate.db import transaction

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
_AT_ONCE = 200


@router.get("/courses/{course}/contest")
def contest_page(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    with transaction() as database:
        by = seat(database, viewer, course)
        try:
            found = contest_view(database, by.course, catalog.with_drafts(), by=by, whole=by.staff)
        except Refusal:
            if by.right < Right.INSTRUCTOR:
                raise
            found = None
    return page(request, "course_contest.html", seat=by, course=by.course, contest=found, shown=_rows(request))


@router.get("/contests/{course}")
def board_page(request: Request, viewer: Viewer, course: CourseName, catalog: StageCatalog) -> Response:
    with transaction() as database:
        of, by = public_course(database, viewer, course)
        found = contest_view(database, of, catalog.with_drafts(), by=by)
    return page(request, "contest.html", seat=by, course=of, contest=found, shown=_rows(request))


def _rows(request: Request) -> int | None:
    """How many a board shows; None: all."""
    return None if "all" in request.query_params else _AT_ONCE
