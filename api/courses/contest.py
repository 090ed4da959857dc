"""A course's contest: its times, starts of people's own, revealing, and the board as one viewer may see it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.courses.attempts import term
from api.courses.contest_schemas import (
    ContestBody,
    ContestCell,
    ContestRow,
    ContestRules,
    ContestState,
    ContestView,
)
from api.courses.contest_scores import Line, Scores, kept_back, ranks, reveal, with_penalties
from api.courses.kept import version_of
from api.courses.schemas import fields_of
from api.courses.seats import Seat
from api.problems import Refusal
from kernelgate.accounts import audit
from kernelgate.contests import Contest, ContestStart
from kernelgate.models import Course, CourseRole, CourseStage, Member, Submission, now
from kernelgate.stages import Stage

_EVERYTHING = 2**31 - 1
"""What `revealed` says when all is: later judgings keep nothing back again."""


def contest_of(database: Session, course: Course) -> Contest:
    """Raises Refusal for a course that is none."""
    found = database.get(Contest, course.id)
    if found is None:
        raise Refusal("no_contest", f"The course {course.name} has no contest.", field="path.course", value=course.name)
    return found


def set_contest(database: Session, by: Seat, body: ContestBody) -> Contest:
    row = database.get(Contest, by.course.id)
    before = None if row is None else f"{row.starts_at:%Y-%m-%dT%H:%M}/{row.ends_at:%Y-%m-%dT%H:%M}"
    if row is None:
        row = Contest(course_id=by.course.id, revealed=0)
        database.add(row)
    for name in ContestRules.model_fields:
        setattr(row, name, getattr(body, name))
    audit(
        database, by.identity.handle, "course.contest", by.course.name,
        before=before, after=f"{row.starts_at:%Y-%m-%dT%H:%M}/{row.ends_at:%Y-%m-%dT%H:%M}", public=row.public,
    )  # fmt: skip
    database.flush()
    return row


def end_contest(database: Session, by: Seat) -> None:
    """The course stays, without a board over its stages."""
    database.delete(contest_of(database, by.course))
    audit(database, by.identity.handle, "course.contest.remove", by.course.name)
    database.flush()


def start_own(database: Session, by: Seat) -> None:
    """Starts the clock of a latecomer, and of all of their team. Raises Refusal where they cannot have one."""
    contest = contest_of(database, by.course)
    why = _why_no_start(database, by, contest)
    if why is not None:
        raise Refusal("no_own_start", why)
    for user in _side(database, by):
        database.add(ContestStart(course_id=by.course.id, user_id=user))
    audit(database, by.identity.handle, "contest.start", by.course.name)
    database.flush()


def _why_no_start(database: Session, by: Seat, contest: Contest) -> str | None:
    if by.role is not CourseRole.MEMBER:
        return "Only members of the course take part."
    if not contest.virtual:
        return "This contest has one start for all."
    if contest.starts_at > now():
        return f"The contest has not begun; it begins at {contest.starts_at:%Y-%m-%d %H:%M} UTC."
    side = _side(database, by)
    begun = select(ContestStart).where(ContestStart.course_id == by.course.id, ContestStart.user_id.in_(side))
    if database.scalars(begun.limit(1)).one_or_none() is not None:
        return "Your own clock was started before; there is one start."
    stages = select(CourseStage.stage).where(CourseStage.course_id == by.course.id)
    tried = select(Submission.id).where(
        Submission.user_id.in_(side),
        Submission.stage.in_(stages),
        Submission.trial.is_(None),
        Submission.created_at >= contest.starts_at,
    )
    if database.scalar(tried.limit(1)) is not None:
        return "You, or somebody of your team, submitted since the contest began: you take part on its own clock."
    return None


def _side(database: Session, by: Seat) -> list[int]:
    """The caller and their team."""
    own = database.get(Member, (by.course.id, by.identity.user_id))
    if own is None or own.team_id is None:
        return [by.identity.user_id]
    of_team = Member.team_id == own.team_id
    return list(database.scalars(select(Member.user_id).where(Member.course_id == by.course.id, of_team)))


def reveal_more(database: Session, by: Seat, what: str, stages: Mapping[str, Stage]) -> None:
    """Raises Refusal while the contest runs."""
    contest = contest_of(database, by.course)
    if contest.ends_at > now():
        detail = f"The contest runs until {contest.ends_at:%Y-%m-%d %H:%M} UTC; nothing is revealed before."
        raise Refusal("contest_runs", detail)
    scores = _scores(database, by.course, contest, stages)
    hidden = kept_back(scores.frozen(contest)) if contest.freezes_at else 0
    steps = {"next": contest.revealed + 1, "all": hidden, "none": 0}[what]
    contest.revealed = _EVERYTHING if what != "none" and steps >= hidden else steps
    audit(database, by.identity.handle, "contest.reveal", by.course.name, what=what)
    database.flush()


# --------------------------------------------------------------------------------------------------- the board


class _Kept(NamedTuple):
    """A contest's scores, with the boards that were asked for, while nothing that they are made of changes."""

    version: object
    scores: Scores
    boards: dict[tuple[timedelta, bool], list[Line]]

    def board(self, contest: Contest, until: timedelta, *, frozen: bool = False) -> list[Line]:
        if (until, frozen) not in self.boards:
            while len(self.boards) >= _MOST:
                self.boards.pop(next(iter(self.boards)), None)
            self.boards[until, frozen] = with_penalties(self.scores.board(until, frozen=frozen), contest.penalty)
        return self.boards[until, frozen]

    def frozen(self, contest: Contest) -> list[Line]:
        freezes = contest.freezes_at or contest.ends_at
        return self.board(contest, freezes - contest.starts_at, frozen=True)

    def final(self, contest: Contest) -> list[Line]:
        return self.board(contest, contest.ends_at - contest.starts_at)


_MOST = 64
_KEPT: dict[tuple[str, int], _Kept] = {}
_KEEPING = threading.Lock()


def _scores(database: Session, course: Course, contest: Contest, stages: Mapping[str, Stage]) -> _Kept:
    own = select(ContestStart).where(ContestStart.course_id == course.id)
    starts = {row.user_id: row.started_at for row in database.scalars(own)}
    said = (contest.starts_at, contest.ends_at, contest.penalty)
    version = (version_of(database, course, stages), said, tuple(sorted(starts.items())))
    key = (str(database.get_bind().engine.url), course.id)
    kept = _KEPT.get(key)
    if kept is not None and kept.version == version:
        return kept
    made = _Kept(version, Scores(term(database, course), contest, starts, stages), {})
    with _KEEPING:
        _KEPT.pop(key, None)
        while len(_KEPT) >= _MOST:
            del _KEPT[next(iter(_KEPT))]
        _KEPT[key] = made
    return made


def contest_view(
    database: Session, course: Course, stages: Mapping[str, Stage], *, by: Seat | None = None, whole: bool = False
) -> ContestView:
    """The board as everybody sees it, as somebody with a clock of their own does while it runs, or `whole`."""
    contest = contest_of(database, course)
    state = contest_state(contest)
    own = database.get(ContestStart, (course.id, by.identity.user_id)) if by is not None else None
    begun = own.started_at if own is not None else contest.starts_at
    length = contest.ends_at - contest.starts_at
    lines, last, hidden = _shown(database, course, contest, stages, whole, now() - begun if own else None)
    titles = {
        row.stage: stages[row.stage].spec.title if row.stage in stages else row.stage
        for row in database.scalars(
            select(CourseStage)
            .where(CourseStage.course_id == course.id)
            .order_by(CourseStage.place, CourseStage.due_at, CourseStage.stage)
        )
    }
    member = by is not None and by.role is CourseRole.MEMBER
    return ContestView(
        **fields_of(contest, ContestRules),
        course=course.name,
        title=course.title,
        state=state,
        stages={} if state is ContestState.BEFORE else titles,
        your_start=begun if member else None,
        your_end=begun + length if member else None,
        may_start=by is not None and _why_no_start(database, by, contest) is None,
        to_reveal=hidden,
        last=last,
        rows=[_row(line, rank) for line, rank in zip(lines, ranks(lines), strict=True)],
    )


def contest_state(contest: Contest) -> ContestState:
    moment = now()
    if moment < contest.starts_at:
        return ContestState.BEFORE
    if contest.freezes_at is None or contest.revealed == _EVERYTHING:
        return ContestState.RUNNING if moment < contest.ends_at else ContestState.OVER
    if moment < contest.freezes_at:
        return ContestState.RUNNING
    return ContestState.FROZEN if moment < contest.ends_at else ContestState.KEPT_BACK


def stands_still(database: Session, course_id: int) -> datetime | None:
    """Since when members may see nothing new of what is done in a course, while its contest keeps results back."""
    contest = database.get(Contest, course_id)
    if contest is None or contest_state(contest) not in (ContestState.FROZEN, ContestState.KEPT_BACK):
        return None
    return contest.freezes_at


def _shown(
    database: Session,
    course: Course,
    contest: Contest,
    stages: Mapping[str, Stage],
    whole: bool,
    elapsed: timedelta | None,
) -> tuple[list[Line], tuple[str, str] | None, int]:
    """Lines, what was revealed last, and how many results are still kept back."""
    state = contest_state(contest)
    if state is ContestState.BEFORE:
        return [], None, 0
    kept = _scores(database, course, contest, stages)
    still = state in (ContestState.FROZEN, ContestState.KEPT_BACK) and contest.freezes_at is not None
    hidden = max(kept_back(kept.frozen(contest)) - contest.revealed, 0) if still else 0
    if whole:
        return kept.final(contest), None, hidden
    if elapsed is not None and elapsed < contest.ends_at - contest.starts_at:
        until = timedelta(seconds=elapsed.total_seconds() // 10 * 10)
        if still and contest.freezes_at is not None:
            until = min(until, contest.freezes_at - contest.starts_at)
        return [_without_hidden(line) for line in kept.board(contest, until)], None, hidden
    if not still:
        return kept.final(contest), None, 0
    lines, last = reveal(kept.frozen(contest), kept.final(contest), contest.revealed)
    return lines, last, hidden


def _without_hidden(line: Line) -> Line:
    """On a clock of one's own, what others did later is the future."""
    return line._replace(scores={stage: score._replace(hidden=0) for stage, score in line.scores.items()})


def _row(line: Line, rank: int) -> ContestRow:
    cells = [ContestCell.model_construct(stage=stage, **score._asdict()) for stage, score in line.scores.items()]
    return ContestRow.model_construct(
        rank=rank, name=line.participant.name, virtual=line.participant.virtual,
        points=line.points, minutes=line.minutes, cells=cells,
    )  # fmt: skip


def public_course(database: Session, identity: Identity | None, name: str) -> tuple[Course, Seat | None]:
    """The course of a contest that the caller may see. Raises Refusal, the same for all others."""
    course = database.scalars(select(Course).where(Course.name == name)).one_or_none()
    contest = database.get(Contest, course.id) if course is not None else None
    if course is not None and contest is not None:
        member = database.get(Member, (course.id, identity.user_id)) if identity is not None else None
        by = None
        if identity is not None and identity.administers:
            by = Seat(course, identity, None)
        elif identity is not None and member is not None:
            by = Seat(course, identity, CourseRole(member.role))
        if contest.public or by is not None:
            return course, by
    raise Refusal("no_contest", "There is no contest of that name that you may see.", field="path.course", value=name)
