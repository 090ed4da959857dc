"""What an administrator does: accounts, stages, judging again. Each leaves a line in the audit log, in the same transaction."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.orm import Session, defer

from api.auth import Identity
from api.catalog import Catalog, standings
from api.problems import Refusal
from api.schemas import AdminStage, AdminStages, StageChange, UserChange, UserEnd, UserEnded, UserView
from api.submissions import the_one
from api.views import stage_summary
from kernelgate.accounts import AccountError, audit, delete_user, find_user, merge_users, rename_user
from kernelgate.lifecycle import REJUDGE, change
from kernelgate.models import Audit, Role, StageSwitch, StageVersion, Submission, User, now
from kernelgate.models import Session as BrowserSession
from kernelgate.stages import Stage
from kernelgate.verdicts import State, Verdict

_NOTE = "an administrator had it judged again"


def user_named(database: Session, handle: str) -> User:
    """Raises Refusal when there is no such account."""
    user = find_user(database, handle)
    if user is None:
        raise Refusal("unknown_user", "There is no such account.", field="path.handle", value=handle)
    return user


def user_view(user: User, submissions: int = 0) -> UserView:
    return UserView(
        handle=user.handle,
        role=Role(user.role),
        created_at=user.created_at,
        disabled_at=user.disabled_at,
        submissions=submissions,
        email=user.email,
    )


def change_user(database: Session, admin: Identity, user: User, change: UserChange) -> User:
    """Changes role or standing. Disabling ends the account's sessions at once; its tokens get 403."""
    loses = change.disabled is True or (change.role is not None and change.role is not Role.ADMIN)
    if loses and user.role == Role.ADMIN and user.disabled_at is None and not _other_admin(database, user):
        raise Refusal("last_admin", f"{user.handle} is the only administrator.", field="handle", value=user.handle)
    if change.role is not None and change.role != user.role:
        audit(database, admin.handle, "user.role", user.handle, before=user.role, after=str(change.role))
        user.role = change.role
    if change.email is not None and change.email != user.email:
        _write_down(database, admin, user, change.email)
    if change.disabled is not None and change.disabled != (user.disabled_at is not None):
        audit(database, admin.handle, "user.disable" if change.disabled else "user.enable", user.handle)
        user.disabled_at = now() if change.disabled else None
        database.execute(delete(BrowserSession).where(BrowserSession.user_id == user.id))
    return user


def _write_down(database: Session, admin: Identity, user: User, email: str) -> None:
    """The address that the provider's identities are linked by. Raises Refusal when another account has it."""
    taken = database.scalars(select(User).where(func.lower(User.email) == email.lower(), User.id != user.id)).first()
    if email and taken is not None:
        detail = f"It is the address of {taken.handle}."
        raise Refusal(
            "invalid_field", detail, field="email", value=email, accepted="an address that no other account has"
        )
    audit(database, admin.handle, "user.email", user.handle, before=user.email, after=email)
    user.email = email


def end_user(database: Session, admin: Identity, user: User, body: UserEnd) -> UserEnded:
    """Merges an account into another one, or deletes it with everything it has. Raises Refusal for the last administrator."""
    if body.confirm != user.handle:
        raise Refusal(
            "invalid_field", "It is not the handle of the account that goes.", field="confirm", value=body.confirm,
            accepted=user.handle,
        )  # fmt: skip
    if user.role == Role.ADMIN and not _other_admin(database, user):
        raise Refusal("last_admin", f"{user.handle} is the only administrator.", field="handle", value=user.handle)
    handle, into = user.handle, user_named(database, body.into) if body.into else None
    try:
        count = merge_users(database, user, into) if into is not None else delete_user(database, user)
    except AccountError as error:
        raise Refusal("invalid_field", f"{error}.", field="handle", value=handle) from error
    if into is not None:
        audit(database, admin.handle, "user.merge", into.handle, merged=handle, submissions=count)
    else:
        audit(database, admin.handle, "user.delete", handle, submissions=count)
    return UserEnded(handle=handle, into=into.handle if into else None, submissions=count)


def rename(database: Session, admin: Identity, user: User, handle: str) -> User:
    """Raises Refusal for a handle that cannot be had."""
    try:
        before = rename_user(database, user, handle.strip())
    except AccountError as error:
        code = "handle_taken" if "taken" in str(error) else "invalid_field"
        raise Refusal(code, f"{error}.", field="handle", value=handle) from error
    audit(database, admin.handle, "user.rename", user.handle, before=before)
    return user


def _other_admin(database: Session, user: User) -> bool:
    """Whether another enabled admin exists; their rows are locked, so two admins cannot demote each other at once."""
    admins = select(User.id).where(User.role == Role.ADMIN, User.disabled_at.is_(None)).order_by(User.id)
    return any(found != user.id for found in database.scalars(admins.with_for_update()))


def admin_stages(database: Session, stages: dict[str, Stage]) -> list[AdminStage]:
    """Every usable stage with its switch and what the verification of the version on disk found."""
    found = standings(database, stages)
    closers = _closers(database, [name for name in stages if not found[name].enabled])
    reports: dict[tuple[str, str], dict[str, Any] | None] = {
        (row.stage, row.hash): row.report for row in database.scalars(select(StageVersion))
    }
    return [
        AdminStage.model_validate(
            {
                **stage_summary(stage, found[name]).model_dump(),
                "enabled": found[name].enabled,
                "verified": found[name].verified,
                "shipped": found[name].shipped,
                "draft": stage.spec.draft,
                "closed_by": closers.get(name),
                "report": reports.get((name, stage.hash)),
            }
        )
        for name, stage in stages.items()
    ]


def _closers(database: Session, closed: list[str]) -> dict[str, str]:
    """Who closed these stages, as the audit log has it."""
    said = (
        select(Audit.target, Audit.actor)
        .where(Audit.action == "stage.disable", Audit.target.in_(closed))
        .order_by(Audit.id)
    )
    return {row[0]: row[1] for row in database.execute(said)} if closed else {}


def all_stages(database: Session, catalog: Catalog) -> AdminStages:
    """Every usable stage, and the folders that are none."""
    return AdminStages(stages=admin_stages(database, catalog.with_drafts()), broken=catalog.broken())


def change_stage(database: Session, admin: Identity, name: str, change: StageChange) -> None:
    """Opens, closes, freezes or thaws a stage; freezing again keeps the first moment."""
    switch = database.get(StageSwitch, name, with_for_update=True)
    if switch is None:
        switch = StageSwitch(stage=name, enabled=True, frozen=False)
        database.add(switch)
    if change.enabled is not None and change.enabled != switch.enabled:
        switch.enabled = change.enabled
        audit(database, admin.handle, "stage.enable" if change.enabled else "stage.disable", name)
    if change.frozen is not None and change.frozen != switch.frozen:
        switch.frozen = change.frozen
        switch.frozen_at = now() if change.frozen else None
        audit(database, admin.handle, "stage.freeze" if change.frozen else "stage.thaw", name)


def rejudge_one(database: Session, admin: Identity, submission_id: str) -> Submission:
    """Opens a new round of a finished submission; its old results stay. Raises Refusal when it is not finished."""
    found = the_one(database, submission_id)
    if found.trial is not None:
        raise Refusal(
            "not_final", f"{found.id} is a run of one case: it has no verdict to be judged again.", field="path.id"
        )
    submission_id = found.id
    opened = open_round(database, Submission.id == submission_id)
    if not opened:
        raise Refusal("not_final", f"Submission {submission_id} is queued or running.", field="path.id")
    audit(database, admin.handle, "submission.rejudge", submission_id, round=opened[0].round)
    return opened[0]


def rejudge_stage(
    database: Session, admin: Identity, stage: str, verdict: Verdict | None, *, dry_run: bool
) -> list[Submission]:
    """Opens a new round of every graded submission of a stage, or of those with one verdict. `dry_run` only finds them."""
    wanted = Submission.stage == stage
    wanted = wanted & (Submission.verdict.is_not(None) if verdict is None else Submission.verdict == verdict)
    if dry_run:
        done = select(Submission).where(wanted, Submission.state == State.DONE).options(defer(Submission.source))
        return list(database.scalars(done))
    opened = open_round(database, wanted & (Submission.state == State.DONE))
    audit(
        database,
        admin.handle,
        "stage.rejudge",
        stage,
        verdict=str(verdict) if verdict else None,
        submissions=len(opened),
    )
    return opened


def open_round(database: Session, wanted: ColumnElement[bool], note: str = _NOTE) -> list[Submission]:
    """Queues finished submissions again; one that is running keeps its lease and its result."""
    return change(database, REJUDGE, wanted, note=note)


def hide(database: Session, admin: Identity, submission_id: str, hidden: bool) -> Submission:
    """Takes a submission off the leaderboard and out of the sight of others, or puts it back."""
    submission = the_one(database, submission_id)
    if submission.hidden != hidden:
        submission.hidden = hidden
        audit(database, admin.handle, "submission.hide" if hidden else "submission.show", submission.id)
    return submission


def submission_counts(database: Session, user_ids: list[int]) -> dict[int, int]:
    rows = database.execute(
        select(Submission.user_id, func.count())
        .where(Submission.user_id.in_(user_ids), Submission.trial.is_(None))
        .group_by(Submission.user_id)
    )
    return {row[0]: row[1] for row in rows}
