"""The stages of a course: when they open and are due, for whom later, and when the course's board stands still."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.catalog import Catalog
from api.courses.roster import member_named
from api.courses.schemas import CourseStageView, ExtensionBody, ExtensionView, StageBody, StageRules, fields_of
from api.courses.seats import Seat
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.models import Course, CourseStage, Extension, User, now


def stages_of(database: Session, course: Course) -> list[CourseStage]:
    """In the course's order."""
    wanted = select(CourseStage).where(CourseStage.course_id == course.id)
    return list(database.scalars(wanted.order_by(CourseStage.place, CourseStage.due_at, CourseStage.stage)))


def stage_of(database: Session, course: Course, stage: str) -> CourseStage:
    """Raises Refusal for a stage that the course does not have."""
    row = database.get(CourseStage, (course.id, stage))
    if row is None:
        detail = f"The course {course.name} has no stage of that name."
        raise Refusal("unknown_stage", detail, field="path.stage", value=stage)
    return row


def set_stage(database: Session, by: Seat, stage: str, body: StageBody, catalog: Catalog) -> CourseStage:
    """Puts a stage into the course, or says anew what the course says of it."""
    catalog.stage(stage)
    row = database.get(CourseStage, (by.course.id, stage))
    before = None if row is None else row.due_at
    if row is None:
        row = CourseStage(course_id=by.course.id, stage=stage)
        database.add(row)
    for name in StageBody.model_fields:
        setattr(row, name, getattr(body, name))
    due = {"before": before and before.isoformat(), "after": body.due_at and body.due_at.isoformat()}
    audit(database, by.identity.handle, "course.stage", f"{by.course.name}/{stage}", due=due, points=body.points)
    database.flush()
    return row


def drop_stage(database: Session, by: Seat, stage: str) -> None:
    """Takes a stage out of the course; what was submitted to it stays."""
    database.delete(stage_of(database, by.course, stage))
    audit(database, by.identity.handle, "course.stage.remove", f"{by.course.name}/{stage}")
    database.flush()


def freeze(database: Session, by: Seat, stage: str, frozen: bool) -> CourseStage:
    """Freezes the course's board of a stage now, or thaws it. Frozen again it keeps the first moment."""
    row = stage_of(database, by.course, stage)
    already = row.freezes_at is not None and row.freezes_at <= now()
    if frozen != already or not frozen:
        row.freezes_at = now() if frozen else None
        audit(database, by.identity.handle, f"course.{'freeze' if frozen else 'thaw'}", f"{by.course.name}/{stage}")
    return row


def extend(database: Session, by: Seat, stage: str, body: ExtensionBody) -> ExtensionView | None:
    """Another due time for one person; None when it was taken back."""
    row, member = stage_of(database, by.course, stage), member_named(database, by.course, body.user)
    key = (by.course.id, stage, member.user_id)
    found = database.get(Extension, key)
    audit(
        database, by.identity.handle, "course.extend", f"{by.course.name}/{stage}",
        user=member.user.handle, due=body.due_at and body.due_at.isoformat(), reason=body.reason,
    )  # fmt: skip
    if body.due_at is None:
        if found is not None:
            database.delete(found)
        return None
    if row.due_at is not None and body.due_at < row.due_at:
        detail = "It is before the stage's own due time: an extension gives time and takes none."
        raise Refusal(
            "invalid_field", detail, field="due_at", value=body.due_at.isoformat(), accepted=row.due_at.isoformat()
        )
    if found is None:
        found = Extension(course_id=by.course.id, stage=stage, user_id=member.user_id)
        database.add(found)
    found.due_at, found.reason = body.due_at, body.reason
    return ExtensionView(stage=stage, user=member.user.handle, due_at=found.due_at, reason=found.reason)


def extensions(database: Session, course: Course) -> list[ExtensionView]:
    rows = database.execute(
        select(Extension, User.handle)
        .join(User, User.id == Extension.user_id)
        .where(Extension.course_id == course.id)
        .order_by(Extension.stage, User.handle)
    )
    return [ExtensionView(stage=row.stage, user=handle, due_at=row.due_at, reason=row.reason) for row, handle in rows]


def stage_views(database: Session, by: Seat, catalog: Catalog) -> list[CourseStageView]:
    """Of every stage, with the caller's own due time."""
    own = select(Extension).where(Extension.course_id == by.course.id, Extension.user_id == by.identity.user_id)
    later = {row.stage: row.due_at for row in database.scalars(own)}
    stages = catalog.with_drafts()
    return [
        CourseStageView(
            **fields_of(row, StageRules),
            stage=row.stage,
            title=stages[row.stage].spec.title if row.stage in stages else row.stage,
            place=row.place,
            your_due_at=later.get(row.stage, row.due_at),
            marked_at=row.marked_at,
        )
        for row in stages_of(database, by.course)
    ]
