"""Everything a person has submitted as one ZIP file: each source and each result, in a folder of its own."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernelgate.models import ResultRow, Submission

_PIECE = 1 << 16
_IN_MEMORY = 8 << 20


def archive(database: Session, user_id: int) -> Iterator[bytes]:
    """The ZIP file in pieces: `stage/2026-01-31_1759_<id>/` with the source and `result-<round>.json` for each judging."""
    file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by the generator that reads it
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        mine = select(Submission).where(Submission.user_id == user_id, Submission.trial.is_(None))
        mine = mine.order_by(Submission.created_at)
        for submission in database.scalars(mine.execution_options(yield_per=100)):
            folder = f"{submission.stage}/{submission.created_at:%Y-%m-%d_%H%M}_{submission.id}"
            packed.writestr(f"{folder}/{_safe(submission.filename)}", submission.source)
            for row in database.scalars(select(ResultRow).where(ResultRow.submission_id == submission.id)):
                packed.writestr(f"{folder}/result-{row.round}.json", json.dumps(row.body, indent=1))
    return _pieces(file)


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", name).lstrip(".") or "source"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece
