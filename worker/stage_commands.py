"""`kernelgate stage …`: make, prove, state and measure stages."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from kernelgate.languages import LANGUAGES
from worker.terminal import JOBS, find_stage, reasons, tell_grading

if TYPE_CHECKING:
    from worker.stages.giving_way import GivingWay
    from worker.stages.verify import Check

BESIDE_GRADINGS = 64
"""The sandbox's slot beside a worker's own."""


@click.group()
def stage() -> None:
    """Make and prove stages."""


@stage.command("verify")
@click.argument("folders", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--record", "to_database", is_flag=True, help="Store the outcome, so that a proven stage goes live.")
@click.option(
    "--brief",
    is_flag=True,
    help="Where a stage is emulated here: one file of each kind, long cases where they are needed.",
)
@click.option(
    "--give-way",
    is_flag=True,
    help="Use processor time that nobody else wants, and stop while a submission waits or runs on this host's queues.",
)
@click.option("--only", default="", metavar="TEXT", help="Only checks with this in their name, e.g. starter; no proof.")
@click.option("--watch", is_flag=True, help="Verify the one FOLDER again whenever a file of it changes, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
@JOBS
def verify_stages(
    folders: tuple[Path, ...],
    to_database: bool,
    brief: bool,
    give_way: bool,
    only: str,
    watch: bool,
    as_json: bool,
    jobs: int,
) -> None:
    """Grade everything shipped in stage FOLDERS and fail on any unexpected verdict.

    Without FOLDERS: every stage of the graders folder that this machine can grade, or with --record those of them whose
    version is not yet proven.
    """
    if only and to_database:
        raise click.UsageError(f"--only {only} proves no stage; leave --record away")
    if watch:
        _watch(folders, [f"--only={only}", f"--jobs={jobs}", *(["--brief"] if brief else [])])
    if give_way and jobs > 1:
        raise click.UsageError(f"--give-way works on one file at a time; --jobs is {jobs}")
    way = _giving_way() if give_way else None
    chosen = list(folders) or (_unproven() if to_database else _all_stages())
    if to_database and len(chosen) > 1:
        options = ["--record", f"--jobs={jobs}", *(["--brief"] if brief else []), *(["--give-way"] if give_way else [])]
        with reasons():
            ended = [_proven_apart(folder, options) for folder in chosen]
        sys.exit(0 if all(ended) else 1)
    with reasons():
        _tell_slips(chosen, agreement=not to_database)
    from worker.backends import open_sandbox
    from worker.judging.job import never
    from worker.stages.proving import prove

    slot = BESIDE_GRADINGS if to_database else 0
    reports = []
    with reasons(), open_sandbox(way.taken if way else never, slot) as sandbox:
        for folder in chosen:
            click.echo(f"{folder.name}", err=True)
            reports.append(
                prove(
                    folder.resolve(),
                    sandbox,
                    brief=brief,
                    jobs=jobs,
                    watch=_tell,
                    to_database=to_database,
                    giving_way=way,
                    only=only,
                )
            )
    if as_json:
        click.echo(json.dumps([report.as_json() for report in reports], indent=2))
    failed = sum(not check.ok for report in reports for check in report.checks)
    total = sum(len(report.checks) for report in reports)
    click.echo(f"{len(reports)} stages, {total} checks, {failed} failed", err=True)
    sys.exit(1 if failed else 0)


def _tell_slips(folders: list[Path], *, agreement: bool) -> None:
    """Says at once what a folder cannot be used for, and where it does not agree with itself: a sandbox takes longer to open.

    Raises StageError for the first; ends the process where a stage does not agree.
    """
    from kernelgate.stage_folders import load_stage

    stages = [load_stage(folder.resolve()) for folder in folders]
    from worker.stages.agreement import disagreements

    found = {stage.name: list(disagreements(stage)) for stage in stages if agreement}
    for name, sentences in found.items():
        if sentences:
            click.echo(f"{name}\n  FAIL agreement: {'; '.join(sentences)}")
    if any(found.values()):
        sys.exit(1)


def _proven_apart(folder: Path, options: list[str]) -> bool:
    """Proves a stage in a process of its own: its code may end the process it runs in, and no other stage's proof.

    A proof that ends without a word is recorded as a failed one, or it would begin again for ever.
    """
    from worker.service.die_with_parent import die_with_parent
    from worker.stages.opening import record
    from worker.stages.verify import Check, Report

    command = [sys.executable, "-m", "kernelgate", "stage", "verify", *options, str(folder)]
    # One thread here, so nothing it could hold is held between fork and exec.
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
    if ended.returncode not in (0, 1):
        stage = find_stage(str(folder.resolve()))
        how = f"signal {-ended.returncode}" if ended.returncode < 0 else f"exit status {ended.returncode}"
        what = f"The proof's process was ended by {how}: by the stage's own grader or stage.py, or from outside."
        record(Report(stage.name, stage.hash, [Check("proof", False, what)]))
        click.echo(f"  FAIL proof: {what}", err=True)
    return ended.returncode == 0


def _watch(folders: tuple[Path, ...], options: list[str]) -> NoReturn:
    """Verifies a folder in a process of its own after each change. What is being verified when it changes is left."""
    if len(folders) != 1:
        raise click.UsageError(f"--watch takes one FOLDER; {len(folders)} are named")
    seen: dict[Path, int] = {}
    running: subprocess.Popen[bytes] | None = None
    try:
        while True:
            now = {path: path.stat().st_mtime_ns for path in folders[0].rglob("*.*") if "__pycache__" not in path.parts}
            if now != seen:
                if running is not None:
                    running.terminate()
                    running.wait()
                seen = now
                running = subprocess.Popen(
                    [sys.executable, "-m", "kernelgate", "stage", "verify", *options, str(folders[0])]
                )
            time.sleep(0.3)
    except KeyboardInterrupt:
        sys.exit(0)


def _giving_way() -> GivingWay:
    from worker.service.registration import queues
    from worker.stages.giving_way import GivingWay, idle_priority

    idle_priority()
    return GivingWay(queues())


def _unproven() -> list[Path]:
    from worker.stages.opening import unproven

    found = unproven(failed_too=True)
    return [*found.own, *found.shipped]


@stage.command("ship")
def ship_stages() -> None:
    """State every stage of the graders folder, as it lies there, as proven: it opens at once where it is installed.

    Prove them first (`kernelgate stage verify`). Writes graders/shipped.txt.
    """
    from kernelgate.settings import settings
    from kernelgate.shipped import FILE, write
    from kernelgate.stage_folders import load_stages

    stages, broken = load_stages(settings().graders_dir)
    if broken:
        raise click.ClickException("\n".join(broken.values()))
    write(settings().graders_dir, stages.values())
    click.echo(f"{len(stages)} stages stated in {settings().graders_dir / FILE}")


def _all_stages() -> list[Path]:
    from kernelgate.settings import settings
    from kernelgate.stage_folders import load_stages
    from worker.backends import gradable

    stages, broken = load_stages(settings().graders_dir)
    if broken:
        raise click.ClickException("\n".join(broken.values()))
    for found in stages.values():
        if not gradable(found):
            click.echo(f"{found.name}: left out, this machine has none of {', '.join(found.spec.backends)}", err=True)
    return [found.folder for found in stages.values() if gradable(found)]


def _tell(check: Check) -> None:
    click.echo(f"  {'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}", err=True)


@stage.command("calibrate")
@click.argument("name", metavar="STAGE")
@click.option("--gradings", type=click.IntRange(min=1), default=3, show_default=True, help="Gradings of each file.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there instead of into the stage."
)
@JOBS
def calibrate_stage(name: str, gradings: int, output: Path | None, jobs: int) -> None:
    """Measure STAGE's starter, plain kernels and solutions on this card and store the table with the stage.

    Warns when the gate does not fit the card: the best of them should clear it by a third.
    """
    from kernelgate import calibration
    from worker.backends import open_sandbox
    from worker.stages.calibrate import calibrate
    from worker.stages.pool import GradingPool

    chosen = find_stage(name)
    with reasons():
        with open_sandbox() as sandbox, GradingPool(sandbox, jobs) as pool:
            found = calibrate(chosen, pool, gradings, watch=tell_grading)
        target = output or chosen.folder / calibration.file_name(found.gpu)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(found.model_dump_json(indent=2) + "\n")
    click.echo(calibration.table_lines(found), nl=False)
    for warning in found.warnings():
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"stored in {target}", err=True)


@stage.command("new")
@click.argument("name")
@click.option(
    "--language",
    type=click.Choice(list(LANGUAGES)),
    default="pytorch",
    show_default=True,
    help="What its submissions are written in.",
)
@click.option("--from", "like", metavar="STAGE", help="Start from this stage instead of the language's pattern.")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), help="Parent folder; the graders folder by default."
)
def new_stage(name: str, language: str, like: str | None, into: Path | None) -> None:
    """Make a stage folder NAME that verifies, to be changed into a stage of your own."""
    from kernelgate.settings import settings
    from worker.stages.scaffold import scaffold

    with reasons():
        start = find_stage(like).folder if like else None
        folder = scaffold(name, into or settings().graders_dir, language, start)
    click.echo(f"made {folder}; prove it with `kernelgate stage verify {folder}`")
