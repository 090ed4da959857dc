"""What a shipped file must get where it is emulated: what is stated for that, and nothing looser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelgate.protocol import NamedMistake, Result
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Backend, Example, Expectation, Stage, StageError
from kernelgate.verdicts import Verdict
from worker.stages.verify import expectation, one_of_each

REFUSED = Expectation(verdict=Verdict.COMPILE_ERROR, reason="cannot_emulate", message="CUB")


@pytest.fixture(scope="module")
def stage() -> Stage:
    return load_stage(settings().graders_dir / "online_attention")


def answer(verdict: Verdict, reason: str, *, backend: Backend = Backend.EMULATOR, **more: Any) -> Result:
    return Result(
        verdict=verdict, reason=reason, message="m", stage="s", stage_hash="0" * 16, backend=backend, seed="0", **more
    )


def example(verdict: Verdict, **more: Any) -> Example:
    return Example(path=Path("x.cu"), verdict=verdict, **more)


def test_what_is_stated_for_the_emulator_counts_there_alone(stage: Stage) -> None:
    stated = example(Verdict.GATE_MISSED, reason="too_slow", emulator=REFUSED)
    result = answer(Verdict.COMPILE_ERROR, "cannot_emulate")
    assert expectation(stage, stated, result) == REFUSED
    timed = result.model_copy(update={"backend": Backend.GPU})
    assert expectation(stage, stated, timed) == Expectation(verdict=Verdict.CORRECT, reason="speed_not_judged")


@pytest.mark.parametrize("verdict", [Verdict.ACCEPTED, Verdict.GATE_MISSED])
def test_without_a_measurement_both_sides_of_a_gate_are_correct(stage: Stage, verdict: Verdict) -> None:
    wanted = expectation(stage, example(verdict, reason="passed"), answer(Verdict.CORRECT, "speed_not_judged"))
    assert (wanted.verdict, wanted.reason) == (Verdict.CORRECT, "speed_not_judged")


@pytest.mark.parametrize(
    "result",
    [
        answer(Verdict.WRONG_ANSWER, "race"),
        answer(Verdict.COMPILE_ERROR, "cannot_emulate"),
        answer(Verdict.CORRECT, "speed_not_judged"),
        answer(Verdict.WRONG_ANSWER, "wrong_value", mistake=NamedMistake(name="other", title="t", hint="h")),
    ],
    ids=lambda result: result.reason,
)
def test_nothing_is_let_through_that_was_not_stated(stage: Stage, result: Result) -> None:
    wrong = example(Verdict.WRONG_ANSWER, reason="wrong_value", mistake="alpha_missing")
    assert expectation(stage, wrong, result) is wrong


def test_a_brief_proof_has_every_verdict_reason_and_mistake(stage: Stage) -> None:
    def kinds(examples: Any) -> set[object]:
        return {(it.verdict, it.reason, it.mistake, it.emulator) for it in examples}

    chosen = list(one_of_each(stage.examples()))
    assert kinds(chosen) == kinds(stage.examples())
    assert len(chosen) == len(kinds(chosen)) < len(list(stage.examples()))
    named = {it.mistake for it in chosen} - {None}
    assert len(named) >= 15


def test_short_leaves_out_what_is_measured_and_keeps_something(stage: Stage) -> None:
    assert [case.name for case in stage.spec.cases if case not in stage.short().spec.cases] == ["profile"]
    assert stage.short().hash == stage.hash
    only = Stage(stage.folder, stage.spec.model_copy(update={"cases": stage.spec.cases[-1:]}), stage.files)
    assert len(only.short().spec.cases) == 1


@pytest.fixture
def stating(stage: Stage) -> Callable[[str], Stage]:
    def with_text(text: str) -> Stage:
        return Stage(stage.folder, stage.spec, {**stage.files, "submissions/expected.toml": text.encode()})

    return with_text


def test_a_statement_keeps_the_folders_verdict_unless_it_names_another(stating: Callable[[str], Stage]) -> None:
    text = '["compile_error/syntax.cu"]\nreason = "nvcc_error"\nemulator = { reason = "compile_time" }\n'
    syntax = next(it for it in stating(text).examples() if it.path.name == "syntax.cu")
    assert syntax.emulator == Expectation(verdict=Verdict.COMPILE_ERROR, reason="compile_time")


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ('"race"', "emulator: it is no table"),
        ('{ verdict = "fine" }', "emulator: verdict"),
        ("{ why = 1 }", "emulator: why"),
    ],
)
def test_a_statement_that_cannot_be_read_is_an_error(stating: Callable[[str], Stage], stated: str, words: str) -> None:
    with pytest.raises(StageError, match=words):
        list(stating(f'["compile_error/syntax.cu"]\nemulator = {stated}\n').examples())
