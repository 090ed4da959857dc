"""One's own submissions."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from api.dependencies import Reader, StageCatalog
from api.negotiation import HtmlRoute
from api.pages.environment import page
from api.problems import Refusal
from api.routes.me import my_submissions
from kernelgate.verdicts import Verdict

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
PAGE = 50


@router.get("/me/submissions")
def mine(request: Request, viewer: Reader, catalog: StageCatalog) -> Response:
    wanted = request.query_params
    found = my_submissions(
        request,
        viewer,
        limit=PAGE,
        before=wanted.get("before") or None,
        stage=(wanted.get("stage") or "")[:64] or None,
        verdict=verdict_of(wanted.get("verdict")),
        state=None,
    )
    return page(
        request,
        "mine.html",
        found=found,
        stages=catalog.stages(),
        stage=wanted.get("stage", ""),
        verdict=wanted.get("verdict", ""),
        first="before" not in wanted,
    )


def verdict_of(word: str | None) -> Verdict | None:
    """The verdict of a filter, None for "all". Raises Refusal for a word that is none."""
    if not word:
        return None
    try:
        return Verdict(word)
    except ValueError:
        accepted = ", ".join(Verdict)
        raise Refusal(
            "invalid_field", "That is no verdict.", field="query.verdict", value=word, accepted=accepted
        ) from None
