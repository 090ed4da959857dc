"""One stage proven and, where asked, opened or closed by what came of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernelgate.shipped import is_shipped
from kernelgate.stage_folders import load_stage
from worker.sandbox import Sandbox
from worker.stages.giving_way import GivingWay
from worker.stages.opening import Progress, record
from worker.stages.verify import Check, Report, number_of_checks, verify


def prove(
    folder: Path,
    sandbox: Sandbox,
    *,
    brief: bool,
    jobs: int,
    watch: Callable[[Check], None],
    to_database: bool,
    giving_way: GivingWay | None = None,
    only: str = "",
) -> Report:
    """Verifies a stage, telling the database how far it is and what came of it where asked.

    giving_way: whom it lets go first. What ran between others' submissions is tried twice before it closes a stage.
    Raises StageError when the folder cannot be read.
    """
    stage = load_stage(folder)
    report = Report(stage.name, stage.hash)
    for _ in range(1 if giving_way is None else 2):
        watchers = [watch]
        if to_database:
            total = number_of_checks(stage, brief=brief)
            watchers.append(Progress(stage, total, shipped=giving_way is not None and is_shipped(stage)))
        report = verify(stage, sandbox, brief=brief, watch=_all(watchers), jobs=jobs, giving_way=giving_way, only=only)
        if report.ok:
            break
    if to_database:
        record(report)
    return report


def _all(watchers: list[Callable[[Check], None]]) -> Callable[[Check], None]:
    def told(check: Check) -> None:
        for watch in watchers:
            watch(check)

    return told
