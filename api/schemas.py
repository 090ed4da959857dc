"""What the API answers with, and what it reads. Field descriptions are the documentation in the OpenAPI document."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from api.catalog import StageState
from kernelgate.calibration import Calibration
from kernelgate.models import Role, Scope
from kernelgate.protocol import OwnInputs, Result, Trial
from kernelgate.stages import Backend, Case, DoneWhen, Gate, Limits, Ranking, Seam, Tensor, Tolerance, Visibility
from kernelgate.verdicts import State, Verdict

Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]


Title = Annotated[str, StringConstraints(max_length=80, pattern=r"^[^\x00-\x1f\x7f]*$")]


def from_json(value: object) -> object:
    """A field of a form that holds JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ValueError('JSON, as in {"scores": [[0, 1.5]]}') from None


Address = Annotated[
    str, StringConstraints(max_length=254, strip_whitespace=True, pattern=r"^([^\s@]{1,64}@[^\s@]{1,189})?$")
]


class RecoveryLink(BaseModel):
    """An administrator's link for somebody who cannot sign in; it works once."""

    handle: str
    url: str
    expires_at: datetime


class Body(BaseModel):
    """What a client sends: unknown fields are refused, so that a misspelt one is not silently ignored."""

    model_config = ConfigDict(extra="forbid")


class SubmitBody(Body):
    stage: Word = Field(description="The stage's name, as in /stages.")
    source: str = Field(description="The file's text.")
    filename: str | None = Field(None, description="A plain file name; its ending must be the stage's.")
    wait: float | None = Field(None, ge=0, description="Seconds to wait for the verdict before answering.")
    gpu: Word | None = Field(None, description="The GPU model to measure on, where the service has several.")
    run: Word | None = Field(
        None,
        description="Run this one case, judge nothing else: no attempt is counted, no board sees it. `first`: the first case.",
    )
    inputs: OwnInputs = Field(
        default_factory=dict,
        description="With `run`: values of your own by an input's name, row by row, in the place of those that are drawn.",
    )


class SubmitForm(Body):
    """The text fields of a multipart submission."""

    stage: Word
    wait: float | None = Field(None, ge=0)
    gpu: Word | None = None
    run: Word | None = None
    inputs: Annotated[OwnInputs, BeforeValidator(from_json)] = Field(default_factory=dict)


class Links(BaseModel):
    """Absolute addresses."""

    submission: str
    events: str
    source: str
    stage: str
    leaderboard: str


class SubmissionSummary(BaseModel):
    """A submission as it stands in lists."""

    id: str
    stage: str
    user: str = Field(description="The submitter's handle.")
    filename: str
    state: State
    verdict: Verdict | None = Field(None, description="Of the newest judging; null until there is one.")
    reason: str | None = Field(None, description="Why, as a word.")
    backend: Backend | None = None
    gpu_model: str | None = None
    speedup: float | None = None
    round: int = Field(description="1, and one more for each rejudging.")
    created_at: datetime
    finished_at: datetime | None = None
    hidden: bool = False
    held: str | None = Field(
        None,
        description="Why it counts nowhere until an administrator has looked at it; hidden as well: it was dismissed.",
    )
    url: str


class SubmissionView(SubmissionSummary):
    """A submission with everything known of it."""

    run: Trial | None = Field(
        None,
        description="The one case that was run, where this is a run and no submission; its verdict counts nowhere.",
    )
    stage_hash: str = Field(description="The stage's version it was submitted to.")
    source_hash: str = Field(description="SHA-256 of the source, hexadecimal.")
    source_bytes: int
    queue: str
    queue_position: int | None = Field(None, description="1 is next; null unless queued.")
    attempt: int = Field(description="How often a worker has taken it in this round.")
    claimed_at: datetime | None = None
    cancel_requested: bool = False
    urls: Links
    result: Result | None = Field(None, description="The newest judging, whole.")


class HeldList(BaseModel):
    """Submissions that wait for an administrator, the oldest first, each with everything known of it."""

    items: list[SubmissionView]


class SubmissionPage(BaseModel):
    """A page of submissions, newest first."""

    items: list[SubmissionSummary]
    next: str | None = Field(None, description="The address of the next page; null on the last one.")


class StageSummary(BaseModel):
    name: str
    title: str
    summary: str
    path: str
    order: int
    needs: list[str] = Field(description="What a reader comes from: names of stages, anything else in words. Advice.")
    hours: str = Field(description="A newcomer's hours, roughly: `2`, `8 to 12`; empty where nothing is stated.")
    language: str
    file: str = Field(description="The name of the submitted file.")
    hash: str = Field(description="The version that lies on disk.")
    ranking: Ranking
    gate: Gate | None = None
    open: bool = Field(description="Whether it takes submissions.")
    state: StageState = Field(
        description="Open, being proven by a worker, failed its proof, or closed by an administrator."
    )
    closed_because: str | None = None
    proof: str | None = Field(
        None, description="How far its proof on this service is, while that runs: 31 of 106, about 2 min."
    )
    frozen_at: datetime | None = Field(None, description="When its leaderboard was frozen, if it is.")


class MistakeView(BaseModel):
    name: str
    title: str
    hint: str


class StageView(StageSummary):
    """Everything a submitter may know of a stage."""

    backends: list[Backend]
    sources: Visibility = Field(description="Who may read the sources of others.")
    several: bool = Field(description="Whether a submission may have further files beside `file`.")
    seam: Seam
    limits: Limits
    tolerance: dict[str, Tolerance] = Field(description="By dtype.")
    tensors: dict[str, Tensor]
    cases: list[Case]
    mistakes: list[MistakeView]
    done_when: list[DoneWhen] = Field(description="Without the answers.")
    files: list[str] = Field(description="Downloads: addresses under /stages/{name}/files/.")
    calibrations: list[Calibration] = Field(
        default_factory=list, description="What the stage's own files measure, a table for each GPU model."
    )


class LeaderboardRow(BaseModel):
    rank: int = Field(description="Equal ranks are ties.")
    user: str
    submission: str = Field(description="The submission's id.")
    verdict: Verdict
    accepted_at: datetime = Field(description="When the submission was made.")
    attempts: int = Field(description="Graded submissions of this user up to and with this one; judge errors aside.")
    speedup: float | None = None
    speedup_low: float | None = Field(None, description="The 95 % interval's lower end.")
    speedup_high: float | None = None
    user_ms: float | None = None
    baseline_ms: float | None = None


class Leaderboard(BaseModel):
    stage: str
    ranking: Ranking
    gpu_model: str | None = Field(None, description="What a speedup board was measured on.")
    gpu_models: list[str] = Field(description="All that there are entries for.")
    frozen_at: datetime | None = None
    total: int = Field(description="Rows of the whole board.")
    rows: list[LeaderboardRow]
    next: str | None = None


class Me(BaseModel):
    handle: str
    role: Role
    scopes: list[Scope]
    via: Literal["token", "session"]
    csrf_token: str | None = Field(None, description="For X-CSRF-Token; a browser session's only.")
    pending: int = Field(description="Submissions queued or running.")
    pending_limit: int
    hourly_limit: int
    run_hourly_limit: int


class TokenView(BaseModel):
    id: int
    name: str
    hint: str = Field(description="Its first characters.")
    scopes: list[str]
    parent_id: int | None = Field(None, description="The token it was made from, and ends with.")
    course: str | None = Field(None, description="The only course that it is good for.")
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


class NewToken(TokenView):
    token: str = Field(description="The secret. It is shown this once and stored nowhere.")


class TokenBody(Body):
    name: Title = Field("", description="What it is for.")
    scopes: list[Scope] | None = Field(None, description="Default: what the account may do, but never `admin`.")
    days: float | None = Field(
        None, gt=0, le=3650, description="Days it lives, unless the token it is made from ends before."
    )
    course: Word | None = Field(
        None, description="The only course that it is good for, one that the account is in; it opens no session."
    )


class SignInBody(Body):
    token: str | None = Field(None, max_length=200, description="An API token.")
    handle: str | None = Field(None, max_length=100, description="In place of a token: the account, with `password`.")
    password: str | None = Field(None, max_length=400, description="The account's password.")
    next: Word | None = Field(None, description="The page to go to afterwards; a path of this service.")


class HandleBody(Body):
    handle: str = Field(max_length=100, description="1 to 39 letters, digits, `_`, `.` or `-`.")


class NewAccountBody(HandleBody):
    password: str = Field("", max_length=400, description="To sign in with; without one, the answer has a first token.")


class SignedIn(BaseModel):
    handle: str
    role: Role
    csrf_token: str = Field(description="For the header X-CSRF-Token of every change made with the cookie.")


class SignedUp(SignedIn):
    token: str | None = Field(
        None,
        description="The first token of an account without a password, shown this once: it is how to sign in again.",
    )


class UserView(BaseModel):
    handle: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None = None
    submissions: int = 0
    email: str = Field("", description="What an administrator wrote down to link the provider's identities by.")


class UserPage(BaseModel):
    items: list[UserView]
    next: str | None = None


class UserBody(Body):
    handle: str = Field(max_length=100)
    role: Role = Role.SUBMITTER


class UserChange(Body):
    role: Role | None = None
    disabled: bool | None = None
    email: Address | None = Field(
        None,
        description="Whoever the provider says has verified it signs in to this account; empty: nobody. Not for admins.",
    )


class UserEnd(Body):
    """How an account ends."""

    into: Word | None = Field(None, description="Merge: the handle that gets everything; without it, all is deleted.")
    confirm: Word = Field(description="The handle of the account that goes, typed again.")


class UserEnded(BaseModel):
    handle: str
    into: str | None = None
    submissions: int = Field(description="Moved, or deleted.")


class HandleChange(Body):
    handle: str = Field(max_length=100, description="1 to 39 letters, digits, `_`, `.` or `-`.")


class InviteBody(Body):
    role: Role = Role.SUBMITTER
    uses: int = Field(1, ge=1, le=1000)
    days: float = Field(7, gt=0, le=365)
    note: Word = ""


class InviteView(BaseModel):
    id: int
    role: Role
    note: str
    uses_left: int
    created_at: datetime
    expires_at: datetime


class NewInvite(InviteView):
    url: str = Field(description="The link to hand out. It is shown this once.")


class QueueView(BaseModel):
    queue: str
    queued: int
    running: int
    oldest_queued_s: float | None = Field(None, description="Seconds the longest-waiting one has waited.")
    live_workers: int


class WorkerView(BaseModel):
    name: str
    queues: list[str]
    backends: list[str]
    gpu_model: str | None = None
    healthy: bool
    live: bool = Field(description="Whether its heartbeat is recent.")
    heartbeat_at: datetime
    started_at: datetime
    health: dict[str, Any] = Field(
        description="What holds and what does not. `cards`: each GPU with gauges, whether it is `well`, `why` not, since when."
    )


class QueueOverview(BaseModel):
    queues: list[QueueView]
    workers: list[WorkerView]
    running: list[SubmissionSummary]


class StageChange(Body):
    enabled: bool | None = None
    frozen: bool | None = None


class AdminStage(StageSummary):
    enabled: bool
    verified: bool
    shipped: bool = Field(
        description="Open because it was proven before it shipped; this service has not proven it yet."
    )
    draft: bool = Field(description="Students do not see it, and it takes no submissions.")
    closed_by: Word | None = Field(None, description="Who closed it, while it is closed.")
    report: dict[str, Any] | None = Field(None, description="What the verification of this version found.")


class AdminStages(BaseModel):
    stages: list[AdminStage]
    broken: dict[str, str] = Field(description="Folders that are no usable stage, with why.")


class RejudgeBody(Body):
    verdict: Verdict | None = Field(None, description="Only submissions with this verdict.")
    dry_run: bool = Field(False, description="Only count what would be judged again.")


class Rejudged(BaseModel):
    submissions: int
    ids: list[str] = Field(description="At most 1000 of them.")


class HideBody(Body):
    hidden: bool = True


class AuditView(BaseModel):
    id: int
    at: datetime
    actor: str
    action: str
    target: str
    data: dict[str, Any]


class AuditPage(BaseModel):
    items: list[AuditView]
    next: str | None = None


class Readiness(BaseModel):
    ready: bool
    problems: list[str]
    database: bool
    broker: bool
    migrations: str = Field(description="`at head`, or what is missing.")
    oldest_queued_s: float | None = None
    live_workers: dict[str, int] = Field(description="By queue.")
    unwell_workers: dict[str, str] = Field(
        default_factory=dict, description="Workers that are alive and take no work, with why."
    )
    stages_open: list[str]
