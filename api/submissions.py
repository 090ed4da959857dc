"""Operations on submissions: make, find, show, cancel. Each runs in one transaction of its caller."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, false, func, select, tuple_, update
from sqlalchemy.orm import Session

from api.auth import Identity, challenge
from api.catalog import Catalog, standing
from api.courses.admission import check_courses
from api.courses.seats import teaches
from api.limits import check_submit_limits, lock_user
from api.problems import Refusal
from api.queues import choose_queue
from api.sent import Sent, one_text
from api.source import check_filename, check_source
from kernelgate.lifecycle import CALL_OFF, change, write_state
from kernelgate.models import ResultRow, Submission, User, now
from kernelgate.protocol import Result, Trial
from kernelgate.stages import Stage, Visibility
from kernelgate.turns import turns
from kernelgate.verdicts import State, passing

_BEGINNING = re.compile(r"[0-9a-f]{8,15}")
_MOST_ALIKE = 10
FIRST = "first"
"""Said for the first case of a stage where a case is named."""
TRIALS_KEPT = timedelta(days=1)


def create(database: Session, identity: Identity, sent: Sent, catalog: Catalog) -> tuple[Submission, bool]:
    """The submission, and whether it is new: a key that was used for the same thing gives what it gave then.

    Raises Refusal for a source, stage, key or limit that does not allow it.
    """
    stage = catalog.stage(sent.stage, field="stage")
    sent = one_text(stage, sent)
    filename = check_filename(stage, sent.filename)
    check_source(stage, sent.source)
    source_hash = hashlib.sha256(sent.source).hexdigest()
    trial = trial_of(stage, sent)
    lock_user(database, identity.user_id)
    _keep_account(database, identity)
    earlier = _earlier(database, identity, sent, (stage.name, source_hash, filename, trial))
    if earlier is not None:
        return earlier, False
    closed = standing(database, stage).why_closed(stage)
    if closed is not None:
        raise closed
    check_submit_limits(database, identity.user_id, run=trial is not None)
    if trial is None:
        check_courses(database, identity.user_id, stage.name)
    if trial is not None:
        forget_old_trials(database, identity.user_id)
    submission = Submission(
        user_id=identity.user_id,
        stage=stage.name,
        stage_hash=stage.hash,
        filename=filename,
        source=sent.source,
        source_hash=source_hash,
        via=sent.via,
        idempotency_key=sent.idempotency_key,
        queue=choose_queue(database, stage, sent.gpu),
        trial=trial,
    )
    database.add(submission)
    database.flush()
    write_state(database, submission)
    return submission, True


def _keep_account(database: Session, identity: Identity) -> None:
    """Until the submission is stored its account is not deleted. Raises Refusal for one that was, since the request began."""
    kept = select(User.id).where(User.id == identity.user_id).with_for_update(read=True, key_share=True)
    if database.scalar(kept) is None:
        detail = f"The account {identity.handle} was deleted while this was being submitted; nothing was stored."
        raise Refusal("unknown_token", detail)


def trial_of(stage: Stage, sent: Sent) -> dict[str, Any] | None:
    """What a run asks for, as it is stored; None for a submission. Raises Refusal for a case that cannot be run alone."""
    names = [case.name for case in stage.runnable]
    if sent.run is None:
        if sent.inputs:
            raise Refusal("invalid_field", "Values of your own are for a run.", field="inputs", accepted="with `run`")
        return None
    name = names[0] if sent.run == FIRST and FIRST not in names else sent.run
    if name not in names:
        detail = "That is no case that can be run alone: what is measured, drawn or needs a GPU cannot."
        raise Refusal("invalid_field", detail, field="run", value=sent.run, accepted=", ".join([FIRST, *names]))
    stored: dict[str, Any] = json.loads(Trial(case=name, inputs=dict(sent.inputs)).model_dump_json())
    return stored


def forget_old_trials(database: Session, user_id: int) -> None:
    """Deletes a person's runs of more than a day ago, results and events with them: nothing refers to a run."""
    old = Submission.finished_at < now() - TRIALS_KEPT
    database.execute(delete(Submission).where(Submission.user_id == user_id, Submission.trial.is_not(None), old))


def _earlier(
    database: Session, identity: Identity, sent: Sent, content: tuple[str, str, str, dict[str, Any] | None]
) -> Submission | None:
    key = sent.idempotency_key
    if key is None:
        return None
    mine = select(Submission).where(Submission.user_id == identity.user_id, Submission.idempotency_key == key)
    found = database.scalars(mine).one_or_none()
    if found is not None and (found.stage, found.source_hash, found.filename, found.trial) != content:
        raise Refusal(
            "idempotency_mismatch",
            f"The key was used for submission {found.id}, whose stage, file, name or run differs.",
            field="header.idempotency-key",
            value=key,
            accepted="a key not used before",
        )
    return found


def find(database: Session, submission_id: str, identity: Identity | None, catalog: Catalog) -> Submission:
    """A submission that `identity` may see. Raises Refusal: to everyone else it does not exist."""
    meant = [each for each in matching(database, submission_id) if may_see(database, each, identity, catalog.stages())]
    if len(meant) == 1:
        return meant[0]
    if identity is None:
        raise challenge("not_signed_in", "Submissions are shown to those who may see them; nobody is signed in.")
    raise Refusal("unknown_submission", "There is no submission of this id that you may see.", field="path.id")


def matching(database: Session, submission_id: str) -> list[Submission]:
    """The submission of this id; of a beginning of one, as lists show it, those that begin so."""
    exact = database.get(Submission, submission_id)
    if exact is not None or not _BEGINNING.fullmatch(submission_id):
        return [exact] if exact is not None else []
    begins = (Submission.id >= submission_id) & (Submission.id < submission_id + "g")
    return list(database.scalars(select(Submission).where(begins).limit(_MOST_ALIKE)))


def the_one(database: Session, submission_id: str) -> Submission:
    """For those who may see all. Raises Refusal when there is none, or several begin so."""
    meant = matching(database, submission_id)
    if len(meant) != 1:
        detail = f"The ids of {len(meant)} submissions begin so." if meant else "There is no such submission."
        raise Refusal("unknown_submission", detail, field="path.id", value=submission_id)
    return meant[0]


def may_see(database: Session, submission: Submission, identity: Identity | None, stages: Mapping[str, Stage]) -> bool:
    """Its owner, instructors and admins, the staff of a course that it counts in; others when the stage shows its sources to
    them and it is neither hidden nor held."""
    if identity is not None and (identity.user_id == submission.user_id or identity.reads_all):
        return True
    if identity is not None and submission.trial is None and teaches(database, identity.user_id, submission):
        return True
    stage = stages.get(submission.stage)
    if stage is None or submission.hidden or submission.held or submission.trial is not None:
        return False
    match stage.spec.sources:
        case Visibility.EVERYONE:
            return True
        case Visibility.SOLVERS:
            return identity is not None and has_solved(database, identity.user_id, stage)
    return False


def has_solved(database: Session, user_id: int, stage: Stage) -> bool:
    """Whether the user has a submission that passes the stage, its gate included."""
    solved = exists().where(
        Submission.user_id == user_id,
        Submission.stage == stage.name,
        Submission.verdict.in_(map(str, passing(gated=stage.spec.gate is not None))),
        Submission.held.is_(None),
    )
    return bool(database.scalar(select(solved)))


def result_of(row: ResultRow, submission: Submission) -> Result:
    """A stored result with what administrators made of it since: it says that it is held while it is."""
    return Result.model_validate({**row.body, "held": submission.held or ""})


def newest_result(database: Session, submission_id: str) -> ResultRow | None:
    rows = select(ResultRow).where(ResultRow.submission_id == submission_id)
    return database.scalars(rows.order_by(ResultRow.round.desc()).limit(1)).one_or_none()


def queue_position(database: Session, submission: Submission) -> int | None:
    """1 for the next to be taken from its queue; None unless it is queued."""
    if submission.state != State.QUEUED:
        return None
    ahead = select(func.count()).select_from(Submission).where(ahead_of(database, submission))
    return 1 + (database.scalar(ahead) or 0)


def ahead_of(database: Session, submission: Submission) -> ColumnElement[bool]:
    """Those whose turn is before a queued submission's, as workers claim. One that is judged again waits since then."""
    waiting = turns()
    own = database.execute(select(waiting.c.turn, waiting.c.since).where(waiting.c.id == submission.id)).one_or_none()
    if own is None:
        return false()
    before = tuple_(waiting.c.turn, waiting.c.since) < tuple_(own.turn, own.since)
    return Submission.id.in_(select(waiting.c.id).where(waiting.c.queue == submission.queue, before))


def cancel(database: Session, submission: Submission) -> Submission:
    """Ends a queued submission; asks the worker of a running one to stop. Raises Refusal when it is finished already.

    A worker may be claiming the submission at this moment.
    """
    this = Submission.id == submission.id
    if not change(database, CALL_OFF, this & (Submission.state == State.QUEUED)):
        asked = update(Submission).where(this, Submission.state == State.RUNNING).values(cancel_requested=True)
        if database.execute(asked.returning(Submission.id)).one_or_none() is None:
            raise Refusal("already_final", f"Submission {submission.id} is {submission.state}.", field="path.id")
    database.refresh(submission)
    return submission
