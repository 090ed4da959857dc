"""Every shipped stage keeps the promises it ships with, as far as this machine can tell without its long cases.

A stage is one folder, so a new one is proven here without anybody writing it down. The solution is graded in all short cases;
so is a file of which it is stated in how many it is right. Any other is graded in those that are quick, a wrong answer in few
of them, and in more where these do not show what they must. Where kernels are emulated or interpreted, which takes seconds of
processor time a file, that is one file of each verdict, and one of each reason that neither the corpus of attacks nor a stage
before it shows in the language: reasons are given by code that all stages share. `stage verify` grades every file in every
case, and has to before a stage is shipped (test_shipped.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from statistics import median

import pytest

from kernelgate.protocol import Result
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Backend, Case, Example, Limits, Stage
from kernelgate.verdicts import Verdict
from tests.exploits.rows import ATTACKS, CONTROLS
from worker.backends import choose, gradable
from worker.grade import grade
from worker.sandbox import Sandbox
from worker.stages.verify import Check, judged, name_of, verify

FEW = 4
"""Cases in which a file is graded first, spread over those that are quick."""
QUICK = 10
"""A case is quick if it takes the solution at most so many times what half of them take: one may take more than all others."""
FEW_S = 2.0
"""Seconds of such a case; a file that takes longer is graded again, under the stage's own limits."""
BUSY = 4
"""How much longer everything may take on a machine that has other work."""
UNGRADED = ("mistake ", "expected.toml", "calibration")
"""Checks of a stage that grade no file."""
STAGES = dict(sorted(load_stages(ROOT / "graders")[0].items()))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", STAGES)
def test_promises_hold(sandbox: Sandbox, name: str) -> None:
    stage = STAGES[name]
    if not gradable(stage):
        pytest.skip(f"this machine has none of {name}'s backends: {', '.join(stage.spec.backends)}")
    slow = choose(stage) in (Backend.EMULATOR, Backend.INTERPRETER)
    only = UNGRADED if slow else (*UNGRADED, "starter")
    checks = [check for part in only for check in verify(stage, sandbox, only=part).checks]
    checks += graded(stage.short(), chosen(stage) if slow else list(stage.examples()), sandbox)
    assert len(checks) > len(stage.spec.mistakes)
    assert [f"{check.name}: {check.detail}" for check in checks if not check.ok] == []


def graded(stage: Stage, examples: list[Example], sandbox: Sandbox) -> Iterator[Check]:
    assert len(list(stage.examples())) > 10
    assert len(examples) > 2
    solution = result_of(patient(stage), f"solution/{stage.spec.file}", sandbox)
    yield Check("solution", solution.verdict.passes, solution.message)
    for example in examples:
        for cases in enough(stage, quick(stage, solution), example):
            check = kept(cases, example, sandbox)
            if check.ok:
                break
        yield check


def enough(stage: Stage, fast: Stage, example: Example) -> tuple[Stage, ...]:
    """In which cases a file is graded, until it gets what it must."""
    if example.verdict.passes and example.message:  # which says how many cases there are
        return stage, patient(stage)
    if example.verdict.passes or example.verdict is Verdict.WRONG_ANSWER:
        return few(fast), fast, patient(stage)
    return fast, stage, patient(stage)  # whatever else it is ends its grading


def patient(stage: Stage) -> Stage:
    """The same stage where a busy machine, which runs other tests beside this one, has more time for each case."""
    limits = stage.spec.limits
    more = {"case_s": BUSY * limits.case_s, "wall_s": BUSY * limits.wall_s}
    return with_(stage, list(stage.spec.cases), limits.model_copy(update=more))


def kept(stage: Stage, example: Example, sandbox: Sandbox) -> Check:
    return judged(stage, example, result_of(stage, name_of(stage, example), sandbox))


def result_of(stage: Stage, name: str, sandbox: Sandbox) -> Result:
    """With the same inputs in every run; test_drawn_cases.py looks at many."""
    seed = sha256(f"{stage.name}/{name}".encode()).hexdigest()[:32]
    return grade(stage, stage.files[name], sandbox=sandbox, seed=seed)


def quick(stage: Stage, solution: Result) -> Stage:
    """The same stage with its quick cases; in Python on a CPU, which takes milliseconds, with less time for each."""
    took = {case.name: case.ms or 0.0 for case in solution.cases}
    longest = QUICK * median(took.values())
    limits = stage.spec.limits
    if choose(stage) is Backend.TORCH:
        limits = limits.model_copy(update={"case_s": min(limits.case_s, FEW_S)})
    return with_(stage, [case for case in stage.spec.cases if took.get(case.name, 0.0) <= longest], limits)


def few(stage: Stage) -> Stage:
    """The same stage with few of its listed cases, the first, the last and some between, and none that is drawn."""
    cases = stage.spec.cases
    step = max(1.0, (len(cases) - 1) / (FEW - 1))
    chosen = {round(step * at) for at in range(FEW) if round(step * at) < len(cases)}
    some = with_(stage, [cases[at] for at in sorted(chosen)], stage.spec.limits)
    files = {name: data for name, data in stage.files.items() if name != "drawn.py"}
    return Stage(some.folder, some.spec, files, replace(some.form, lines=()) if some.form else None)


def with_(stage: Stage, cases: list[Case], limits: Limits) -> Stage:
    spec = stage.spec.model_copy(update={"cases": tuple(cases), "limits": limits})
    return Stage(stage.folder, spec, stage.files, stage.form)


def chosen(stage: Stage) -> list[Example]:
    """Of each verdict the first file, one with a named mistake if there is; one of each reason that nothing before shows."""
    before = by_attacks(stage.spec.language)
    before |= {kind for other in earlier(stage) for kind in map(kind_of, shown(other)) if kind[1]}
    found: dict[tuple[str, str | None], Example] = {}
    for verdict in {example.verdict: None for example in shown(stage)}:
        some = [example for example in shown(stage) if example.verdict is verdict]
        first = next((example for example in some if example.mistake), some[0])
        found[kind_of(first)] = first
        for example in some:
            if example.reason and kind_of(example) not in before:
                found.setdefault(kind_of(example), example)
    return list(found.values())


def by_attacks(language: str) -> set[tuple[str, str | None]]:
    """Verdicts and reasons that files of the corpus get from a service without a GPU (tests/exploits/test_corpus.py)."""
    rows = [row for row in (*ATTACKS, *CONTROLS) if row.language == language and not row.gpu_only]
    return {(row.anywhere.verdict, row.anywhere.reason) for row in rows}


def kind_of(example: Example) -> tuple[str, str | None]:
    return example.verdict, example.reason


def earlier(stage: Stage) -> Iterator[Stage]:
    """The stages of the same language that stand before it, the one with the most files first."""
    same = [each for each in STAGES.values() if each.spec.language == stage.spec.language]
    for each in sorted(same, key=lambda each: (-len(list(each.examples())), each.name)):
        if each.name == stage.name:
            return
        yield each


def shown(stage: Stage) -> list[Example]:
    """Files that get their verdict on a machine without a GPU, in short cases."""
    later = ("too_slow", "wrong_when_timed")
    return [each for each in stage.examples() if each.emulator is None and each.reason not in later]


def test_every_folder_is_a_stage_that_loads() -> None:
    """A stage that does not load would be missing above without anybody noticing."""
    folders = {path.parent.name for path in (ROOT / "graders").glob("[a-z]*/stage.*")}
    assert folders == set(STAGES)
