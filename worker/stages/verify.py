"""Proves a stage before anyone meets it: everything shipped in its folder is graded and must get its verdict."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field

from kernelgate.calibration import calibrations
from kernelgate.protocol import Result
from kernelgate.reasons import Reason
from kernelgate.stages import Backend, Example, Expectation, Ranking, Stage, StageError
from kernelgate.verdicts import Verdict
from worker.backends import choose
from worker.grade import grade, new_seed
from worker.judging.failures import Cancelled
from worker.judging.grader import Grader
from worker.judging.judge import separations
from worker.judging.mistakes import SEPARATION
from worker.sandbox import Sandbox
from worker.stages import in_torch
from worker.stages.agreement import disagreements, told
from worker.stages.giving_way import GivingWay
from worker.stages.pool import GradingPool


@dataclass(frozen=True)
class Check:
    """One thing that was tried. `detail` says what was found, and what was expected when it is not `ok`."""

    name: str
    ok: bool
    detail: str


@dataclass
class Report:
    """What a verification found."""

    stage: str
    hash: str
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def verify(
    stage: Stage,
    sandbox: Sandbox,
    *,
    brief: bool = False,
    watch: Callable[[Check], None] = lambda _: None,
    jobs: int = 1,
    giving_way: GivingWay | None = None,
    only: str = "",
) -> Report:
    """Runs every check of one stage, `jobs` at once; `watch` sees each as it ends, in their order: the cheapest first.

    What the stage's own code raises is a failed check. Where the stage does not agree with itself, nothing is graded.
    only: a part of the names of the checks to run.

    giving_way: whom a single job lets go first; the sandbox has to end what runs for it (`open_sandbox`).
    brief: where the stage is emulated here, one file of each kind instead of all, long cases only where short ones do not
    show what must be shown: minutes of processor time instead of a quarter of an hour.
    """
    report = Report(stage.name, stage.hash)
    with GradingPool(sandbox, jobs, giving_way) as pool:
        for check in _checks(stage, pool, brief=is_brief(stage, brief), only=only):
            report.checks.append(check)
            watch(check)
    return report


@dataclass(frozen=True)
class _Brief:
    """A shipped file that is graded in the short cases first, and in all only when those do not show what they should."""

    example: Example


_Shipped = Example | _Brief | Callable[[Stage, Sandbox], Check]


def _checks(stage: Stage, pool: GradingPool, *, brief: bool, only: str = "") -> Iterator[Check]:
    agrees = _agreement(stage)
    yield agrees
    if not agrees.ok:
        return
    if only in _EXPECTATIONS:
        yield _expectations_have_files(stage)
    yield from (check for check in (*_calibrations(stage), *_tolerances(stage)) if only in check.name)
    chosen = [item for item in _items(stage, brief=brief) if only in _label(stage, item)]
    yield from pool.map(stage, _graded, chosen[:1])
    if not only or only.startswith("mistake"):
        yield from _mistakes(stage, pool)
    yield from pool.map(stage, _graded, chosen[1:])


def _tolerances(stage: Stage) -> Iterator[Check]:
    """What was derived, for the author's eye: of each tensor, in every short case."""
    if stage.form is None:
        return
    grader, found = Grader(stage), dict[str, list[str]]()
    for case in stage.short().spec.cases:
        for name, each in grader.tolerances(case).items():
            found.setdefault(name, []).append(f"{case.name} {each.absolute:g} + {each.relative:g}·|want|")
    yield Check("tolerances", True, "; ".join(f"{name}: {', '.join(said)}" for name, said in found.items()))


def _agreement(stage: Stage) -> Check:
    found = list(disagreements(stage))
    return Check("agreement", not found, "; ".join(found) or "grader, seam and expectations speak of the same")


def is_brief(stage: Stage, asked: bool) -> bool:
    return asked and choose(stage) is Backend.EMULATOR


def number_of_checks(stage: Stage, *, brief: bool) -> int:
    """How many checks `verify` makes of a stage."""
    named = sum(mistake.violation is None for mistake in stage.spec.mistakes)
    calibrated = any(name.startswith("calibration/") for name in stage.files)
    return named + 2 + calibrated + bool(stage.form) + len(_items(stage, brief=is_brief(stage, brief)))


def _items(stage: Stage, *, brief: bool) -> list[_Shipped]:
    if brief:
        shipped = [_Brief(example) for example in one_of_each(stage.examples())]
        return [_short_starter, *_baselines(stage), _solution, *shipped]
    return [_starter, *_baselines(stage), _solution, *stage.examples()]


def _baselines(stage: Stage) -> list[_Shipped]:
    """A baseline is graded as any file before it times one; a starter that is the same file stands for it."""
    if stage.spec.language == "triton" and in_torch.NAME in stage.files:
        return [_baseline_in_python]
    text = stage.files.get("baseline.cu")
    return [_baseline] if text is not None and text != stage.files[f"starter/{stage.spec.file}"] else []


def _label(stage: Stage, what: _Shipped) -> str:
    """The name of the check that grades it."""
    if isinstance(what, _Brief):
        return name_of(stage, what.example)
    return name_of(stage, what) if isinstance(what, Example) else _LABELS[what]


def one_of_each(examples: Iterable[Example]) -> Iterator[Example]:
    """The first of the files that must get the same verdict for the same reason with the same mistake named."""
    seen = set()
    for example in examples:
        kind = (example.verdict, example.reason, example.mistake, example.emulator)
        if kind not in seen:
            seen.add(kind)
            yield example


def _mistakes(stage: Stage, pool: GradingPool) -> Iterator[Check]:
    """Every member of every family must show in some case; what shows as a contract violation is proven by its example."""
    names = [mistake.name for mistake in stage.spec.mistakes if mistake.violation is None]
    members = [member for name in names for member in stage.mistake(name).members]
    shares = [share for number in range(pool.jobs) if (share := members[number :: pool.jobs])]
    found: dict[str, tuple[str, float]] = {}
    try:
        for part in pool.map(stage, _separations, shares):
            found |= part
    except Cancelled:
        raise
    except Exception as error:
        yield from (Check(f"mistake {name}", False, told(stage, error)) for name in names)
        return
    for name in names:
        weakest = min(stage.mistake(name).members, key=lambda member: found[member][1])
        case, shown = found[weakest]
        of = f", of {weakest}" if weakest != name else ""
        detail = f"{shown:.3g} tolerances in case {case or '(none)'}{of}; at least {SEPARATION:g} are needed"
        yield Check(f"mistake {name}", shown >= SEPARATION, detail)


def _separations(stage: Stage, _: Sandbox, mistakes: list[str]) -> dict[str, tuple[str, float]]:
    """Those that show in the short cases are not looked for in the long ones, whose references take longest."""
    grader, seed, short = Grader(stage), new_seed(), stage.short().spec.cases
    shown = separations(grader, seed, short, mistakes, enough=SEPARATION)
    unseen = [name for name in mistakes if not shown[name][1] >= SEPARATION]
    long = [case for case in stage.spec.cases if case not in short]
    return shown | (separations(grader, seed, long, unseen, enough=SEPARATION) if long and unseen else {})


def _calibrations(stage: Stage) -> Iterator[Check]:
    """A calibration that cannot be read would be missing from the page without a word."""
    if any(name.startswith("calibration/") for name in stage.files):
        try:
            yield Check("calibration", True, f"of {', '.join(calibrations(stage))}")
        except StageError as error:
            yield Check("calibration", False, str(error))


def _graded(stage: Stage, sandbox: Sandbox, what: _Shipped) -> Check:
    """One file; what the stage's own code raises meanwhile is a failed check, and stops no other."""
    try:
        return _check(stage, sandbox, what)
    except Cancelled:
        raise
    except Exception as error:
        return Check(_label(stage, what), False, told(stage, error))


def _check(stage: Stage, sandbox: Sandbox, what: _Shipped) -> Check:
    if isinstance(what, _Brief):
        check = judged(stage, what.example, _grade(stage.short(), sandbox, name_of(stage, what.example)))
        return check if check.ok else _example(stage, sandbox, what.example)
    return _example(stage, sandbox, what) if isinstance(what, Example) else what(stage, sandbox)


def _solution(stage: Stage, sandbox: Sandbox) -> Check:
    result = _grade(stage, sandbox, f"solution/{stage.spec.file}")
    return Check("solution", result.verdict.passes, _told(result))


def _short_starter(stage: Stage, sandbox: Sandbox) -> Check:
    return _starter(stage.short(), sandbox)


def _starter(stage: Stage, sandbox: Sandbox) -> Check:
    """A starter may be right (behind a gate it must be) but never be all that is asked for."""
    result = _grade(stage, sandbox, f"starter/{stage.spec.file}")
    if stage.spec.gate is None:
        runs = result.verdict in (Verdict.WRONG_ANSWER, Verdict.CONTRACT_VIOLATION, Verdict.RUNTIME_ERROR)
        return Check("starter", runs, f"{_told(result)}; it must load and not pass")
    runs = result.verdict in (Verdict.CORRECT, Verdict.GATE_MISSED)
    return Check("starter", runs, f"{_told(result)}; it must be right and too slow")


def _baseline(stage: Stage, sandbox: Sandbox) -> Check:
    result = _grade(stage.short(), sandbox, "baseline.cu")
    right = result.verdict in (Verdict.CORRECT, Verdict.GATE_MISSED, Verdict.ACCEPTED)
    return Check("baseline.cu", right, f"{_told(result)}; it must be right before it times anything")


def _baseline_in_python(stage: Stage, sandbox: Sandbox) -> Check:
    """A Triton stage's, which may be a Triton kernel or compute in torch: as a submission, or on the CPU as PyTorch is."""
    result = _grade(stage.short(), sandbox, in_torch.NAME)
    if not result.verdict.passes:
        result = _grade(in_torch.in_torch(stage), sandbox, in_torch.NAME)
    return Check(in_torch.NAME, result.verdict.passes, f"{_told(result)}; it must be right before it times anything")


_EXPECTATIONS = "expected.toml"
_LABELS: dict[Callable[[Stage, Sandbox], Check], str] = {
    _solution: "solution",
    _starter: "starter",
    _short_starter: "starter",
    _baseline: "baseline.cu",
    _baseline_in_python: in_torch.NAME,
}


def _expectations_have_files(stage: Stage) -> Check:
    name = "submissions/expected.toml"
    stated = set(tomllib.loads(stage.text(name))) if name in stage.files else set()
    lost = sorted(short for short in stated if f"submissions/{short}" not in stage.files)
    return Check(_EXPECTATIONS, not lost, f"no such files: {lost}" if lost else f"{len(stated)} expectations")


def _example(stage: Stage, sandbox: Sandbox, example: Example) -> Check:
    name = name_of(stage, example)
    result = _grade(stage, sandbox, name)
    if result.verdict is Verdict.TIME_LIMIT is not example.verdict:
        result = _grade(stage, sandbox, name)  # a machine that was busy for a moment is no proof of anything
    return judged(stage, example, result)


def judged(stage: Stage, example: Example, result: Result) -> Check:
    """Whether a result is the one that was promised, in everything that was stated."""
    wanted = expectation(stage, example, result)
    found_mistake = result.mistake.name if result.mistake else None
    ok = (
        result.verdict is wanted.verdict
        and wanted.reason in (None, result.reason)
        and wanted.mistake in (None, found_mistake)
        and (wanted.message is None or wanted.message in result.message)
    )
    name = name_of(stage, example)
    stated = ", ".join(f"{key} {value!r}" for key, value in _stated(wanted))
    return Check(name, ok, _told(result) if ok else f"{_told(result)}; expected {stated}")


def expectation(stage: Stage, example: Example, result: Result) -> Expectation:
    """What the backend of `result` must answer: what is stated for the emulator, where that answered; else what the folder
    promises, except that where speed counts and was not measured, right files are `correct`, on both sides of a gate.
    """
    if result.backend is Backend.EMULATOR and example.emulator is not None:
        return example.emulator
    unmeasured = stage.spec.ranking is Ranking.SPEEDUP and result.timing is None
    if unmeasured and example.verdict in (Verdict.ACCEPTED, Verdict.GATE_MISSED):
        return Expectation(verdict=Verdict.CORRECT, reason=Reason.SPEED_NOT_JUDGED)
    return example


def _stated(wanted: Expectation) -> Iterator[tuple[str, str]]:
    for key in ("verdict", "reason", "mistake", "message"):
        value = getattr(wanted, key)
        if value is not None:
            yield key, str(value)


def name_of(stage: Stage, example: Example) -> str:
    """A shipped file's name in its stage; one that is an edit of another lies in no folder."""
    return example.path.relative_to(stage.folder).as_posix()


def _grade(stage: Stage, sandbox: Sandbox, name: str) -> Result:
    return grade(stage, stage.files[name], sandbox=sandbox, seed=new_seed())


def _told(result: Result) -> str:
    mistake = f", mistake {result.mistake.name}" if result.mistake else ""
    return f"{result.verdict} ({result.reason}{mistake}): {result.message[:300]}"
