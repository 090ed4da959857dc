"""One's own submissions: the list, speedups over time, any two compared, and all of them as a file."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from api.dependencies import Reader, StageCatalog
from api.negotiation import HtmlRoute
from api.outcomes import outcomes
from api.pages.archive import archive
from api.pages.drawings.history import histories
from api.pages.site.environment import page
from api.paging import filtered, submissions_page
from api.problems import Refusal
from api.submissions import find
from kernelgate.db import transaction
from kernelgate.verdicts import Verdict

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
files = APIRouter(include_in_schema=False)
PAGE = 50


@router.get("/me/submissions")
def mine(request: Request, viewer: Reader, catalog: StageCatalog) -> Response:
    asked = request.query_params
    stage, first = asked.get("stage", "")[:64], "before" not in asked
    wanted = filtered(viewer.user_id, stage=stage or None, verdict=verdict_of(asked.get("verdict")))
    with transaction() as database:
        found = submissions_page(request, database, wanted, limit=PAGE, before=asked.get("before") or None)
        notes = outcomes(database, [item.id for item in found.items])
        shown = histories(database, viewer.user_id, catalog.stages(), stage) if first else []
    return page(
        request,
        "mine.html",
        histories=shown,
        outcomes=notes,
        chosen=chosen if (chosen := asked.get("chosen", "")).isdecimal() else "",
        found=found,
        stages=catalog.stages(),
        stage=stage,
        verdict=asked.get("verdict", ""),
        first=first,
    )


@router.get("/me/compare")
def compare(request: Request, viewer: Reader, catalog: StageCatalog) -> Response:
    """The two chosen submissions, the later one against the earlier. Raises Refusal unless they are two of one stage."""
    chosen = request.query_params.getlist("pick")[:10]
    if len(set(chosen)) != 2:
        return RedirectResponse(f"/me/submissions?chosen={len(set(chosen))}", 303)
    with transaction() as database:
        earlier, later = sorted(
            (find(database, each[:64], viewer, catalog) for each in chosen), key=lambda s: s.created_at
        )
        if earlier.stage != later.stage:
            detail = f"One was submitted to {earlier.stage}, the other to {later.stage}."
            raise Refusal("invalid_field", detail, field="query.pick", accepted="two submissions of one stage")
        return RedirectResponse(f"/submissions/{later.id}/source?against={earlier.id}", 303)


@files.get("/me/submissions.zip")
def download_all(viewer: Reader) -> Response:
    with transaction() as database:
        pieces = archive(database, viewer.user_id)
    headers = {"Content-Disposition": f'attachment; filename="kernelgate-{viewer.handle}.zip"'}
    return StreamingResponse(pieces, media_type="application/zip", headers=headers)


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
