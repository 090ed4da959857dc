"""Which courses there are, and one of them as it is shown; making, changing and removing one."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.catalog import Catalog
from api.courses.announcing import announcements
from api.courses.schedule import stage_views
from api.courses.schemas import CourseBody, CourseChange, CourseSummary, CourseView
from api.courses.seats import Right, Seat, may_make_courses, seat
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.db import transaction
from kernelgate.models import Course, CourseRole, CourseStage, Member


def courses_of(database: Session, identity: Identity) -> list[CourseSummary]:
    """Those that somebody is in, by title; all, for an administrator."""
    own = select(Member.course_id, Member.role).where(Member.user_id == identity.user_id).subquery()
    people = (
        select(func.count()).where(Member.course_id == Course.id, Member.role == CourseRole.MEMBER).scalar_subquery()
    )
    stages = select(func.count()).where(CourseStage.course_id == Course.id).scalar_subquery()
    wanted = select(Course.name, Course.title, own.c.role, people, stages).outerjoin(own, own.c.course_id == Course.id)
    if not identity.administers:
        wanted = wanted.where(own.c.role.is_not(None))
    return [
        CourseSummary(name=name, title=title, role=role, members=members, stages=count)
        for name, title, role, members, count in database.execute(wanted.order_by(Course.title, Course.name))
    ]


def course_view(database: Session, by: Seat, catalog: Catalog) -> CourseView:
    return CourseView(
        name=by.course.name,
        title=by.course.title,
        role=by.role,
        late_days=by.course.late_days,
        stages=stage_views(database, by, catalog),
        announcements=announcements(database, by.course.id),
    )


def make_course(identity: Identity, body: CourseBody, catalog: Catalog) -> CourseView:
    """Raises Refusal for those who may not, and for a name that is taken."""
    if not may_make_courses(identity):
        raise Refusal("missing_role", f"Courses are made by instructors; {identity.handle} is {identity.role!s}.")
    with transaction() as database:
        if database.scalar(select(Course.id).where(Course.name == body.name)) is not None:
            raise Refusal("course_taken", "There is a course of that name.", field="name", value=body.name)
        course = Course(name=body.name, title=body.title, late_days=body.late_days)
        database.add(course)
        database.flush()
        database.add(
            Member(
                course_id=course.id,
                user_id=identity.user_id,
                role=CourseRole.INSTRUCTOR,
            )
        )
        audit(database, identity.handle, "course.create", course.name, title=course.title)
        database.flush()
        return course_view(database, seat(database, identity, course.name), catalog)


def change_course(identity: Identity, name: str, change: CourseChange, catalog: Catalog) -> CourseView:
    with transaction() as database:
        by = seat(database, identity, name, Right.INSTRUCTOR)
        by.course.title = change.title or by.course.title
        if change.late_days is not None:
            by.course.late_days = change.late_days
        audit(database, identity.handle, "course.change", name, **change.model_dump(exclude_none=True))
        return course_view(database, by, catalog)


def remove_course(database: Session, by: Seat) -> None:
    audit(database, by.identity.handle, "course.delete", by.course.name, title=by.course.title)
    database.delete(by.course)
    database.flush()
