"""Questions to the staff of a course, about one of its stages or all of it, and answers: to one, or to all without the name."""

from __future__ import annotations

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from api.courses.commenting import check_talk
from api.courses.schedule import stage_of
from api.courses.seats import Seat
from api.courses.talk_schemas import AnswerBody, QuestionBody, QuestionView
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.models import now
from kernelgate.talk import Question

_MOST = 200


def ask(database: Session, by: Seat, body: QuestionBody) -> QuestionView:
    if body.stage is not None:
        stage_of(database, by.course, body.stage)
    check_talk(database, by.identity)
    row = Question(
        course_id=by.course.id, stage=body.stage, user_id=by.identity.user_id, text=body.text.strip(), to_all=False
    )
    database.add(row)
    database.flush()
    database.refresh(row)
    return _view(row, by)


def answer(database: Session, by: Seat, number: int, body: AnswerBody) -> QuestionView:
    """In place of an answer that was given before. Raises Refusal for a question that the course does not have."""
    row = database.get(Question, number)
    if row is None or row.course_id != by.course.id:
        raise Refusal("not_found", "The course has no such question.", field="path.number", value=number)
    row.answer, row.to_all = body.text.strip(), body.to_all
    row.answered_by, row.answered_at = by.identity.handle, now()
    audit(database, by.identity.handle, "course.answer", by.course.name, question=row.id, to_all=body.to_all)
    database.flush()
    return _view(row, by)


def questions(database: Session, by: Seat) -> list[QuestionView]:
    """For the staff all, what waits for an answer first; for others their own and what was answered to all. Then the newest."""
    wanted = select(Question).where(Question.course_id == by.course.id)
    if not by.staff:
        wanted = wanted.where(or_(Question.user_id == by.identity.user_id, Question.to_all))
    waits = [Question.answered_at.is_not(None)] if by.staff else []
    return [_view(row, by) for row in database.scalars(wanted.order_by(*waits, Question.id.desc()).limit(_MOST))]


def _view(row: Question, by: Seat) -> QuestionView:
    return QuestionView(
        id=row.id, stage=row.stage, text=row.text, at=row.at, user=row.user.handle if by.sees(row.user_id) else None,
        answer=row.answer, answered_by=row.answered_by, answered_at=row.answered_at, to_all=row.to_all,
    )  # fmt: skip


def waiting(database: Session, course_id: int) -> int:
    """Questions without an answer."""
    open_ones = select(func.count()).where(Question.course_id == course_id, Question.answered_at.is_(None))
    return database.scalar(open_ones) or 0
