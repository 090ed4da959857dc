"""Who may do what in a course. A course that somebody has no seat in does not exist for them: 404."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from sqlalchemy import exists, select
from sqlalchemy.orm import Session, aliased

from api.auth import Identity
from api.problems import Refusal
from kernelgate.contests import Contest
from kernelgate.models import Course, CourseRole, CourseStage, Member, Role, Submission


class Right(IntEnum):
    """What a seat allows; each has those below it."""

    MEMBER = 0
    """Sees the course, and of what people did their own."""
    STAFF = 1
    """Sees what every member did; judges again, hides, extends, freezes, announces."""
    INSTRUCTOR = 2
    """Changes people, teams, stages, points."""


_RIGHT = {
    CourseRole.MEMBER: Right.MEMBER,
    CourseRole.ASSISTANT: Right.STAFF,
    CourseRole.INSTRUCTOR: Right.INSTRUCTOR,
}


@dataclass(frozen=True)
class Seat:
    """Somebody in a course. role is None for an administrator, who may do everything in every course."""

    course: Course
    identity: Identity
    role: CourseRole | None
    contest: bool = False
    """Whether the course is one."""

    @property
    def right(self) -> Right:
        return Right.INSTRUCTOR if self.role is None else _RIGHT[self.role]

    @property
    def staff(self) -> bool:
        return self.right >= Right.STAFF

    @property
    def instructs(self) -> bool:
        return self.right >= Right.INSTRUCTOR

    def sees(self, user_id: int) -> bool:
        """Whether what that person did in the course is theirs to see."""
        return self.staff or user_id == self.identity.user_id


def seat(database: Session, identity: Identity, name: str, needs: Right = Right.MEMBER) -> Seat:
    """The caller's seat in the course of this name. Raises Refusal without one, or when it does not allow what is needed."""
    course = database.scalars(select(Course).where(Course.name == name)).one_or_none()
    member = database.get(Member, (course.id, identity.user_id)) if course is not None else None
    if course is None or (member is None and not identity.administers):
        raise Refusal(
            "unknown_course", "There is no course of that name that you are in.", field="path.course", value=name
        )
    role = None if identity.administers else CourseRole(member.role) if member is not None else CourseRole.MEMBER
    found = Seat(course, identity, role, contest=database.get(Contest, course.id) is not None)
    if found.right < needs:
        who = "an instructor" if needs is Right.INSTRUCTOR else "its staff"
        raise Refusal("missing_role", f"In this course that is for {who}; {identity.handle} is {role!s}.")
    return found


def may_make_courses(identity: Identity) -> bool:
    """Whoever reads every submission anyway, and administrators."""
    return identity.administers or identity.role in (Role.INSTRUCTOR, Role.ADMIN)


def teaches(database: Session, user_id: int, submission: Submission) -> bool:
    """Whether somebody is staff of a course whose member made the submission, to one of its stages."""
    staff, owner = aliased(Member), aliased(Member)
    found = exists().where(
        staff.user_id == user_id,
        staff.role != CourseRole.MEMBER,
        owner.course_id == staff.course_id,
        owner.user_id == submission.user_id,
        owner.role == CourseRole.MEMBER,
        CourseStage.course_id == staff.course_id,
        CourseStage.stage == submission.stage,
    )
    return bool(database.scalar(select(found)))
