"""Command-line commands of the grading side: `worker`, `check`, `stage …`, `doctor`."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import click

from kernelgate.evidence import evidence
from kernelgate.protocol import CaseReport, Result
from kernelgate.settings import settings
from kernelgate.stages import Stage, StageError, load_stage, load_stages
from kernelgate.verdicts import Phase
from worker.backends import NoBackendError, gradable
from worker.doctor import examine
from worker.grade import grade, new_seed
from worker.host import open_sandbox
from worker.sandbox import SandboxError
from worker.scaffold import scaffold
from worker.serve import Worker
from worker.verify import Check, record, unverified, verify


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


@click.command()
def worker() -> None:
    """Grade submissions from the queue until stopped.

    Starts one Celery worker with one pool process, sweeps for lost work, verifies new stages, and reports to the database.
    """
    logging.basicConfig(level=settings().log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    sys.exit(Worker().run())


@click.command()
@click.argument("stage")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON instead of the evidence.")
@click.option("--seed", default="", help="Hex seed of the inputs, to repeat a grading; a new one by default.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def check(stage: str, file: Path, as_json: bool, seed: str, quiet: bool) -> None:
    """Grade FILE for STAGE on this machine, without a server.

    Exits with the verdict's status: 0 only for accepted and correct; docs/cli.md lists the others.
    """
    try:
        with open_sandbox() as sandbox:
            result = grade(
                find_stage(stage),
                file.read_bytes(),
                sandbox=sandbox,
                seed=seed or new_seed(),
                progress=None if quiet else Watched(),
            )
    except (NoBackendError, SandboxError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(_shown(result, as_json), nl=False)
    sys.exit(result.verdict.about.exit_status)


def _shown(result: Result, as_json: bool) -> str:
    return result.model_dump_json(indent=2) + "\n" if as_json else evidence(result)


def find_stage(name: str) -> Stage:
    """A stage by its name, or by the path of its folder. Raises click.UsageError naming what there is."""
    folder = Path(name) if "/" in name else settings().graders_dir / name
    try:
        return load_stage(folder.resolve())
    except StageError as error:
        known = ", ".join(load_stages(settings().graders_dir)[0]) or "none"
        raise click.UsageError(f"{error} (stages in {settings().graders_dir}: {known})") from error


@click.group()
def stage() -> None:
    """Make and prove stages."""


@stage.command("verify")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--record", "to_database", is_flag=True, help="Store the outcome, so that a proven stage goes live.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def verify_stages(folders: tuple[Path, ...], to_database: bool, as_json: bool) -> None:
    """Grade everything shipped in stage FOLDERS and fail on any unexpected verdict.

    Without FOLDERS: every stage of the graders folder that this machine can grade, or with --record those of them whose
    version is not yet proven.
    """
    chosen = list(folders) or (unverified(failed_too=True) if to_database else _all_stages())
    reports = []
    try:
        with open_sandbox() as sandbox:
            for folder in chosen:
                click.echo(f"{folder.name}", err=True)
                reports.append(verify(folder.resolve(), sandbox, watch=_tell))
                if to_database:
                    record(reports[-1])
    except (StageError, NoBackendError, SandboxError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps([report.as_json() for report in reports], indent=2))
    failed = sum(not check.ok for report in reports for check in report.checks)
    total = sum(len(report.checks) for report in reports)
    click.echo(f"{len(reports)} stages, {total} checks, {failed} failed", err=True)
    sys.exit(1 if failed else 0)


def _all_stages() -> list[Path]:
    stages, broken = load_stages(settings().graders_dir)
    if broken:
        raise click.ClickException("\n".join(broken.values()))
    for found in stages.values():
        if not gradable(found):
            click.echo(f"{found.name}: left out, this machine has none of {', '.join(found.spec.backends)}", err=True)
    return [found.folder for found in stages.values() if gradable(found)]


def _tell(check: Check) -> None:
    click.echo(f"  {'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}", err=True)


@stage.command("new")
@click.argument("name")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), help="Parent folder; the graders folder by default."
)
def new_stage(name: str, into: Path | None) -> None:
    """Make a stage folder NAME that verifies, to be changed into a stage of your own."""
    try:
        folder = scaffold(name, into or settings().graders_dir)
    except StageError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"made {folder}; prove it with `kernelgate stage verify {folder}`")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> None:
    """Say what this machine can do: sandbox layers, backends, database, broker, stages. Exits 1 when grading cannot work."""
    findings = examine()
    if as_json:
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{'ok  ' if finding.ok else finding.severity:4} {finding.name}: {finding.detail}")
    sys.exit(1 if any(not finding.ok and finding.severity == "FAIL" for finding in findings) else 0)


commands = [worker, check, stage, doctor]
