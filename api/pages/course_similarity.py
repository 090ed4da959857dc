"""Which submissions of a course's stage are alike, and two of them side by side with what they have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from markupsafe import Markup
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.auth import Identity
from api.catalog import Catalog
from api.courses.alike import lines_alike, pairs
from api.courses.schedule import stage_of
from api.courses.seats import Right, seat
from api.dependencies import CourseName, Reader, StageCatalog, StageName
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.pages.text.highlighting import numbered
from api.submissions import find
from kernelgate.db import transaction
from kernelgate.models import Submission

router = APIRouter(prefix="/courses", route_class=HtmlRoute, include_in_schema=False)


class Listing(NamedTuple):
    """A file with the lines that the other one has as well."""

    item: Submission
    lines: list[Markup]
    alike: set[int]


@router.get("/{course}/stages/{stage}/similarity")
def similarity(
    request: Request, viewer: Reader, course: CourseName, stage: StageName, catalog: StageCatalog
) -> Response:
    """The pairs; with `?one=…&other=…` those two side by side."""
    asked, stages = request.query_params, catalog.with_drafts()
    both = [asked.get(name, "")[:64] for name in ("one", "other")]
    with transaction() as database:
        by = seat(database, viewer, course, Right.STAFF)
        stage_of(database, by.course, stage)
        found = catalog.stage(stage, drafts=True)
        shown: dict[str, Any] = {}
        if all(both):
            alike = lines_alike(database, by, found, stages, *both)
            listings = zip(both, alike, strict=True)
            shown["sides"] = [
                _side(database, name, viewer, catalog, lines, found.spec.language) for name, lines in listings
            ]
        else:
            shown["pairs"] = pairs(database, by, found, stages)
    template = "course_side_by_side.html" if "sides" in shown else "course_similarity.html"
    return page(request, template, seat=by, course=by.course, stage=found, **shown)


def _side(database: Session, name: str, viewer: Identity, catalog: Catalog, lines: set[int], language: str) -> Listing:
    item = find(database, name, viewer, catalog)
    return Listing(item, list(numbered(item.source, language)), lines)
