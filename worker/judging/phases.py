"""The steps of one grading, timed and told to whoever watches."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from kernelgate.protocol import CaseReport
from kernelgate.verdicts import Phase


class Progress(Protocol):
    """Somebody who watches a grading: the database, a terminal, or nobody."""

    def phase_started(self, phase: Phase) -> None: ...

    def phase_ended(self, phase: Phase, ms: float) -> None: ...

    def case(self, index: int, total: int, report: CaseReport) -> None: ...

    def measured(self, pairs: int, speedup: float, low: float, high: float) -> None: ...


class Unwatched:
    """A Progress that tells nobody."""

    def phase_started(self, phase: Phase) -> None:
        del phase

    def phase_ended(self, phase: Phase, ms: float) -> None:
        del phase, ms

    def case(self, index: int, total: int, report: CaseReport) -> None:
        del index, total, report

    def measured(self, pairs: int, speedup: float, low: float, high: float) -> None:
        del pairs, speedup, low, high


class Phases:
    """Milliseconds by phase, host clock; a phase that happens twice adds up."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.ms: dict[Phase, float] = {}

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Times the block as `phase`, whether it ends well or raises."""
        self.progress.phase_started(phase)
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - start) * 1e3
            self.ms[phase] = self.ms.get(phase, 0.0) + spent
            self.progress.phase_ended(phase, spent)
