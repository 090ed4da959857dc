"""For administrators: the queue and its workers, stages, judging again, hiding."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.administration import admin_stages, all_stages, change_stage, hide, rejudge_one, rejudge_stage
from api.auth import Identity
from api.body import described, payload
from api.catalog import Catalog
from api.dependencies import Admin, Bell, StageCatalog, StageName, SubmissionId
from api.held import dismiss, held_submissions, release
from api.negotiation import see_other
from api.overview import queue_overview
from api.paging import Apart, Before, Limit, of_everybody, submissions_page
from api.problems import documented
from api.results import results_csv
from api.routes.admin import CHANGES, REFUSALS
from api.schemas import (
    AdminStage,
    AdminStages,
    HeldList,
    HideBody,
    QueueOverview,
    RejudgeBody,
    Rejudged,
    StageChange,
    SubmissionPage,
    SubmissionSummary,
    SubmissionView,
)
from api.views import summary, view
from kernelgate.accounts import audit
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.verdicts import Verdict

router = APIRouter(prefix="/admin", tags=["admin"])
_SHOWN_IDS = 1000


@router.get("/queue", summary="Queues and workers", responses=REFUSALS)
def get_queue(request: Request, admin: Admin) -> QueueOverview:  # noqa: ARG001
    """What waits and for how long, what runs, and every worker with its health; `live` ones had a heartbeat lately."""
    with transaction() as database:
        return queue_overview(request, database)


@router.get("/stages", summary="Stages with their verification", responses=REFUSALS)
def list_admin_stages(admin: Admin, catalog: StageCatalog) -> AdminStages:  # noqa: ARG001
    """Also the folders that are no usable stage, with why."""
    with transaction() as database:
        return all_stages(database, catalog)


@router.post("/stages/reload", summary="Read the stage folders again", response_model=AdminStages, responses=REFUSALS)
def reload_stages(request: Request, admin: Admin, catalog: StageCatalog) -> Any:
    """Now, instead of within two seconds. A new version takes submissions once a worker has verified it."""
    catalog.reload()
    with transaction() as database:
        audit(database, admin.handle, "stage.reload", "all stages")
        answer = all_stages(database, catalog)
    return see_other(request, "/admin/stages") or answer


@router.post(
    "/stages/{name}",
    summary="Open, close, freeze or thaw a stage",
    response_model=AdminStage,
    openapi_extra=described(StageChange, example={"frozen": True}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_stage")},
)
async def edit_stage(
    request: Request,
    admin: Admin,
    name: StageName,
    catalog: StageCatalog,
    body: Annotated[StageChange, Depends(payload(StageChange))],
) -> Any:
    """A closed stage takes no submissions; a frozen leaderboard keeps what was accepted until now and shows nothing later."""
    answer = await run_in_threadpool(_edit_stage, admin, name, catalog, body)
    return see_other(request, "/admin/stages") or answer


def _edit_stage(admin: Identity, name: str, catalog: Catalog, body: StageChange) -> AdminStage:
    stage = catalog.stage(name, field="path.name", drafts=True)
    with transaction() as database:
        change_stage(database, admin, name, body)
        database.flush()
        return admin_stages(database, {name: stage})[0]


@router.get(
    "/stages/{name}/results.csv",
    summary="Every submission of a stage with its result, as CSV",
    response_class=Response,
    responses={
        200: {"content": {"text/csv": {"example": "submission,user,created_at,…"}}},
        **REFUSALS,
        **documented("unknown_stage"),
    },
)
def stage_results(admin: Admin, name: StageName, catalog: StageCatalog) -> Response:  # noqa: ARG001
    """Newest judging of each, in the order they were made; also those that are hidden or held, which say so."""
    stage = catalog.stage(name, field="path.name", drafts=True)
    with transaction() as database:
        body = results_csv(database, stage.name)
    headers = {"Content-Disposition": f'attachment; filename="results-{stage.name}.csv"'}
    return Response(body, media_type="text/csv; charset=utf-8", headers=headers)


@router.post(
    "/stages/{name}/rejudge",
    summary="Judge a stage's submissions again",
    response_model=Rejudged,
    openapi_extra=described(RejudgeBody, example={"verdict": "judge_error", "dry_run": True}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_stage")},
)
async def rejudge_all(
    request: Request,
    admin: Admin,
    name: StageName,
    catalog: StageCatalog,
    bell: Bell,
    body: Annotated[RejudgeBody, Depends(payload(RejudgeBody))],
) -> Any:
    """A new round for each; old results stay stored, and a submission keeps its verdict until the new one is there."""
    catalog.stage(name, field="path.name", drafts=True)
    found = await run_in_threadpool(_rejudge_all, admin, name, body)
    if not body.dry_run:
        for submission in found:
            bell.ring(submission.id, submission.queue)
    answer = Rejudged(submissions=len(found), ids=[submission.id for submission in found[:_SHOWN_IDS]])
    return see_other(request, "/admin/queue") or answer


def _rejudge_all(admin: Identity, name: str, body: RejudgeBody) -> list[Submission]:
    with transaction() as database:
        return rejudge_stage(database, admin, name, body.verdict, dry_run=body.dry_run)


@router.get("/submissions", summary="Everybody's submissions", responses={**REFUSALS, **documented("invalid_field")})
def list_submissions(
    request: Request,
    admin: Admin,  # noqa: ARG001
    limit: Limit = 50,
    before: Before = None,
    stage: Annotated[str | None, Query(max_length=64, description="Only this stage's.")] = None,
    verdict: Annotated[Verdict | None, Query(description="Only with this verdict.")] = None,
    user: Annotated[str | None, Query(max_length=64, description="Only of the account with this handle.")] = None,
    mistake: Annotated[str | None, Query(max_length=200, description="Only with this named mistake.")] = None,
    apart: Annotated[Apart | None, Query(description="Only those that are hidden, or held back.")] = None,
) -> SubmissionPage:
    """Newest first; `next` leads to older ones."""
    wanted = of_everybody(stage=stage, verdict=verdict, user=user, mistake=mistake, apart=apart)
    with transaction() as database:
        return submissions_page(request, database, wanted, limit=limit, before=before)


@router.post(
    "/submissions/{id}/rejudge",
    summary="Judge one submission again",
    response_model=SubmissionView,
    responses={**REFUSALS, **documented("unknown_submission", "not_final", "csrf_failed")},
)
def rejudge(request: Request, admin: Admin, id: SubmissionId, bell: Bell) -> Any:  # noqa: A002
    """A new round; the old result stays stored."""
    with transaction() as database:
        submission = rejudge_one(database, admin, id)
        answer = view(request, database, submission)
    bell.ring(submission.id, submission.queue)
    return see_other(request, f"/submissions/{id}") or answer


@router.post(
    "/submissions/{id}/hide",
    summary="Hide a submission, or show it again",
    response_model=SubmissionSummary,
    openapi_extra=described(HideBody, example={"hidden": True}),
    responses={**REFUSALS, **CHANGES, **documented("unknown_submission")},
)
async def hide_submission(
    request: Request,
    admin: Admin,
    id: SubmissionId,  # noqa: A002
    body: Annotated[HideBody, Depends(payload(HideBody))],
) -> Any:
    """Hidden ones stand on no leaderboard and are shown to nobody but their owner, instructors and administrators."""
    answer = await run_in_threadpool(_hide, request, admin, id, body.hidden)
    return see_other(request, f"/submissions/{id}") or answer


@router.get("/held", summary="Submissions held back until somebody decides", responses=REFUSALS)
def list_held(request: Request, admin: Admin) -> HeldList:  # noqa: ARG001
    """The oldest first, each with its reason, its times and samples, its card and the address of its source."""
    with transaction() as database:
        return HeldList(items=[view(request, database, each) for each in held_submissions(database)])


@router.post(
    "/submissions/{id}/release",
    summary="Let a held submission count",
    response_model=SubmissionSummary,
    responses={**REFUSALS, **documented("unknown_submission", "not_held", "csrf_failed")},
)
def release_submission(request: Request, admin: Admin, id: SubmissionId) -> Any:  # noqa: A002
    """From now on it stands on boards, ranked by when it was submitted."""
    with transaction() as database:
        answer = summary(request, release(database, admin, id))
    return see_other(request, "/admin/held") or answer


@router.post(
    "/submissions/{id}/dismiss",
    summary="Keep a held submission from counting",
    response_model=SubmissionSummary,
    responses={**REFUSALS, **documented("unknown_submission", "not_held", "csrf_failed")},
)
def dismiss_submission(request: Request, admin: Admin, id: SubmissionId) -> Any:  # noqa: A002
    """It stays hidden. Showing it again puts it back on the list of those that are held."""
    with transaction() as database:
        answer = summary(request, dismiss(database, admin, id))
    return see_other(request, "/admin/held") or answer


def _hide(request: Request, admin: Identity, submission_id: str, hidden: bool) -> SubmissionSummary:
    with transaction() as database:
        return summary(request, hide(database, admin, submission_id, hidden))
