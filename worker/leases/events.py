"""What a grading tells while it runs, written to the database as events."""

from __future__ import annotations

import logging

from sqlalchemy.exc import SQLAlchemyError

from kernelgate.protocol import CaseReport, EventKind
from kernelgate.verdicts import Phase
from worker.leases.lease import Lease, tell

log = logging.getLogger(__name__)


class Reported:
    """A Progress whose words become events of the submission."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease

    def phase_started(self, phase: Phase) -> None:
        self._tell(EventKind.PHASE, {"phase": phase, "state": "started"})

    def phase_ended(self, phase: Phase, ms: float) -> None:
        self._tell(EventKind.PHASE, {"phase": phase, "state": "ended", "ms": round(ms, 3)})

    def case(self, index: int, total: int, report: CaseReport) -> None:
        ms = None if report.ms is None else round(report.ms, 3)
        data = {"index": index - 1, "total": total, "name": report.name, "state": report.state, "ms": ms}
        self._tell(EventKind.CASE, data)

    def measured(self, pairs: int, speedup: float, low: float, high: float) -> None:
        self._tell(EventKind.MEASURE, {"pairs": pairs, "speedup": speedup, "low": low, "high": high})

    def _tell(self, kind: EventKind, data: dict[str, object]) -> None:
        """A database that is away for a moment costs a line of the history, not the grading."""
        try:
            tell(self.lease, kind, data)
        except SQLAlchemyError as error:
            log.warning("event %s of %s not written: %s", kind, self.lease.submission_id, type(error).__name__)
