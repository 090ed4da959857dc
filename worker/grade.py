"""One submission from source to result: checked, run by a backend, judged from raw bytes.

Expected values are computed in this process, which runs no submitted code, and never leave it.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelgate.protocol import CaseReport, CaseValues, NamedMistake, Recovered, Result, Trial, WrongTensor
from kernelgate.reasons import Reason
from kernelgate.stages import Backend, Ranking, Stage
from kernelgate.verdicts import Phase
from worker import backends
from worker.gpu.bench_client import BenchError
from worker.judging import judge, values
from worker.judging.dependence import dependences
from worker.judging.failures import Failure
from worker.judging.faster import next_step
from worker.judging.frames import printable
from worker.judging.grader import CaseOutcome, Grader
from worker.judging.job import Ask, CaseRun, Job, never
from worker.judging.machine import facts
from worker.judging.mistakes import mistakes_of, named
from worker.judging.phases import Phases, Progress, Unwatched
from worker.judging.probe import recovered
from worker.judging.source import files_of, read_source
from worker.judging.traffic import table as traffic_table
from worker.sandbox import Sandbox

log = logging.getLogger(__name__)
NOT_UNDERSTOOD = (ValueError, LookupError, TypeError, ArithmeticError, np.linalg.LinAlgError)
"""What an answer may lead to that no case would have: asked again, a submission may return other tensors, of any content."""
TEXT_LIMIT = 40_000
"""Characters of each text of a result. Submitters write in all of them; whoever shows one may take it as plain."""


@dataclass
class Judged:
    """What is known so far about a submission: reports by case, outcomes, the earliest wrong tensor, and its case's numbers."""

    reports: dict[str, CaseReport] = field(default_factory=dict)
    outcomes: list[CaseOutcome] = field(default_factory=list)
    wrong: WrongTensor | None = None
    recovered: Recovered | None = None
    fitting: tuple[NamedMistake, ...] | None = None
    values: CaseValues | None = None


def new_seed() -> str:
    """Hex seed of one grading's inputs: from the system's random source, so no input can be known beforehand."""
    return secrets.token_hex(16)


def grade(
    stage: Stage,
    source: bytes,
    *,
    sandbox: Sandbox,
    seed: str,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = never,
    trial: Trial | None = None,
) -> Result:
    """Grades one submission, or runs one case of it: `trial`.

    Raises Cancelled when asked to stop; any other exception is a fault of ours.
    """
    phases = Phases(progress or Unwatched())
    grader = Grader(stage, trial.inputs if trial else None)
    backend = backends.choose(stage)
    job = Job(
        stage=stage,
        source="",
        grader=grader,
        sandbox=sandbox,
        seed=seed,
        phases=phases,
        cancelled=cancelled,
        trial=trial,
    )
    judged = Judged()
    job.explain = lambda ask: _ask(job, judged, ask)
    try:
        job.source, job.beside = files_of(stage, read_source(stage, source))
        for run in backends.run(backend, job):
            _judge(job, run, judged)
    except Failure as failure:
        _note_failure(job, judged, failure)
        if judged.wrong is None or failure.reason is Reason.RACE:
            return _failed(job, backend, judged, failure)
        # An earlier case was wrong: the earliest evidence decides, and it teaches more than where that led to. A race is the
        # cause of wrong values and never their consequence; it is looked for in some cases only, and any may be the first.
    with phases.during(Phase.JUDGE):
        fitting = judged.fitting
        if judged.wrong and fitting is None:
            fitting = mistakes_of(grader, judged.outcomes)
        tables = job.tables + grader.tables(judged.outcomes)
        tables += (traffic_table(job.traffic),) if job.traffic and job.right else ()
    reason, message = _conclude(job, backend, len(judged.reports), judged.wrong, fitting or ())
    told = {"mistake": fitting[0]} if fitting and len(fitting) == 1 else {"possible": fitting or ()}
    faster = next_step(job) if judged.wrong is None and job.trial is None else None
    more = {"tables": tables, "recovered": judged.recovered, "faster": faster, **told}
    return _result(job, backend, judged, reason, message).model_copy(update=more)


def _judge(job: Job, run: CaseRun, judged: Judged) -> None:
    """Judges one case as soon as it has run. Raises Failure when its form breaks the contract."""
    expected = job.grader.reference(run.case, run.inputs)
    judge.check_form(job.stage, run.case, run.outputs, expected)
    outcome = CaseOutcome(run.case, run.inputs, run.outputs, expected)
    report, wrong = judge.judge_case(job.grader, outcome, run.ms)
    judged.outcomes.append(outcome)
    judged.reports[run.case.name] = report
    if judged.values is None and (wrong is not None or job.trial is not None):
        judged.values = values.of_outcome(job.grader, outcome)
    if judged.wrong is None and wrong is not None:
        judged.wrong = wrong
    job.right = judged.wrong is None
    job.phases.progress.case(len(judged.reports), len(job.cases), report)


def _ask(job: Job, judged: Judged, ask: Ask) -> None:
    """After a wrong answer, while the submission can still run. What comes of it explains, and decides nothing."""
    wrong = [outcome for outcome in judged.outcomes if judged.reports[outcome.case.name].state == "wrong"]
    if not wrong:
        return
    look = recovered if job.stage.spec.probe else dependences
    try:
        with np.errstate(all="ignore"):
            judged.fitting = mistakes_of(job.grader, judged.outcomes, ask, job.seed)
            judged.recovered = look(job.grader, wrong, ask)
    except (*NOT_UNDERSTOOD, BenchError):  # a player that fails at a question has played every case
        log.exception("the answers of a submission to stage %s were not understood", job.stage.name)


def _conclude(
    job: Job, backend: Backend, ran: int, wrong: WrongTensor | None, fitting: Sequence[NamedMistake]
) -> tuple[Reason, str]:
    if wrong is not None:
        return Reason.WRONG_VALUE, _first_wrong(wrong, fitting) + _repeating(job, wrong.case)
    if job.trial is not None:
        return (
            Reason.CASE_RIGHT,
            f"Case {job.cases[0].name} is right. A run counts nowhere; a submission is judged on all cases.",
        )
    total = len(job.cases)
    gate = job.stage.spec.gate
    if gate is None and job.stage.spec.ranking is not Ranking.SPEEDUP:
        return Reason.PASSED, f"All {total} cases are right."
    if job.timing is None:
        return Reason.SPEED_NOT_JUDGED, _unjudged(job, backend, ran)
    measured = f"{job.timing.speedup:.2f}x the baseline ({job.timing.speedup_low:.2f} to {job.timing.speedup_high:.2f})"
    if gate is None:
        return Reason.PASSED, f"All {total} cases are right, at {measured}."
    if job.timing.speedup >= gate.speedup:
        return Reason.PASSED, f"All {total} cases are right, at {measured}; the gate is {gate.speedup:g}x."
    return (
        Reason.TOO_SLOW,
        f"All {total} cases are right, but at {measured}; the gate is {gate.speedup:g}x.",
    )


def _unjudged(job: Job, backend: Backend, ran: int) -> str:
    """What a right submission is told where its speed is not judged, and how many cases a machine with a GPU would add."""
    total, gate = len(job.cases), job.stage.spec.gate
    right = f"All {total} cases are right" if ran == total else f"All {ran} cases that run on this machine are right"
    how = f"{backend.how}: " if backend.how else ""
    notes = [f"{how}speed not judged on this machine"]
    notes += [f"the gate is {gate.speedup:g}x"] if gate else []
    notes += [f"{total - ran} more cases need a GPU"] if ran != total else []
    return f"{right} ({'; '.join(notes)})."


def _first_wrong(wrong: WrongTensor, fitting: Sequence[NamedMistake]) -> str:
    place = ", ".join(f"{axis} {at}" for axis, at in zip(wrong.axes, wrong.index, strict=True))
    where = f"{wrong.tensor} at {place}" if place else wrong.tensor
    got, want = apart(wrong.got, wrong.want)
    message = f"Case {wrong.case}: {where} is {got}, not {want} ({wrong.pattern})."
    if wrong.error < 1e-4 * abs(wrong.want):
        message += f" They are {wrong.error:.2g} apart; {wrong.tolerance:.2g} is allowed there."
    if len(fitting) > 1:
        titles = "; ".join(mistake.title for mistake in fitting)
        return f"{message} One of these {len(fitting)} explains it, and no case tells which: {titles}."
    return f"{message} {fitting[0].title}." if fitting else message


def apart(got: float, want: float) -> tuple[str, str]:
    """Two different numbers with as many digits, nine at least, as it takes to see that they differ."""
    for digits in (9, 12, 15, 17):
        if f"{got:.{digits}g}" != f"{want:.{digits}g}":
            break
    return f"{got:.{digits}g}", f"{want:.{digits}g}"


def _note_failure(job: Job, judged: Judged, failure: Failure) -> None:
    job.log = failure.log or job.log
    case = next((case for case in job.cases if case.name == failure.case), None)
    if case is not None:
        report = CaseReport(name=case.name, title=case.title, group=case.group, state="failed")
        judged.reports[case.name] = report
        job.phases.progress.case(len(judged.reports), len(job.cases), report)
        if judged.values is None and failure.reason is not Reason.OWN_INPUTS:
            judged.values = values.of_inputs(job.grader, case, job.grader.inputs(case, job.seed))


def _failed(job: Job, backend: Backend, judged: Judged, failure: Failure) -> Result:
    result = _result(job, backend, judged, failure.reason, failure.message + _repeating(job, failure.case))
    mistake = named(job.stage, failure.mistake) if failure.mistake else None
    return result.model_copy(update={"mistake": mistake, "verdict": failure.verdict})


def _repeating(job: Job, name: str | None) -> str:
    """How the submitter meets a drawn case again, for the message of a failure in one; else nothing."""
    case = next((case for case in job.cases if case.name == name and case.drawn), None)
    if case is None:
        return ""
    command = f"kernelgate check {job.stage.name} {job.stage.spec.file} --seed {job.seed}"
    return f" {case.name} was drawn for this grading ({case.title}); `{command}` draws it again."


def _result(job: Job, backend: Backend, judged: Judged, reason: Reason, message: str) -> Result:
    cases = tuple(
        judged.reports.get(case.name) or CaseReport(name=case.name, title=case.title, group=case.group, state="not_run")
        for case in job.cases
    )
    return Result(
        verdict=reason.verdicts[0],
        reason=reason,
        message=printable(f"{message} {job.finding}".strip(), limit=TEXT_LIMIT),
        stage=job.stage.name,
        stage_hash=job.stage.hash,
        backend=backend,
        seed=job.seed,
        phases=job.phases.ms,
        cases=cases,
        wrong=judged.wrong,
        values=judged.values,
        timing=job.timing,
        held=job.held,
        resources=job.resources,
        output=printable(job.output, limit=TEXT_LIMIT),
        log=printable(job.log, limit=TEXT_LIMIT),
        machine={**facts(), **job.machine},
    )
