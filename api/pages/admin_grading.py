"""For administrators: the queue and its workers, the stages with what the class gets wrong, judging again."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from fastapi import APIRouter, Request
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.administration import admin_stages, all_stages, rejudge_stage
from api.dependencies import Admin, StageCatalog, StageName
from api.held import held_count, held_submissions
from api.negotiation import HtmlRoute
from api.overview import queue_overview
from api.pages.drawings import speed
from api.pages.drawings.gpus import gpus
from api.pages.mine import PAGE, verdict_of
from api.pages.site.environment import page
from api.paging import Apart, of_everybody, submissions_page
from api.schemas import SubmissionView
from api.views import view
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict

router = APIRouter(prefix="/admin", route_class=HtmlRoute, include_in_schema=False)


class Count(NamedTuple):
    """How often something happened, and to how many people."""

    name: str
    title: str
    submissions: int
    people: int


@router.get("/queue")
def queue(request: Request, viewer: Admin) -> Response:  # noqa: ARG001 - for administrators only
    with transaction() as database:
        overview, held = queue_overview(request, database), held_count(database)
    return page(request, "admin_queue.html", overview=overview, gpus=gpus(overview.workers), held=held)


class Held(NamedTuple):
    """A held submission with its samples drawn and the conditions in words."""

    item: SubmissionView
    strips: list[speed.Strip]
    facts: list[tuple[str, float | str]]


@router.get("/held")
def held(request: Request, viewer: Admin) -> Response:  # noqa: ARG001 - for administrators only
    with transaction() as database:
        items = [view(request, database, each) for each in held_submissions(database)]
    return page(request, "admin_held.html", cases=[_case(item) for item in items])


def _case(item: SubmissionView) -> Held:
    timing = item.result.timing if item.result else None
    return Held(item, speed.strips(timing) if timing else [], speed.facts(timing) if timing else [])


@router.get("/submissions")
def submissions(request: Request, viewer: Admin, catalog: StageCatalog) -> Response:  # noqa: ARG001 - for administrators only
    asked = request.query_params
    apart = asked.get("apart")
    wanted = of_everybody(
        stage=asked.get("stage", "")[:64] or None,
        verdict=verdict_of(asked.get("verdict")),
        user=asked.get("user", "")[:64] or None,
        mistake=asked.get("mistake", "")[:200] or None,
        apart=Apart(apart) if apart in list(Apart) else None,
    )
    with transaction() as database:
        found = submissions_page(request, database, wanted, limit=PAGE, before=asked.get("before") or None)
    return page(
        request,
        "admin_submissions.html",
        found=found,
        stages=catalog.with_drafts(),
        stage=asked.get("stage", ""),
        verdict=asked.get("verdict", ""),
        user=asked.get("user", ""),
        apart=asked.get("apart", ""),
        first="before" not in asked,
    )


@router.get("/stages")
def stages(request: Request, viewer: Admin, catalog: StageCatalog) -> Response:  # noqa: ARG001 - for administrators only
    with transaction() as database:
        found = all_stages(database, catalog)
    return page(request, "admin_stages.html", found=found)


@router.get("/stages/{name}")
def stage(request: Request, viewer: Admin, name: StageName, catalog: StageCatalog) -> Response:
    """Statistics of a stage; with `?preview`, what judging again would take up, before it is done."""
    found = catalog.stage(name, field="path.name", drafts=True)
    asked = request.query_params
    verdict = verdict_of(asked.get("verdict"))
    preview = None
    with transaction() as database:
        summary = admin_stages(database, {name: found})[0]
        verdicts, mistakes = statistics(database, found)
        if "preview" in asked:
            preview = preview_of(rejudge_stage(database, viewer, name, verdict, dry_run=True), found)
    return page(
        request,
        "admin_stage.html",
        stage=summary,
        verdicts=verdicts,
        mistakes=mistakes,
        verdict=verdict or "",
        preview=preview,
    )


class Preview(NamedTuple):
    """What judging again would take up: verdicts with how often each stands, and how many an older version judged."""

    submissions: int
    people: int
    verdicts: list[tuple[str, int]]
    older: int
    on_the_board: int


def preview_of(found: list[Submission], stage: Stage) -> Preview:
    counts = Counter(str(each.verdict) for each in found)
    return Preview(
        len(found),
        len({each.user_id for each in found}),
        counts.most_common(),
        sum(each.stage_hash != stage.hash for each in found),
        sum(each.verdict == Verdict.ACCEPTED and not each.hidden and not each.held for each in found),
    )


def statistics(database: Session, stage: Stage) -> tuple[list[Count], list[Count]]:
    """(verdicts, named mistakes) over every submission's newest judging, the most frequent first."""
    people = func.count(Submission.user_id.distinct())
    verdicts = database.execute(
        select(Submission.verdict, func.count(), people)
        .where(Submission.stage == stage.name, Submission.verdict.is_not(None))
        .group_by(Submission.verdict)
        .order_by(func.count().desc())
    )
    mistakes = database.execute(
        select(Submission.mistake, func.count(), people)
        .where(Submission.stage == stage.name, Submission.mistake.is_not(None))
        .group_by(Submission.mistake)
        .order_by(func.count().desc())
        .limit(50)
    )
    titles = {mistake.name: mistake.title for mistake in stage.spec.mistakes}
    return (
        [Count(word, Verdict(word).about.title, count, who) for word, count, who in verdicts if word],
        [Count(word, titles.get(word, word), count, who) for word, count, who in mistakes if word],
    )
