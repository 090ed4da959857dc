"""A submission: live while it is graded, then its verdict with everything that explains it; and its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.auth import Identity
from api.catalog import Catalog
from api.csv_text import as_csv
from api.dependencies import StageCatalog, SubmissionId, Viewer
from api.events import read
from api.negotiation import HtmlRoute
from api.pages.drawings import errormap, speed, weights
from api.pages.drawings.converging import drawing
from api.pages.drawings.progress import progress
from api.pages.drawings.roofline import roofline
from api.pages.site.environment import page
from api.pages.text.faults import faults
from api.problems import Refusal
from api.queues import live_workers
from api.schemas import SubmissionView
from api.submissions import find, newest_result
from api.views import view
from api.waiting import expected_wait_ms
from kernelgate.db import transaction
from kernelgate.evidence import element, evidence
from kernelgate.models import Submission
from kernelgate.protocol import CaseReport, Result, WrongTensor
from kernelgate.reasons import Reason
from kernelgate.stages import Case, Stage
from kernelgate.text import line
from kernelgate.verdicts import ABOUT, Verdict

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
files = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class CaseView:
    """A case of the grid, in the order they run."""

    index: int
    name: str
    title: str
    group: str


@router.get("/submissions/{id}")
def submission_page(request: Request, id: SubmissionId, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    with transaction() as database:
        submission = find(database, id, viewer, catalog)
        stage = catalog.stages().get(submission.stage)
        item = view(request, database, submission)
        context: dict[str, Any] = {
            "item": item,
            "owner": viewer is not None and viewer.user_id == submission.user_id,
            "stage_title": stage.spec.title if stage else item.stage,
            "stage_cases": _cases(stage, item.result),
            "no_script_refresh": True,
            "faults": [],
        }
        if item.state.final:
            context |= _finished(item, stage)
        else:
            context |= _under_way(database, submission, item, stage)
    return page(request, "submission.html", **context)


def _cases(stage: Stage | None, result: Result | None) -> list[CaseView]:
    """The cases the grid shows: those that were graded, or those of the stage as it is now."""
    known: Sequence[CaseReport | Case] = stage.spec.cases if stage else ()
    if result is not None and result.cases:
        known = result.cases
    return [CaseView(i, line(c.name, 63), line(c.title, 160), line(c.group, 40)) for i, c in enumerate(known)]


def _under_way(database: Session, submission: Submission, item: SubmissionView, stage: Stage | None) -> dict[str, Any]:
    workers = [worker for worker in live_workers(database) if item.queue in worker.queues]
    so_far = progress(read(item.id, 0).events, stage.spec.backends if stage else ())
    gate = stage.spec.gate.speedup if stage and stage.spec.gate else None
    return {
        "headline": item.state.title(),
        "progress": so_far,
        "converging": drawing(so_far.looks, gate),
        "workers": len(workers),
        "expected_wait": expected_wait_ms(database, submission) if item.queue_position else None,
    }


def _finished(item: SubmissionView, stage: Stage | None) -> dict[str, Any]:
    result = item.result
    if result is None or item.state != "done":
        return {"headline": "Cancelled"}
    wrong = result.wrong
    title = next(
        (case.title for case in result.cases if wrong and case.name == wrong.case), wrong.case if wrong else ""
    )
    return {
        "headline": ABOUT[Verdict(result.verdict)].title,
        "heading": heading(result),
        "last_words": _last_words(result),
        "case_states": {case.name: case.state for case in result.cases},
        "cases_right": sum(case.state == "right" for case in result.cases) if result.cases else None,
        "cases_ran": sum(case.state != "not_run" for case in result.cases),
        "wrong_case": title,
        "element": element(wrong) if wrong else "",
        "map_summary": errormap.summary(wrong.map, _shape(result, wrong)) if wrong and wrong.map else None,
        "picture": errormap.picture(wrong.map) if wrong and wrong.map else None,
        "weight_maps": weights.maps(result.recovered) if result.recovered else None,
        "evidence": evidence(result, stage.spec.evidence if stage else None),
        "gate": stage.spec.gate.speedup if stage and stage.spec.gate else None,
        "stage_hash": stage.hash if stage else None,
        **_speed(result, stage, item.gpu_model),
        "faults": faults(result, item.filename),
    }


def heading(result: Result) -> str:
    """What happened, in a sentence: the reason's where it says more than the verdict does."""
    about = ABOUT[Verdict(result.verdict)]
    known = next((each for each in Reason if each.value == result.reason), None)
    if result.verdict.passes or known in (None, Reason.TOO_SLOW, Reason.WRONG_VALUE):
        return about.meaning
    return known.meaning.split(";")[0].rstrip(".") + "."


def _last_words(result: Result) -> str:
    """Where a compiler quotes the code first: the line in which it says what is wrong."""
    lines = [each.strip() for each in result.log.splitlines() if each.strip()]
    return lines[-1] if result.reason == Reason.KERNEL_ERROR and lines else ""


def _shape(result: Result, wrong: WrongTensor) -> tuple[int, ...]:
    """The shape of the wrong tensor; () when the report of its case lacks it."""
    tensors = next((case.tensors for case in result.cases if case.name == wrong.case), ())
    return next((tensor.shape for tensor in tensors if tensor.name == wrong.tensor), ())


def _speed(result: Result, stage: Stage | None, gpu: str | None) -> dict[str, Any]:
    if result.timing is None:
        return {}
    return {
        "ladder": speed.ladder(result.timing, speed.calibration_of(stage, gpu)),
        "roofline": roofline(result.timing),
        "strips": speed.strips(result.timing),
        "facts": speed.facts(result.timing),
    }


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
