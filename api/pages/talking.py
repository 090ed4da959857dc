"""What people say: comments beside a file, questions to a course, the address of a feed."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.auth import Identity
from api.courses.asking import questions
from api.courses.commenting import answers_unseen, comments, takes_part
from api.courses.feed import make_feed
from api.courses.schedule import stages_of
from api.courses.seats import seat
from api.courses.talk_schemas import CommentView
from api.dependencies import CourseName, Reader, StageCatalog, Submitter
from api.negotiation import HtmlRoute
from api.pages.site.environment import page
from api.views import base_url
from kernelgate.db import transaction
from kernelgate.models import Submission

router = APIRouter(prefix="/courses", route_class=HtmlRoute, include_in_schema=False)


class Talk(NamedTuple):
    """The comments on a file. open: whether the viewer takes part."""

    open: bool
    said: list[CommentView]

    @property
    def by_line(self) -> dict[int, list[CommentView]]:
        found: dict[int, list[CommentView]] = {}
        for each in self.said:
            if each.line:
                found.setdefault(each.line, []).append(each)
        return found


def talk_of(database: Session, viewer: Identity | None, submission: Submission) -> Talk:
    if viewer is None or not takes_part(database, viewer, submission):
        return Talk(False, [])
    return Talk(True, comments(database, viewer, submission))


@router.get("/{course}/questions")
def questions_page(request: Request, viewer: Reader, course: CourseName, catalog: StageCatalog) -> Response:
    known = catalog.with_drafts()
    with transaction() as database:
        by = seat(database, viewer, course)
        found = questions(database, by)
        stages = [row.stage for row in stages_of(database, by.course)]
        answered = answers_unseen(database, by.course.id) if by.staff else []
    titles = {name: known[name].spec.title if name in known else name for name in stages}
    about = request.query_params.get("stage", "")
    return page(
        request,
        "course_questions.html",
        seat=by,
        course=by.course,
        questions=found,
        titles=titles,
        about=about if about in titles else "",
        answered=answered,
    )


@router.post("/{course}/feed")
async def feed_page(request: Request, viewer: Submitter, course: CourseName) -> Response:
    """Shows the address in the answer itself: a redirect would have to carry it."""
    return await run_in_threadpool(_feed, request, viewer, course)


def _feed(request: Request, viewer: Identity, course: str) -> Response:
    with transaction() as database:
        by = seat(database, viewer, course)
        url = f"{base_url(request)}/feeds/{make_feed(database, by)}"
    return page(request, "course_feed.html", seat=by, course=by.course, url=url)
