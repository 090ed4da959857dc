"""Rows of the database as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Request
from sqlalchemy.orm import Session

from api.catalog import Standing
from api.schemas import Links, StageSummary, StageView, SubmissionSummary, SubmissionView
from api.submissions import newest_result, queue_position, result_of
from kernelgate.calibration import readable
from kernelgate.evidence import evidence
from kernelgate.models import Submission
from kernelgate.settings import settings
from kernelgate.stages import Stage
from kernelgate.verdicts import State


def base_url(request: Request) -> str:
    """The address people reach this service at, without a slash at the end."""
    return (settings().public_url or str(request.base_url)).rstrip("/")


def links(request: Request, submission: Submission) -> Links:
    base = base_url(request)
    own = f"{base}/submissions/{submission.id}"
    return Links(
        submission=own,
        events=f"{own}/events",
        source=f"{own}/source",
        stage=f"{base}/stages/{submission.stage}",
        leaderboard=f"{base}/leaderboard/{submission.stage}",
    )


def summary(request: Request, submission: Submission) -> SubmissionSummary:
    return SubmissionSummary.model_validate(_summary_fields(request, submission))


def _summary_fields(request: Request, submission: Submission) -> dict[str, object]:
    return {
        **{name: getattr(submission, name) for name in SubmissionSummary.model_fields if name not in ("user", "url")},
        "user": submission.user.handle,
        "url": f"{base_url(request)}/submissions/{submission.id}",
    }


def view(request: Request, database: Session, submission: Submission) -> SubmissionView:
    """A submission with its newest result, its place in the queue and its addresses."""
    row = newest_result(database, submission.id)
    judged = {"verdict": row.verdict, "reason": row.reason} if row is not None and submission.trial is not None else {}
    return SubmissionView.model_validate(
        {
            **_summary_fields(request, submission),
            **judged,
            "run": submission.trial,
            "stage_hash": submission.stage_hash,
            "source_hash": submission.source_hash,
            "source_bytes": len(submission.source),
            "queue": submission.queue,
            "queue_position": queue_position(database, submission),
            "attempt": submission.attempt,
            "claimed_at": submission.claimed_at,
            "cancel_requested": submission.cancel_requested,
            "urls": links(request, submission),
            "result": result_of(row, submission) if row is not None else None,
        }
    )


def plain_view(request: Request, database: Session, submission: Submission, stages: Mapping[str, Stage]) -> str:
    """A submission as plain text: the evidence block of its newest result, or what it is waiting for."""
    row = newest_result(database, submission.id)
    if row is None:
        return waiting_text(submission, links(request, submission).submission)
    stage = stages.get(submission.stage)
    return evidence(result_of(row, submission), stage.spec.evidence if stage is not None else None)


def waiting_text(submission: Submission, address: str) -> str:
    """What plain text says of a submission without a result: where it stands, and how to come back for it."""
    over = submission.state == State.CANCELLED
    note = "no verdict: it was cancelled" if over else "no verdict yet"
    said = f"STATE    {submission.state} ({note})\nSTAGE    {submission.stage}\nAT       {address}\n"
    return said if over else f"{said}NEXT     ask there again, or: kernelgate result {submission.id[:8]}\n"


def stage_summary(stage: Stage, standing: Standing) -> StageSummary:
    return StageSummary.model_validate(_stage_fields(stage, standing))


def _stage_fields(stage: Stage, standing: Standing) -> dict[str, object]:
    spec = stage.spec
    closed = standing.why_closed(stage)
    shared = ("title", "summary", "path", "order", "hours", "language", "file", "ranking", "gate")
    return {
        **{name: getattr(spec, name) for name in shared},
        "needs": list(spec.needs),
        "name": stage.name,
        "hash": stage.hash,
        "open": standing.open,
        "state": standing.state,
        "proof": standing.proof.text if standing.proof else None,
        "closed_because": closed.detail if closed else None,
        "frozen_at": standing.frozen_at,
    }


def stage_view(stage: Stage, standing: Standing) -> StageView:
    """Everything a submitter may know; answers of the "done when" list are not among it."""
    spec = stage.spec
    return StageView.model_validate(
        {
            **_stage_fields(stage, standing),
            **{
                name: getattr(spec, name)
                for name in ("backends", "sources", "several", "seam", "limits", "tensors", "cases")
            },
            "tolerance": spec.tolerance,
            "mistakes": [{"name": each.name, "title": each.title, "hint": each.hint} for each in spec.mistakes],
            "done_when": [{"text": each.text} for each in spec.done_when],
            "files": downloads(stage),
            "calibrations": readable(stage),
        }
    )


def downloads(stage: Stage) -> list[str]:
    """What submitters may download: the starter, what is provided, the lesson's figures. Nothing else of a stage is served."""
    return sorted(name for name in stage.files if name.split("/")[0] in ("starter", "provided", "figures"))
