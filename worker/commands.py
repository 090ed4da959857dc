"""Command-line commands of the grading side: `worker`, `check`, `bench`, `stage …`, `doctor`."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelgate.cli.arguments import FILES
from worker.stage_commands import stage
from worker.terminal import JOBS, Watched, find_stage, reasons, tell_grading

if TYPE_CHECKING:
    from kernelgate.stages import Stage
    from worker.sandbox.attacks.ablation import Row
    from worker.stages.calibrate import Grading


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
@FILES
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
    with reasons(), open_sandbox() as sandbox:
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
    with reasons():
        if output is not None:
            output.parent.mkdir(
                parents=True, exist_ok=True
            )  # first: what is measured must not be lost for want of a folder
        with open_sandbox() as sandbox, GradingPool(sandbox, jobs) as pool:
            for done in calibrate.gradings(chosen, pool, [file.resolve()], gradings):
                tell_grading(done)
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
