"""For the staff of a course: judging its members' submissions again, hiding them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool

from api.auth import Identity
from api.body import described, payload
from api.courses.judging import hide_one, rejudge, rejudge_one
from api.courses.schemas import CourseRejudgeBody
from api.courses.seats import Right, seat
from api.dependencies import Bell, CourseName, StageName, SubmissionId, Submitter
from api.negotiation import see_other
from api.problems import documented
from api.routes.courses import CHANGES
from api.schemas import HideBody, Rejudged, SubmissionSummary, SubmissionView
from api.views import summary, view
from kernelgate.db import transaction
from kernelgate.models import Submission

router = APIRouter(prefix="/courses", tags=["courses"])
_SHOWN_IDS = 1000


@router.post(
    "/{course}/stages/{stage}/rejudge",
    summary="Judge the course's submissions to a stage again",
    response_model=Rejudged,
    openapi_extra=described(CourseRejudgeBody, example={"verdict": "judge_error", "dry_run": True}),
    responses={**CHANGES, **documented("unknown_course", "unknown_stage")},
)
async def rejudge_course_stage(
    request: Request,
    course: CourseName,
    stage: StageName,
    identity: Submitter,
    bell: Bell,
    body: Annotated[CourseRejudgeBody, Depends(payload(CourseRejudgeBody))],
) -> Any:
    """For its staff. What counts after a due time changes only when an instructor takes the new judgings over."""
    found = await run_in_threadpool(_rejudge, identity, course, stage, body)
    if not body.dry_run:
        for submission in found:
            bell.ring(submission.id, submission.queue)
    answer = Rejudged(submissions=len(found), ids=[submission.id for submission in found[:_SHOWN_IDS]])
    return see_other(request, f"/courses/{course}/stages/{stage}") or answer


def _rejudge(identity: Identity, course: str, stage: str, body: CourseRejudgeBody) -> list[Submission]:
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        return rejudge(database, by, stage, body.verdict, dry_run=body.dry_run)


@router.post(
    "/{course}/submissions/{id}/rejudge",
    summary="Judge one submission of a member again",
    response_model=SubmissionView,
    responses={**CHANGES, **documented("unknown_course", "unknown_submission", "not_final")},
)
def rejudge_of_member(
    request: Request,
    course: CourseName,
    id: SubmissionId,  # noqa: A002
    identity: Submitter,
    bell: Bell,
) -> Any:
    """For its staff. A new round; the old result stays stored."""
    with transaction() as database:
        submission = rejudge_one(database, seat(database, identity, course, Right.STAFF), id)
        answer = view(request, database, submission)
    bell.ring(submission.id, submission.queue)
    return see_other(request, f"/submissions/{submission.id}") or answer


@router.post(
    "/{course}/submissions/{id}/hide",
    summary="Hide a member's submission, or show it again",
    response_model=SubmissionSummary,
    openapi_extra=described(HideBody, example={"hidden": True}),
    responses={**CHANGES, **documented("unknown_course", "unknown_submission")},
)
async def hide_of_member(
    request: Request,
    course: CourseName,
    id: SubmissionId,  # noqa: A002
    identity: Submitter,
    body: Annotated[HideBody, Depends(payload(HideBody))],
) -> Any:
    """For its staff. A hidden one stands on no board and earns no points; its owner and the staff see it."""
    answer = await run_in_threadpool(_hide, request, identity, course, id, body.hidden)
    return see_other(request, f"/courses/{course}/people/{answer.user}/{answer.stage}") or answer


def _hide(request: Request, identity: Identity, course: str, submission_id: str, hidden: bool) -> SubmissionSummary:
    with transaction() as database:
        by = seat(database, identity, course, Right.STAFF)
        return summary(request, hide_one(database, by, submission_id, hidden))
