"""A submission's file: as it is, coloured, and what changed since the starter or another submission."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.auth import Identity
from api.catalog import Catalog
from api.dependencies import StageCatalog, SubmissionId, Viewer
from api.negotiation import HtmlRoute
from api.pages.drawings.comparing import Compared, Graded, compared
from api.pages.site.environment import page
from api.pages.talking import talk_of
from api.pages.text.changes import changes
from api.pages.text.faults import faults
from api.pages.text.highlighting import numbered
from api.submissions import find, newest_result
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.protocol import Result
from kernelgate.stages import Stage
from kernelgate.verdicts import ABOUT, Verdict

router = APIRouter(route_class=HtmlRoute, include_in_schema=False)
files = APIRouter(include_in_schema=False)


@files.get("/submissions/{id}/file")
def download(id: SubmissionId, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    with transaction() as database:
        submission = find(database, id, viewer, catalog)
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", submission.filename)
    headers = {"Content-Disposition": f'attachment; filename="{safe}"'}
    return Response(submission.source, media_type="application/octet-stream", headers=headers)


@router.get("/submissions/{id}/source")
def source_page(request: Request, id: SubmissionId, viewer: Viewer, catalog: StageCatalog) -> Response:  # noqa: A002
    """The file, coloured; or what changed since the starter or an earlier submission of the same person."""
    against = request.query_params.get("against", "")[:64]
    with transaction() as database:
        submission = find(database, id, viewer, catalog)
        stage = catalog.stages().get(submission.stage)
        row = newest_result(database, submission.id)
        earlier = _earlier(database, submission) if viewer and viewer.user_id == submission.user_id else []
        other = _other(database, against, stage, viewer, catalog) if against else None
        compared = _compared(database, submission, against) if other is not None else None
        talk = talk_of(database, viewer, submission)
    language = stage.spec.language if stage else "text"
    source = submission.source.decode("utf-8", "replace")
    marked = faults(Result.model_validate(row.body), submission.filename, source) if row is not None else []
    comparable = [("starter", "the starter")] if stage else []
    comparable += [
        (each.id, f"{each.id[:8]}: {_title(each)}, {each.created_at:%Y-%m-%d %H:%M} UTC") for each in earlier
    ]
    return page(
        request,
        "source.html",
        item=submission,
        stage_title=stage.spec.title if stage else submission.stage,
        lines=numbered(submission.source, language),
        marked={fault.line: fault.message for fault in marked},
        talk=talk,
        against=against,
        comparable=comparable,
        compared=compared,
        other=dict(comparable).get(against, against),
        diff=None if other is None else changes(other, source, language),
    )


def _compared(database: Session, submission: Submission, against: str) -> Compared | None:
    """How the two ended and what differs in numbers; None against the starter, which has no result of its own."""
    before = database.get(Submission, against)
    if before is None or before.stage != submission.stage:
        return None
    return compared(*(_graded(database, each) for each in (before, submission)))


def _title(submission: Submission) -> str:
    return ABOUT[Verdict(submission.verdict)].title if submission.verdict else str(submission.state)


def _graded(database: Session, submission: Submission) -> Graded:
    row = newest_result(database, submission.id)
    return Graded(
        submission.id, submission.created_at, submission.verdict, Result.model_validate(row.body) if row else None
    )


def _earlier(database: Session, submission: Submission) -> list[Submission]:
    return list(
        database.scalars(
            select(Submission)
            .where(
                Submission.user_id == submission.user_id,
                Submission.stage == submission.stage,
                Submission.id != submission.id,
                Submission.trial.is_(None),
            )
            .order_by(Submission.created_at.desc())
            .limit(30)
        )
    )


def _other(database: Session, against: str, stage: Stage | None, viewer: Identity | None, catalog: Catalog) -> str:
    if against == "starter" and stage is not None:
        return stage.starter
    return find(database, against, viewer, catalog).source.decode("utf-8", "replace")
