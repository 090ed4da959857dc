"""Results held back for an administrator: the list, and the two things that can be decided.

A held result counts nowhere: no board, no standing, nobody else's eyes. Released it counts from then on, ranked by when it was
submitted; dismissed it stays hidden with the reason kept, and showing it again puts it back on the list.
"""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from api.auth import Identity
from api.problems import Refusal
from api.submissions import the_one
from kernelgate.accounts import audit
from kernelgate.models import Submission

SHOWN = 200
_WAITS = Submission.held.is_not(None) & Submission.hidden.is_(False)


def held_submissions(database: Session) -> list[Submission]:
    """Those that wait for a decision, the oldest first, at most SHOWN of them."""
    return list(database.scalars(select(Submission).where(_WAITS).order_by(Submission.created_at).limit(SHOWN)))


def held_count(database: Session) -> int:
    return database.scalar(select(func.count()).select_from(Submission).where(_WAITS)) or 0


def release(database: Session, admin: Identity, submission_id: str) -> Submission:
    """Lets a held submission count. Raises Refusal when it is not held."""
    submission = _held(database, submission_id)
    audit(database, admin.handle, "submission.release", submission.id, round=submission.round, held=submission.held)
    submission.held = None
    return submission


def dismiss(database: Session, admin: Identity, submission_id: str) -> Submission:
    """Keeps a held submission from counting. Raises Refusal when it is not held."""
    submission = _held(database, submission_id)
    audit(database, admin.handle, "submission.dismiss", submission.id, round=submission.round, held=submission.held)
    submission.hidden = True
    return submission


def _held(database: Session, submission_id: str) -> Submission:
    submission = the_one(database, submission_id)
    database.refresh(submission, with_for_update={"of": Submission})
    if submission.held is None or submission.hidden:
        why = "was dismissed; show it again first" if submission.held else "counts already"
        raise Refusal("not_held", f"Submission {submission.id} {why}.", field="path.id", value=submission_id)
    return submission
