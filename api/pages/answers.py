"""The answer to a try, on its own page and beside the editor: what happens now, then what came out and what changed by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from fastapi import Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.catalog import Catalog
from api.events import read
from api.pages.drawings import errormap, speed, weights
from api.pages.drawings.converging import drawing
from api.pages.drawings.progress import progress
from api.pages.drawings.roofline import roofline
from api.pages.onward import onward
from api.pages.text.changes import changes
from api.pages.text.faults import faults
from api.pages.text.numbers import Shown, shown
from api.queues import live_workers
from api.schemas import SubmissionView
from api.submissions import newest_result
from api.views import view
from api.waiting import expected_wait_ms
from kernelgate.evidence import element, evidence
from kernelgate.models import Submission
from kernelgate.protocol import CaseReport, Result, WrongTensor
from kernelgate.reasons import Reason
from kernelgate.stages import Case, Stage
from kernelgate.text import line
from kernelgate.verdicts import ABOUT, State, Verdict


@dataclass(frozen=True)
class CaseView:
    """A case of the grid, in the order they run."""

    index: int
    name: str
    title: str
    group: str


class Since(NamedTuple):
    """What a try changed against the one before it. fixed, broken: titles of cases that are right now, or no longer."""

    id: str
    verdict: Verdict
    fixed: list[str]
    broken: list[str]
    added: int
    removed: int


def answer(
    request: Request, database: Session, submission: Submission, viewer: Identity | None, catalog: Catalog
) -> dict[str, Any]:
    """What the templates of an answer are made of."""
    stage = catalog.stages().get(submission.stage)
    item = view(request, database, submission)
    context: dict[str, Any] = {
        "item": item,
        "owner": viewer is not None and viewer.user_id == submission.user_id,
        "stage_title": stage.spec.title if stage else item.stage,
        "stage_cases": _cases(stage, item),
        "changeable": {case.name for case in stage.runnable} if stage else set(),
        "faults": [],
        "since": None,
        "onward": None,
    }
    if not item.state.final:
        return context | _under_way(database, submission, item, stage)
    further = onward(database, submission, stage, viewer, catalog) if stage else None
    more = {"since": _since(database, submission, item), "onward": further}
    return context | _finished(item, stage, submission) | more


def _cases(stage: Stage | None, item: SubmissionView) -> list[CaseView]:
    """The cases the grid shows: those that were graded, or those of the stage as it is now."""
    known: Sequence[CaseReport | Case] = stage.spec.cases if stage else ()
    if item.run is not None:
        known = [case for case in known if case.name == item.run.case]
    if item.result is not None and item.result.cases:
        known = item.result.cases
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


def _finished(item: SubmissionView, stage: Stage | None, submission: Submission) -> dict[str, Any]:
    result = item.result
    if result is None or item.state != State.DONE:
        return {"headline": "Cancelled"}
    wrong = result.wrong
    title = next(
        (case.title for case in result.cases if wrong and case.name == wrong.case), wrong.case if wrong else ""
    )
    return {
        "headline": "This case is right" if right_run(result) else ABOUT[Verdict(result.verdict)].title,
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
        "numbers": _numbers(result),
        "evidence": evidence(result, stage.spec.evidence if stage else None),
        "gate": stage.spec.gate.speedup if stage and stage.spec.gate else None,
        "stage_hash": stage.hash if stage else None,
        **_speed(result, stage, item.gpu_model),
        "faults": faults(result, item.filename, submission.source.decode("utf-8", "replace")),
    }


def right_run(result: Result) -> bool:
    return result.reason == Reason.CASE_RIGHT


def heading(result: Result) -> str:
    """What happened, in a sentence: the reason's where it says more than the verdict does."""
    about = ABOUT[Verdict(result.verdict)]
    known = next((each for each in Reason if each.value == result.reason), None)
    if known is not Reason.CASE_RIGHT and (
        result.verdict.passes or known in (None, Reason.TOO_SLOW, Reason.WRONG_VALUE)
    ):
        return about.meaning
    return known.meaning.split(";")[0].rstrip(".") + "." if known else about.meaning


def _last_words(result: Result) -> str:
    """Where a compiler quotes the code first: the line in which it says what is wrong."""
    lines = [each.strip() for each in result.log.splitlines() if each.strip()]
    return lines[-1] if result.reason == Reason.KERNEL_ERROR and lines else ""


def _shape(result: Result, wrong: WrongTensor) -> tuple[int, ...]:
    """The shape of the wrong tensor; () when the report of its case lacks it."""
    tensors = next((case.tensors for case in result.cases if case.name == wrong.case), ())
    return next((tensor.shape for tensor in tensors if tensor.name == wrong.tensor), ())


def _numbers(result: Result) -> Shown | None:
    values = result.values
    if values is None:
        return None
    title = next((case.title for case in result.cases if case.name == values.case), values.case)
    return shown(values, title, result.wrong)


def _speed(result: Result, stage: Stage | None, gpu: str | None) -> dict[str, Any]:
    if result.timing is None:
        return {}
    return {
        "ladder": speed.ladder(result.timing, speed.calibration_of(stage, gpu)),
        "roofline": roofline(result.timing),
        "strips": speed.strips(result.timing),
        "facts": speed.facts(result.timing),
    }


def _since(database: Session, submission: Submission, item: SubmissionView) -> Since | None:
    """Against the newest finished try of the same person and stage before this one; of a run, the run of the same case."""
    if item.result is None:
        return None
    same = Submission.trial.is_(None)
    if item.run is not None:
        same = Submission.trial["case"].as_string() == item.run.case
    earlier = database.scalars(
        select(Submission)
        .where(
            Submission.user_id == submission.user_id,
            Submission.stage == submission.stage,
            Submission.state == State.DONE,
            Submission.created_at < submission.created_at,
            same,
        )
        .order_by(Submission.created_at.desc())
        .limit(1)
    ).one_or_none()
    row = newest_result(database, earlier.id) if earlier is not None else None
    if earlier is None or row is None:
        return None
    before = Result.model_validate(row.body)
    return _difference(earlier, before, submission, item.result)


def _difference(earlier: Submission, before: Result, later: Submission, after: Result) -> Since:
    was = {case.name: case.state for case in before.cases}
    is_now = {case.name: case for case in after.cases}
    changed = [
        case for name, case in is_now.items() if name in was and (was[name] == "right") != (case.state == "right")
    ]
    signs = [each.sign for each in changes(*(each.source.decode("utf-8", "replace") for each in (earlier, later)))]
    return Since(
        earlier.id,
        before.verdict,
        [line(case.title, 120) for case in changed if case.state == "right"],
        [line(case.title, 120) for case in changed if case.state in ("wrong", "failed")],
        signs.count("+"),
        signs.count("-"),
    )
