"""A stage's submissions with their results, for whoever keeps marks."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from api.csv_text import as_csv
from kernelgate.models import ResultRow, Submission, User

COLUMNS = (
    "submission", "user", "created_at", "finished_at", "state", "round", "verdict", "reason", "mistake", "backend", "gpu_model",
    "speedup", "speedup_low", "speedup_high", "user_ms", "baseline_ms", "hidden", "held", "stage_hash", "source_sha256",
)  # fmt: skip


def results_csv(database: Session, stage: str) -> str:
    return as_csv(COLUMNS, _rows(database, stage))


def _rows(database: Session, stage: str) -> Iterator[list[object]]:
    body = ResultRow.body
    found = database.execute(
        select(
            Submission.id, User.handle, Submission.created_at, Submission.finished_at, Submission.state, Submission.round,
            Submission.verdict, Submission.reason, body["mistake"]["name"].as_string(), Submission.backend,
            Submission.gpu_model, Submission.speedup, ResultRow.speedup_low, ResultRow.speedup_high,
            body["timing"]["user_ms"].as_float(), body["timing"]["baseline_ms"].as_float(), Submission.hidden, Submission.held,
            Submission.stage_hash, Submission.source_hash,
        )
        .join(User, User.id == Submission.user_id)
        .outerjoin(ResultRow, and_(ResultRow.submission_id == Submission.id, ResultRow.round == Submission.round))
        .where(Submission.stage == stage, Submission.trial.is_(None))
        .order_by(Submission.created_at, Submission.id)
    )  # fmt: skip
    for row in found:
        yield [each.isoformat(timespec="seconds") if hasattr(each, "isoformat") else each for each in row]
