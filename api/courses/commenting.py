"""Comments on a submitted file: between its author and those who teach them, whoever else may read the file."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, aliased

from api.auth import Identity
from api.catalog import Catalog
from api.courses.judging import of_course
from api.courses.seats import teaches
from api.courses.talk_schemas import CommentBody, CommentView
from api.limits import lock_user, retry_after
from api.problems import Refusal
from api.submissions import find
from kernelgate.accounts import audit
from kernelgate.models import Submission, now
from kernelgate.talk import Comment, Question

_HOUR = timedelta(hours=1)
MOST_AN_HOUR = 60
"""Comments and questions of one person."""


def takes_part(database: Session, identity: Identity, submission: Submission) -> bool:
    """Whether somebody reads and writes the comments on a submission."""
    if submission.trial is not None:
        return False
    return (
        identity.user_id == submission.user_id or identity.reads_all or teaches(database, identity.user_id, submission)
    )


def commented(database: Session, identity: Identity, submission_id: str, catalog: Catalog) -> Submission:
    """The submission, for those who take part. Raises Refusal."""
    found = find(database, submission_id, identity, catalog)
    if not takes_part(database, identity, found):
        detail = "Comments are between the author of a submission and those who teach them."
        raise Refusal("missing_role", detail, field="path.id", value=found.id)
    return found


def comments(database: Session, identity: Identity, submission: Submission) -> list[CommentView]:
    """By line, those on all of the file first, each in the order they were made; what the other side said is seen by now."""
    said = Comment.submission_id == submission.id
    own = identity.user_id == submission.user_id
    theirs = Comment.user_id != submission.user_id if own else Comment.user_id == submission.user_id
    database.execute(update(Comment).where(said, theirs, Comment.seen_at.is_(None)).values(seen_at=now()))
    rows = database.scalars(select(Comment).where(said).order_by(Comment.line.nulls_first(), Comment.id))
    return [comment_view(row, submission) for row in rows]


def comment_view(row: Comment, submission: Submission) -> CommentView:
    return CommentView(
        id=row.id, line=row.line, user=row.user.handle, author=row.user_id == submission.user_id,
        text=row.text, at=row.at, seen_at=row.seen_at,
    )  # fmt: skip


def comment(database: Session, identity: Identity, submission: Submission, body: CommentBody) -> CommentView:
    lines = submission.source.count(b"\n") + 1
    if body.line is not None and body.line > lines:
        detail = f"The file has {lines} lines."
        raise Refusal("invalid_field", detail, field="line", value=body.line, accepted=f"1 to {lines}, or none")
    check_talk(database, identity)
    row = Comment(submission_id=submission.id, line=body.line, user_id=identity.user_id, text=body.text.strip())
    database.add(row)
    database.flush()
    database.refresh(row)
    if identity.user_id != submission.user_id:
        audit(database, identity.handle, "submission.comment", submission.id, comment=row.id)
    return comment_view(row, submission)


def take_back(database: Session, identity: Identity, submission: Submission, number: int) -> None:
    """For who wrote it, and for administrators. The audit log keeps its text."""
    row = database.get(Comment, number)
    if row is None or row.submission_id != submission.id:
        raise Refusal("not_found", "There is no such comment on the submission.", field="path.number", value=number)
    if row.user_id != identity.user_id and not identity.administers:
        raise Refusal("missing_role", "A comment is taken back by whoever wrote it.")
    audit(database, identity.handle, "submission.uncomment", submission.id, text=row.text)
    database.delete(row)
    database.flush()


def check_talk(database: Session, identity: Identity) -> None:
    """Raises Refusal for who writes more than anybody reads."""
    lock_user(database, identity.user_id)
    made = [
        at
        for table in (Comment, Question)
        for at in database.scalars(
            select(table.at).where(table.user_id == identity.user_id, table.at > func.now() - _HOUR)
        )
    ]
    if len(made) >= MOST_AN_HOUR:
        detail = f"{MOST_AN_HOUR} comments and questions of one person are taken within the hour."
        raise Refusal("too_many_messages", detail, headers=retry_after(min(made) + _HOUR))


def unseen(database: Session, user_id: int) -> list[tuple[str, int]]:
    """Somebody's submissions with comments that they have not seen, and how many."""
    rows = database.execute(
        select(Comment.submission_id, func.count())
        .join(Submission, Submission.id == Comment.submission_id)
        .where(Submission.user_id == user_id, Comment.user_id != user_id, Comment.seen_at.is_(None))
        .group_by(Comment.submission_id)
        .limit(3)
    )
    return [(name, count) for name, count in rows]


def answers_unseen(database: Session, course_id: int) -> list[tuple[Submission, int]]:
    """Submissions of a course's members with words of theirs that nobody who teaches them has seen."""
    owner = aliased(Submission)
    rows = database.execute(
        select(Comment.submission_id, func.count())
        .join(owner, (owner.id == Comment.submission_id) & (owner.user_id == Comment.user_id))
        .where(Comment.seen_at.is_(None), Comment.submission_id.in_(select(Submission.id).where(of_course(course_id))))
        .group_by(Comment.submission_id)
        .limit(50)
    )
    return [(database.get_one(Submission, name), count) for name, count in rows]
