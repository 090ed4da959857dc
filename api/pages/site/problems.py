"""A refusal as a page, in words; what the exception handler of the application calls for browsers."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from fastapi import Request
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from api.auth import identify
from api.pages.site.environment import page, wait_words
from api.problems import Refusal

log = logging.getLogger(__name__)


def problem_page(request: Request, refusal: Refusal) -> Response:
    """The page for `refusal`, under its own status. Works without a database: then the header knows nobody."""
    if not hasattr(request.state, "identity"):
        request.state.identity = _viewer(request) if refusal.kind.status < 500 else None
    return page(
        request,
        "problem.html",
        status=refusal.kind.status,
        problem=refusal.document(),
        wait=wait_words(refusal),
        back=_back(request),
    )


def _viewer(request: Request) -> object:
    try:
        return identify(request)
    except (Refusal, SQLAlchemyError):
        return None


def _back(request: Request) -> str:
    """The page of this service that the viewer came from, "" when it is this one or another site's."""
    came = urlsplit(request.headers.get("referer", ""))
    if came.netloc != request.headers.get("host") or came.path == request.url.path:
        return ""
    return came.path + (f"?{came.query}" if came.query else "")
