"""Command-line commands of the grading side: `worker`, `check`, `bench`, `stage …`, `doctor`.

What they use is imported when one of them runs: `kernelgate --help` is not to wait for numpy, Celery and a database's library.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from kernelgate.languages import LANGUAGES

if TYPE_CHECKING:
    from kernelgate.protocol import CaseReport
    from kernelgate.stages import Stage
    from kernelgate.verdicts import Phase
    from worker.sandbox.attacks.ablation import Row
    from worker.stages.calibrate import Grading
    from worker.stages.giving_way import GivingWay
    from worker.stages.verify import Check

BESIDE_GRADINGS = 64
"""The sandbox's slot beside a worker's own."""
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
def _reasons() -> Iterator[None]:
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


@click.command()
def worker() -> None:
    """Grade submissions from the queue until stopped.

    Starts one Celery worker with a process for each slot (KERNELGATE_WORKER_SLOTS), sweeps for lost work, verifies new
    stages, and reports to the database.
    """
    from kernelgate.settings import settings
    from worker.service.serve import Worker

    logging.basicConfig(level=settings().log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    sys.exit(Worker().run())


@click.command()
@click.argument("stage")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON instead of the evidence.")
@click.option("--seed", default="", help="Hex seed of the inputs, to repeat a grading; a new one by default.")
@click.option("--case", default="", metavar="NAME", help="Run this one case and judge nothing else.")
@click.option("--quick", is_flag=True, help="Leave out the cases that are measured, which are the long ones.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def check(stage: str, files: tuple[Path, ...], as_json: bool, seed: str, case: str, quick: bool, quiet: bool) -> None:
    """Grade FILES for STAGE on this machine, without a server: one file, or several where the stage takes them.

    Exits with the verdict's status: 0 only for accepted and correct; docs/cli.md lists the others.
    """
    from kernelgate.evidence import evidence
    from kernelgate.protocol import Trial
    from worker.backends import open_sandbox
    from worker.grade import grade, new_seed

    whole = find_stage(stage)
    chosen = whole.short() if quick else whole
    names = [each.name for each in whole.runnable]
    if case and case not in names:
        raise click.UsageError(f"{stage} has no case {case!r} that can be run alone; it has {', '.join(names)}")
    source = _source_of(whole, files)
    with _reasons(), open_sandbox() as sandbox:
        result = grade(
            chosen,
            source,
            sandbox=sandbox,
            seed=seed or new_seed(),
            progress=None if quiet else Watched(),
            trial=Trial(case=case) if case else None,
        )
    if left_out := len(whole.spec.cases) - len(chosen.spec.cases):
        click.echo(f"quick: without the {left_out} measured; a submission is graded on all cases", err=True)
    click.echo(result.model_dump_json(indent=2) if as_json else evidence(result, whole.spec.evidence), nl=as_json)
    sys.exit(result.verdict.about.exit_status)


def _source_of(stage: Stage, files: tuple[Path, ...]) -> bytes:
    """One file as it lies there, whatever its name; several as the one text that a server makes of them."""
    from kernelgate.several_files import FilesError, joined

    if len(files) == 1:
        return files[0].read_bytes()
    if not stage.spec.several:
        raise click.UsageError(f"{stage.name} takes one file; {len(files)} are named")
    texts = {file.name: file.read_text(errors="replace") for file in files}
    try:
        return joined(texts, stage.spec.file, stage.spec.language).encode()
    except FilesError as error:
        raise click.UsageError(str(error)) from error


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
        with _reasons():
            ended = [_proven_apart(folder, options) for folder in chosen]
        sys.exit(0 if all(ended) else 1)
    with _reasons():
        _tell_slips(chosen, agreement=not to_database)
    from worker.backends import open_sandbox
    from worker.judging.job import never
    from worker.stages.proving import prove

    slot = BESIDE_GRADINGS if to_database else 0
    reports = []
    with _reasons(), open_sandbox(way.taken if way else never, slot) as sandbox:
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
    with _reasons():
        with open_sandbox() as sandbox, GradingPool(sandbox, jobs) as pool:
            found = calibrate(chosen, pool, gradings, watch=_tell_grading)
        target = output or chosen.folder / calibration.file_name(found.gpu)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(found.model_dump_json(indent=2) + "\n")
    click.echo(calibration.table_lines(found), nl=False)
    for warning in found.warnings():
        click.echo(f"warning: {warning}", err=True)
    click.echo(f"stored in {target}", err=True)


def _tell_grading(done: Grading) -> None:
    timing = done.result.timing
    speed = f"{timing.speedup:.3f}x, {timing.user_ms:.4f} ms" if timing else done.result.message[:300]
    click.echo(f"  {done.file}: {done.result.verdict}, {speed}", err=True)


@click.command()
@click.argument("stage")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--gradings", type=click.IntRange(min=1), default=3, show_default=True, help="Fresh gradings to make.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write every sample there, as JSON.")
@JOBS
def bench(stage: str, file: Path, gradings: int, output: Path | None, jobs: int) -> None:
    """Measure FILE for STAGE on this machine's GPU, again and again, without a server.

    Each grading is a whole one, in a fresh process on new inputs. Prints the grading in the middle and how far they lie
    apart. Exits with the verdict's status; a file that is not right is not measured.
    """
    from worker.backends import open_sandbox
    from worker.stages import calibrate
    from worker.stages.pool import GradingPool

    chosen = find_stage(stage)
    found: list[Grading] = []
    with _reasons():
        if output is not None:
            output.parent.mkdir(
                parents=True, exist_ok=True
            )  # first: what is measured must not be lost for want of a folder
        with open_sandbox() as sandbox, GradingPool(sandbox, jobs) as pool:
            for done in calibrate.gradings(chosen, pool, [file.resolve()], gradings):
                _tell_grading(done)
                found.append(done)
        try:
            if output is not None:
                output.write_text(json.dumps(calibrate.as_json(chosen, found), indent=1) + "\n")
            click.echo(calibrate.told(chosen, found), nl=False)
        except calibrate.NotMeasuredError as error:
            failed = next(each.result for each in found if each.result.timing is None)
            click.echo(str(error), err=True)
            sys.exit(failed.verdict.about.exit_status or 1)
    sys.exit(max(each.result.verdict.about.exit_status for each in found))


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

    with _reasons():
        start = find_stage(like).folder if like else None
        folder = scaffold(name, into or settings().graders_dir, language, start)
    click.echo(f"made {folder}; prove it with `kernelgate stage verify {folder}`")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--layers", "attacks", is_flag=True, help="Attack the sandbox without each of its layers. Minutes.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Sandboxes attacked at once.")
def doctor(as_json: bool, attacks: bool, jobs: int) -> None:
    """Say what this machine can do: sandbox layers, backends, database, broker, stages. Exits 1 when grading cannot work.

    With --layers instead: which attacks get through when one layer is left out, so what it alone stops on this machine.
    Exits 1 when one gets through the whole sandbox.
    """
    if attacks:
        sys.exit(_attack(jobs, as_json))
    from worker.service.doctor import examine

    findings = examine()
    if as_json:
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{'ok  ' if finding.ok else finding.severity:4} {finding.name}: {finding.detail}")
    sys.exit(1 if any(not finding.ok and finding.severity == "FAIL" for finding in findings) else 0)


def _attack(jobs: int, as_json: bool) -> int:
    from kernelgate.settings import settings
    from worker.sandbox.attacks.ablation import ablate, lines

    rows = []

    def watched() -> Iterator[Row]:
        for row in ablate(settings().runner_python, settings().sandbox_uid, jobs=jobs):
            rows.append(row)
            yield row

    for line in lines(watched()):
        click.echo(line, err=as_json)
    if as_json:
        click.echo(json.dumps([asdict(row) for row in rows], indent=2))
    return 1 if rows[0].through else 0


commands = [worker, check, bench, stage, doctor]
