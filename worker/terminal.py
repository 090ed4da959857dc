"""What the grading side's commands have in common: how they find a stage, report on a terminal, and say what went wrong.

What they use is imported when a command runs: `kernelgate --help` is not to wait for numpy, Celery and a database's library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from kernelgate.protocol import CaseReport
    from kernelgate.stages import Stage
    from kernelgate.verdicts import Phase
    from worker.stages.calibrate import Grading

JOBS = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many to grade at once; on a GPU each still measures alone.",
)


class Watched:
    """A Progress on the terminal's error stream, so that `--json` stays clean."""

    def phase_started(self, phase: Phase) -> None:
        click.echo(f"{phase} …", err=True)

    def phase_ended(self, phase: Phase, ms: float) -> None:
        click.echo(f"{phase} {ms:.0f} ms", err=True)

    def case(self, index: int, total: int, report: CaseReport) -> None:
        click.echo(f"  {index}/{total} {report.name}: {report.state}", err=True)

    def measured(self, pairs: int, speedup: float, low: float, high: float) -> None:
        click.echo(f"  {pairs} pairs: {speedup:.3f}x ({low:.3f} to {high:.3f})", err=True)


@contextmanager
def reasons() -> Iterator[None]:
    """What keeps a machine from grading, or a stage from loading, as a message instead of a traceback."""
    try:
        yield
    except Exception as error:
        if isinstance(error, _told_errors(error)):
            raise click.ClickException(str(error)) from error
        raise


def _told_errors(error: Exception) -> tuple[type[Exception], ...]:
    """What is told in its own words; a slip of a stage's is not to wait for the import of what grades."""
    from kernelgate.stages import StageError

    if isinstance(error, StageError):
        return (StageError,)
    from worker.backends import NoBackendError
    from worker.sandbox import SandboxError
    from worker.stages.calibrate import NotMeasuredError

    return NoBackendError, NotMeasuredError, SandboxError, OSError


def find_stage(name: str) -> Stage:
    """A stage by its name, first of all one that was pulled into this folder, or by the path of its folder.

    Raises click.UsageError naming what there is.
    """
    from kernelgate.settings import settings
    from kernelgate.stage_folders import PULLED, load_stage, load_stages
    from kernelgate.stages import StageError

    pulled = PULLED / name
    folder = Path(name) if "/" in name else pulled if pulled.is_dir() else settings().graders_dir / name
    try:
        return load_stage(folder.resolve(), pulled=True)
    except StageError as error:
        graders = settings().graders_dir
        known = ", ".join(load_stages(graders)[0] if graders.is_dir() else ()) or "none"
        raise click.UsageError(f"{error} (stages in {graders}: {known})") from error


def tell_grading(done: Grading) -> None:
    timing = done.result.timing
    speed = f"{timing.speedup:.3f}x, {timing.user_ms:.4f} ms" if timing else done.result.message[:300]
    click.echo(f"  {done.file}: {done.result.verdict}, {speed}", err=True)
