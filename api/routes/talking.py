"""Comments on submitted files, questions to a course, its announcements as a feed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from api.auth import Identity
from api.body import described, payload
from api.catalog import Catalog
from api.courses.asking import answer, ask, questions
from api.courses.commenting import comment, commented, comments, take_back
from api.courses.feed import MEDIA_TYPE, atom, course_of_feed, make_feed
from api.courses.seats import Right, seat
from api.courses.talk_schemas import AnswerBody, CommentBody, CommentView, FeedView, QuestionBody, QuestionView
from api.dependencies import CourseName, Reader, StageCatalog, SubmissionId, Submitter
from api.negotiation import see_other
from api.problems import SIGNED_IN, documented
from api.routes.courses import CHANGES, READS
from api.views import base_url
from kernelgate.db import transaction

router = APIRouter()
_TALK = documented("too_many_messages")
_OF_FILE = documented(*SIGNED_IN, "unknown_submission", "missing_role")
Number = Annotated[int, Path(ge=1, le=2**62, description="Its number.")]


@router.get("/submissions/{id}/comments", tags=["submissions"], summary="Comments on a submission", responses=_OF_FILE)
def get_comments(id: SubmissionId, identity: Reader, catalog: StageCatalog) -> list[CommentView]:  # noqa: A002
    """For its author and those who teach them. By line, those on all of the file first."""
    with transaction() as database:
        return comments(database, identity, commented(database, identity, id, catalog))


@router.post(
    "/submissions/{id}/comments",
    tags=["submissions"],
    summary="Comment on a line, or answer",
    status_code=201,
    response_model=CommentView,
    openapi_extra=described(CommentBody, example={"line": 12, "text": "Which thread writes this?"}),
    responses={**CHANGES, **_OF_FILE, **_TALK},
)
async def add_comment(
    request: Request,
    id: SubmissionId,  # noqa: A002
    identity: Submitter,
    catalog: StageCatalog,
    body: Annotated[CommentBody, Depends(payload(CommentBody))],
) -> Any:
    """For its author and those who teach them: staff of a course that it counts in, instructors of the service."""
    return await run_in_threadpool(_comment, request, id, identity, catalog, body)


def _comment(request: Request, name: str, identity: Identity, catalog: Catalog, body: CommentBody) -> Any:
    with transaction() as database:
        submission = commented(database, identity, name, catalog)
        made = comment(database, identity, submission, body)
    place = f"#L{made.line}" if made.line else "#comments"
    return see_other(request, f"/submissions/{submission.id}/source{place}") or made


@router.post(
    "/submissions/{id}/comments/{number}/remove",
    tags=["submissions"],
    summary="Take a comment back",
    response_model=list[CommentView],
    responses={**CHANGES, **documented("unknown_submission", "not_found")},
)
def remove_comment(
    request: Request,
    id: SubmissionId,  # noqa: A002
    number: Number,
    identity: Submitter,
    catalog: StageCatalog,
) -> Any:
    """For who wrote it. The audit log keeps its text."""
    with transaction() as database:
        submission = commented(database, identity, id, catalog)
        take_back(database, identity, submission, number)
        left = comments(database, identity, submission)
    return see_other(request, f"/submissions/{submission.id}/source#comments") or left


@router.get("/courses/{course}/questions", tags=["courses"], summary="Questions and answers", responses=READS)
def get_questions(course: CourseName, identity: Reader) -> list[QuestionView]:
    """For members their own and those answered to all; for the staff every one, those that wait first."""
    with transaction() as database:
        return questions(database, seat(database, identity, course))


@router.post(
    "/courses/{course}/questions",
    tags=["courses"],
    summary="Ask the staff of a course",
    status_code=201,
    response_model=QuestionView,
    openapi_extra=described(QuestionBody, example={"stage": "online_softmax", "text": "Is the input sorted?"}),
    responses={**CHANGES, **documented("unknown_course", "unknown_stage"), **_TALK},
)
async def add_question(
    request: Request,
    course: CourseName,
    identity: Submitter,
    body: Annotated[QuestionBody, Depends(payload(QuestionBody))],
) -> Any:
    """For everybody who is in it. The staff reads it, nobody else, unless it is answered to all."""
    return await run_in_threadpool(_ask, request, course, identity, body)


def _ask(request: Request, course: str, identity: Identity, body: QuestionBody) -> Any:
    with transaction() as database:
        made = ask(database, seat(database, identity, course), body)
    return see_other(request, f"/courses/{course}/questions") or made


@router.post(
    "/courses/{course}/questions/{number}/answer",
    tags=["courses"],
    summary="Answer a question, to one or to all",
    response_model=QuestionView,
    openapi_extra=described(AnswerBody, example={"text": "No, it is not.", "to_all": True}),
    responses={**CHANGES, **documented("unknown_course", "not_found")},
)
async def answer_question(
    request: Request,
    course: CourseName,
    number: Number,
    identity: Submitter,
    body: Annotated[AnswerBody, Depends(payload(AnswerBody))],
) -> Any:
    """For the course's staff, in place of an answer given before. To all it stands in the feed, without who asked."""
    return await run_in_threadpool(_answer, request, course, number, identity, body)


def _answer(request: Request, course: str, number: int, identity: Identity, body: AnswerBody) -> Any:
    with transaction() as database:
        made = answer(database, seat(database, identity, course, Right.STAFF), number, body)
    return see_other(request, f"/courses/{course}/questions#q{number}") or made


@router.post(
    "/courses/{course}/feed",
    tags=["courses"],
    summary="Make the address of one's feed",
    status_code=201,
    responses={**CHANGES, **documented("unknown_course", "unknown_member")},
)
def add_feed(request: Request, course: CourseName, identity: Submitter) -> FeedView:
    """For everybody who is in it, in place of the one they had. Whoever knows the address reads what the course announces."""
    with transaction() as database:
        secret = make_feed(database, seat(database, identity, course))
    return FeedView(url=f"{base_url(request)}/feeds/{secret}")


@router.get(
    "/feeds/{secret}",
    tags=["courses"],
    summary="What a course announces, as an Atom feed",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {"example": "<feed>…</feed>"}}}, **documented("not_found")},
)
def get_feed(request: Request, secret: Annotated[str, Path(max_length=64)]) -> Response:
    """Announcements, and answers given to all. Needs no sign-in: the address is the secret."""
    base = base_url(request)
    with transaction() as database:
        body = atom(database, course_of_feed(database, secret), base, f"{base}/feeds/{secret}")
    headers = {"Cache-Control": "private, max-age=300", "Referrer-Policy": "no-referrer"}
    return Response(body, media_type=f"{MEDIA_TYPE}; charset=utf-8", headers=headers)
