"""A stage: its lesson, what is judged, and the place to write and send a submission."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from api.auth import Identity
from api.boards import whole_board
from api.body import Upload, read_form
from api.catalog import Catalog, standing
from api.dependencies import Bell, Reader, StageCatalog, StageName, Submitter, Viewer
from api.negotiation import HtmlRoute
from api.pages.answers import answer
from api.pages.onward import may_read_solution
from api.pages.site.environment import origin, page, wait_words
from api.pages.standing import own_submissions, reached
from api.pages.text.highlighting import highlight, numbered
from api.pages.text.lesson import render_lesson
from api.pages.text.provided_names import provided_names
from api.problems import Refusal
from api.sent import Sent
from api.source import size_limit
from api.submissions import create, find
from api.submitted import read_submission
from api.views import stage_view
from kernelgate.course import builds_on, leads_to
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.stages import Ranking, Stage

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
ANSWER_LIMIT = 100
OTHERS = 20
_NUMBER = re.compile(r"[+-]?(\d{1,20}/0*[1-9]\d{0,18}|\d{1,20}(\.\d{0,20})?|\.\d{1,20})")


@router.get("/stages/{stage}")
def stage_page(request: Request, stage: StageName, viewer: Viewer, catalog: StageCatalog) -> Response:
    found = catalog.stage(stage)
    earlier, beside = request.query_params.get("from"), request.query_params.get("answer")
    loaded = _loaded(request, earlier or beside or "", viewer, catalog) if earlier or beside else None
    if loaded is not None and not earlier:
        loaded = loaded._replace(source=None)
    return _show(request, found, viewer, catalog, loaded=loaded)


@router.get("/stages/{stage}/solution")
def solution_page(request: Request, stage: StageName, viewer: Reader, catalog: StageCatalog) -> Response:
    """The solution that ships with a stage, for whoever has passed it, where the stage shows sources to solvers."""
    found = catalog.stage(stage)
    with transaction() as database:
        if not (viewer.reads_all or may_read_solution(database, found, viewer)):
            raise Refusal(
                "missing_role", "The solution is shown to those who have passed the stage, where the stage allows."
            )
        entries = whole_board(database, found, gpu=None).places.entries
    others = [entry for entry in entries if entry.user != viewer.handle][:OTHERS]
    lines = numbered(found.text(f"solution/{found.spec.file}").encode(), found.spec.language)
    timed = found.spec.ranking is Ranking.SPEEDUP
    return page(request, "solution.html", stage=found, lines=lines, others=others, timed=timed)


class Loaded(NamedTuple):
    """What to go on with: a source, and the answer to it, which stands beside the editor.

    source: None where the draft or the starter is to be edited.
    """

    source: str | None
    answer: dict[str, Any] | None = None


def _loaded(request: Request, submission_id: str, viewer: Identity | None, catalog: Catalog) -> Loaded:
    with transaction() as database:
        submission = find(database, submission_id[:64], viewer, catalog)
        context = answer(request, database, submission, viewer, catalog)
        return Loaded(submission.source.decode("utf-8", "replace"), context)


def _show(
    request: Request,
    stage: Stage,
    viewer: Identity | None,
    catalog: Catalog,
    *,
    loaded: Loaded | None = None,
    problem: Refusal | None = None,
    answered: dict[int, bool] | None = None,
    given: str = "",
) -> Response:
    with transaction() as database:
        view = stage_view(stage, standing(database, stage))
        mine = reached(database, viewer.user_id, {stage.name: stage}).get(stage.name) if viewer else None
        earlier = own_submissions(database, viewer.user_id, stage.name) if viewer else []
    beside, others = loaded.answer if loaded else None, catalog.stages()
    context: dict[str, Any] = {
        **(beside or {}),
        "stage": view,
        "lesson": render_lesson(stage.name, stage.text("lesson.md")),
        "builds_on": builds_on(stage, others),
        "leads_to": leads_to(stage, others),
        "signature": highlight(stage.spec.seam.signature, stage.spec.language),
        "done_when": stage.spec.done_when,
        "downloads": [name for name in view.files if not name.startswith("figures/")],
        "starter": stage.starter,
        "names": provided_names(stage.provided),
        "source": stage.starter if loaded is None or loaded.source is None else loaded.source,
        "loaded": loaded is not None and loaded.source is not None,
        "answer": beside is not None,
        "runnable": stage.runnable,
        "earlier": earlier,
        "limit": size_limit(stage),
        "mine": mine,
        "curl": curl_line(origin(request), stage),
        "problem": problem.document() if problem else None,
        "wait": wait_words(problem) if problem else "",
        "answered": answered or {},
        "given": given,
    }
    return page(request, "stage.html", status=problem.kind.status if problem else 200, **context)


def curl_line(address: str, stage: Stage) -> str:
    """One line that submits from a terminal and prints the evidence."""
    return (
        f"curl -sS -H 'Authorization: Bearer '$KERNELGATE_TOKEN -H 'Accept: text/plain' "
        f"-F stage={stage.name} -F file=@{stage.spec.file} -F wait=60 {address}/submit"
    )


@router.post("/submit")
async def submit(request: Request, viewer: Submitter, catalog: StageCatalog, bell: Bell) -> Response:
    """A browser's form. What is refused comes back with the text still there."""
    fields = await read_form(request)
    stage = catalog.stage(str(fields.get("stage", ""))[:64], field="stage")
    try:
        sent, _ = await read_submission(request, "web")
        submission = await run_in_threadpool(_store, viewer, sent, catalog)
    except Refusal as refusal:
        upload, text = fields.get("file"), fields.get("source")
        chosen = isinstance(upload, Upload) and bool(upload.filename)
        kept = text if isinstance(text, str) and not chosen else None
        return await run_in_threadpool(_refused, request, stage, viewer, catalog, kept, refusal)
    bell.ring(submission.id, submission.queue)
    return RedirectResponse(f"/submissions/{submission.id}", 303)


def _store(viewer: Identity, sent: Sent, catalog: Catalog) -> Submission:
    with transaction() as database:
        return create(database, viewer, sent, catalog)[0]


def _refused(
    request: Request, stage: Stage, viewer: Identity, catalog: Catalog, source: str | None, refusal: Refusal
) -> Response:
    kept = Loaded(source) if source is not None else None
    response = _show(request, stage, viewer, catalog, loaded=kept, problem=refusal)
    response.headers.update(refusal.headers)
    return response


@router.post("/stages/{stage}/answers/{index}")
async def check_answer(
    request: Request, stage: StageName, index: int, viewer: Viewer, catalog: StageCatalog
) -> Response:
    """Checks a value of the "done when" list; nothing is stored, so anyone may try."""
    found = catalog.stage(stage)
    fields = await read_form(request)
    given = str(fields.get("answer", ""))[:ANSWER_LIMIT]
    items = found.spec.done_when
    if not 0 <= index < len(items) or items[index].answer is None:
        raise Refusal("not_found", f"Item {index} of this stage's list has no answer to check.")
    right = same_answer(given, items[index].answer or "")
    return await run_in_threadpool(_answered, request, found, viewer, catalog, {index: right}, given)


def _answered(
    request: Request, stage: Stage, viewer: Identity | None, catalog: Catalog, answered: dict[int, bool], given: str
) -> Response:
    return _show(request, stage, viewer, catalog, answered=answered, given=given)


def same_answer(given: str, wanted: str) -> bool:
    """Numbers and fractions are equal within 0.1 %; anything else when its letters and digits agree."""
    value, goal = _value(given), _value(wanted)
    if value is None or goal is None:
        return bool(_letters(given)) and _letters(given) == _letters(wanted)
    return abs(value - goal) <= abs(goal) / 1000


def _value(text: str) -> Fraction | None:
    """`5`, `1.5`, `1,5` or `4/3`; None for what is no number. Bounded before it is parsed: exponents make huge integers."""
    compact = text.strip().replace(",", ".").replace(" ", "")
    return Fraction(compact) if _NUMBER.fullmatch(compact) else None


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
