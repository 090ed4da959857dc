"""What the routes of courses answer with, and what they read."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, model_validator

from api.schemas import Body, Title, Word
from kernelgate.models import CourseRole, LateRule, PointsRule
from kernelgate.verdicts import Verdict

CourseName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,38}$")]
Prose = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
_STEP = re.compile(r"\s*([0-9.]+)\s*[×x]?\s*[:=]\s*([0-9.]+)\s*")


def _moment(value: object) -> object:
    """A time as a form sends it, without a zone and perhaps empty: UTC."""
    if value == "":
        return None
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", value):
        return f"{value}+00:00"
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


def _steps(value: object) -> object:
    """`1.2: 4, 1.8: 10` of a form, as [[1.2, 4], [1.8, 10]]."""
    if not isinstance(value, str):
        return value
    found = [_STEP.fullmatch(part) for part in value.split(",")] if value.strip() else []
    if not all(found):
        raise ValueError("speedups and points, as in 1.2: 4, 1.8: 10")
    return [[float(each.group(1)), float(each.group(2))] for each in found if each]


Moment = Annotated[datetime | None, BeforeValidator(_moment)]
Step = Annotated[list[Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]], Field(min_length=2, max_length=2)]
Empty = BeforeValidator(lambda value: None if value == "" else value)


class CourseBody(Body):
    name: CourseName = Field(description="Of its address: small letters, digits and `-`.")
    title: Title = Field(min_length=1)
    late_days: int = Field(0, ge=0, le=100, description="Days that everybody, and each team, may be late in all.")


class CourseChange(Body):
    title: Title | None = Field(None, min_length=1)
    late_days: int | None = Field(None, ge=0, le=100)


class CourseSummary(BaseModel):
    name: str
    title: str
    role: CourseRole | None = Field(
        None, description="What the caller is in it; null for an administrator from outside."
    )
    members: int
    stages: int


class StageRules(BaseModel):
    """Times are in UTC."""

    opens_at: Moment = Field(None, description="Before, its members cannot submit.")
    due_at: Moment = Field(None, description="What was submitted until then counts whole.")
    freezes_at: Moment = Field(None, description="From then on the course's board shows nothing new.")
    late: LateRule = Field(
        LateRule.NONE,
        description="After the due time: `none`: nothing counts; `penalty`: less for each day begun; `days`: late days pay.",
    )
    late_percent: float = Field(0, ge=0, le=100, description="Of `penalty`: percent of the points for each day begun.")
    late_limit: int = Field(0, ge=0, le=100, description="Days after which nothing counts.")
    quota: Annotated[int | None, Empty] = Field(
        None, ge=1, le=10_000, description="Submissions of a person within 24 hours."
    )
    joint: bool = Field(False, description="What one of a team reaches, all of it have; late days are the team's.")
    rule: PointsRule = Field(
        PointsRule.PASS,
        description="`pass`: all points for passing; `thresholds`: by the speedup reached; `ratio`: points × T_best/T, of the "
        "course's best on the same GPU model; `cases`: points × share of right cases.",
    )
    points: float = Field(1, ge=0, le=1e6, allow_inf_nan=False, description="The most there are, `thresholds` aside.")
    steps: Annotated[list[Step], BeforeValidator(_steps)] = Field(
        default_factory=list, max_length=20, description="Of `thresholds`: [speedup, points from it on]; 0 is passing."
    )


class StageBody(StageRules, Body):
    """Everything that a course says of a stage; what is left out is as in a new one."""

    place: int = Field(0, ge=0, le=10_000, description="Its place in the course's order.")

    @model_validator(mode="after")
    def _consistent(self) -> StageBody:
        if self.opens_at and self.due_at and self.opens_at >= self.due_at:
            raise ValueError("due_at: it is not after opens_at")
        if self.rule is PointsRule.THRESHOLDS and not self.steps:
            raise ValueError("steps: thresholds need at least one speedup with its points")
        if self.late is not LateRule.NONE and not self.late_limit:
            raise ValueError("late_limit: a late rule needs the days after which nothing counts, at least 1")
        self.steps = sorted(self.steps)
        return self


class CourseStageView(StageRules):
    stage: str
    title: str = Field(description="The stage's, or its name where its folder is gone.")
    place: int
    your_due_at: datetime | None = Field(
        None, description="The caller's own due time, an extension of theirs included."
    )
    marked_at: datetime | None = Field(None, description="Judgings until then count, beyond what the due time fixed.")


class AnnouncementView(BaseModel):
    id: int
    text: str
    actor: str
    at: datetime


class CourseView(BaseModel):
    name: str
    title: str
    role: CourseRole | None = None
    late_days: int
    stages: list[CourseStageView]
    announcements: list[AnnouncementView] = Field(description="The newest first.")


class MemberView(BaseModel):
    handle: str
    role: CourseRole
    team: str | None = None
    email: str = ""
    person: str = ""
    joined_at: datetime


class RosterBody(Body):
    lines: str = Field(
        max_length=60_000,
        description="One person a line: `e-mail[, name[, team]]`, or a handle, which only those may add who read every "
        "submission of the service; commas or tabs. A first line of column names is skipped.",
    )
    role: CourseRole = CourseRole.MEMBER
    days: float = Field(30, gt=0, le=365, description="Days the invites can be used.")


class InvitedView(BaseModel):
    email: str
    person: str = ""
    team: str = ""
    url: str = Field(description="The person's own link. It is shown this once.")


class RosterAnswer(BaseModel):
    added: list[str] = Field(description="Handles that are in the course now.")
    invited: list[InvitedView] = Field(description="A link for each e-mail address. Nothing is sent from here.")
    skipped: list[str] = Field(description="Lines that were left out, each with why.")


class MemberChange(Body):
    role: CourseRole | None = None
    team: Title | None = Field(None, description="The team's name, made if it is new; empty: none.")
    email: Word | None = None
    person: Word | None = None


class CourseInviteBody(Body):
    role: CourseRole = CourseRole.MEMBER
    uses: int = Field(1, ge=1, le=1000)
    days: float = Field(30, gt=0, le=365)


class CourseInvite(BaseModel):
    url: str = Field(
        description="Whoever opens it joins; with a new account where they have none. It is shown this once."
    )
    role: CourseRole
    uses: int
    expires_at: datetime


class Joined(BaseModel):
    course: str
    role: CourseRole


class ExtensionBody(Body):
    user: Word = Field(description="The member's handle.")
    due_at: Moment = Field(description="Their due time; null takes the extension back.")
    reason: Word = ""


class ExtensionView(BaseModel):
    stage: str
    user: str
    due_at: datetime
    reason: str


class FreezeBody(Body):
    frozen: bool = True


class AnnounceBody(Body):
    text: Prose


class CourseRejudgeBody(Body):
    verdict: Annotated[Verdict | None, Empty] = Field(None, description="Only submissions with this verdict.")
    dry_run: bool = Field(False, description="Only count what would be judged again.")


def fields_of(row: Any, model: type[BaseModel]) -> dict[str, Any]:
    """The model's fields that a row of a table has."""
    return {name: getattr(row, name) for name in model.model_fields if hasattr(row, name)}


class Cell(BaseModel):
    """A person in a stage."""

    stage: str
    verdict: Verdict | None = Field(None, description="The best of all attempts, as they are judged now.")
    speedup: float | None = Field(None, description="The best.")
    attempts: int = Field(0, description="Judged ones.")
    last_at: datetime | None = Field(None, description="When the last one was made.")
    late: int = Field(0, description="Days that the attempt which counts was late.")
    late_days: int = Field(0, description="Late days that it costs.")
    points: float = 0
    counts: str | None = Field(None, description="The submission that earned the points.")
    override: str | None = Field(None, description="The reason, where the points were given by hand.")
    stuck: str | None = Field(None, description="Why the person looks stuck, if they do.")


class GridRow(BaseModel):
    handle: str
    person: str = ""
    email: str = ""
    team: str | None = None
    points: float
    late_days: int
    cells: list[Cell] = Field(description="In the order of the course's stages.")


class Grid(BaseModel):
    course: str
    stages: dict[str, str] = Field(description="Name → title, in the course's order.")
    rows: list[GridRow]


class AttemptView(BaseModel):
    """One attempt of a timeline."""

    id: str
    at: datetime
    verdict: Verdict | None = Field(None, description="As it is judged now; null while it waits.")
    counted_as: Verdict | None = Field(None, description="The judging that counts.")
    speedup: float | None = None
    mistake: str | None = None
    right: int = Field(0, description="Cases right.")
    ran: int = Field(0, description="Cases run.")
    days_late: int = 0
    apart: bool = Field(False, description="Hidden or held: it earns nothing.")
    added: int = Field(0, description="Lines that the attempt before did not have; of the first, all.")
    removed: int = 0


class Timeline(BaseModel):
    course: str
    stage: str
    user: str
    due_at: datetime | None = None
    extended: bool = False
    cell: Cell
    attempts: list[AttemptView] = Field(description="The first one first, the last 200 of them.")


class PointsBody(Body):
    points: Annotated[float | None, Empty] = Field(
        None, ge=0, le=1e6, allow_inf_nan=False, description="In place of those earned; null takes them back."
    )
    reason: Word = Field("", description="Why; the person reads it.")

    @model_validator(mode="after")
    def _reasoned(self) -> PointsBody:
        if self.points is not None and not self.reason.strip():
            raise ValueError("reason: points given by hand need one")
        return self


class Change(BaseModel):
    """What taking over the newest judgings would change for one person in one stage."""

    stage: str
    user: str
    before: float
    after: float


class AlikeSide(BaseModel):
    submission: str
    user: str
    member: bool = Field(description="Whether the person is in this course.")


class AlikePair(BaseModel):
    """Two submissions that have parts in common, names and layout aside. It decides nothing."""

    one: AlikeSide
    other: AlikeSide
    share: float = Field(description="Of the smaller one's parts, those that the other has: 0 to 1.")
    parts: int = Field(description="How many those are.")
