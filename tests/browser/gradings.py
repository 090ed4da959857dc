"""Gradings of files that make a known mistake: the mistake's own values, judged by the judge that judges submissions."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from functools import cache

import numpy as np
from sqlalchemy.orm import Session

from kernelgate.lifecycle import columns_of
from kernelgate.models import ResultRow, Submission, User, now
from kernelgate.protocol import CaseReport, Result
from kernelgate.stages import Backend, Ranking, Stage
from kernelgate.verdicts import Phase, State, Verdict
from worker.judging.arrays import Float64, RawTensor
from worker.judging.grader import CaseOutcome, Grader
from worker.judging.judge import judge_case
from worker.judging.mistakes import named

SEED = "0123456789abcdef"
MADE = ("alpha_missing_on_normalizer", "alpha_missing_on_normalizer", "latest_block_maximum", "alpha_inverted",
        "alpha_missing_on_normalizer", "alpha_missing", "numerator_normalized", "base_two")  # fmt: skip
STREAMED = ("denominator_not_rescaled", "one_key_too_many", None, "denominator_not_rescaled", "tile_maximum", None)
BROKEN = 'attention.cu(14): error: identifier "row_maximum" is undefined\n1 error detected in the compilation.\n'


def fill(session: Session, stages: dict[str, Stage], root: User, people: list[User]) -> dict[str, str]:
    """Stores them, spread over the accounts; pages by name."""
    softmax, attention, streaming = (
        stages[name] for name in ("online_softmax", "online_attention", "streaming_attention")
    )
    for place, (person, mistake) in enumerate(zip(people, MADE, strict=False)):
        store(session, person, softmax, judged(softmax, mistake, Backend.TORCH), _source(softmax), hours=60 - place)
    for place, person in enumerate(people[2:]):
        store(session, person, softmax, judged(softmax, None, Backend.TORCH), _source(softmax), hours=45 - place)
    for place, (person, mistake) in enumerate(zip(people, STREAMED, strict=False)):
        result = judged(streaming, mistake, Backend.INTERPRETER)
        store(session, person, streaming, result, streaming.files["starter/streaming_attention.py"], hours=9 - place)
    own = {
        "wrong": judged(attention, "alpha_missing_on_l", Backend.GPU),
        "correct": judged(attention, None, Backend.EMULATOR),
        "compile-error": _compile_error(attention),
    }
    pages = {name: _page(store(session, root, attention, result, attention.files["starter/attention.cu"], hours=place))
             for place, (name, result) in enumerate(own.items(), 2)}  # fmt: skip
    result = judged(streaming, "one_key_too_many", Backend.INTERPRETER)
    starter = streaming.files["starter/streaming_attention.py"]
    return {**pages, "wrong-triton": _page(store(session, root, streaming, result, starter, hours=1))}


def store(session: Session, person: User, stage: Stage, result: Result, source: bytes, *, hours: float) -> Submission:
    """A graded submission, made `hours` ago."""
    at = now() - timedelta(hours=hours)
    timing = result.timing
    row = Submission(
        user_id=person.id, stage=stage.name, stage_hash=stage.hash, filename=stage.spec.file, source=source,
        source_hash=hashlib.sha256(source).hexdigest(), via="web", created_at=at, state=State.DONE, attempt=1,
        claimed_at=at + timedelta(seconds=1), finished_at=at + timedelta(seconds=5),
        **{**columns_of(result), "gpu_model": "NVIDIA H200" if timing else None},
    )  # fmt: skip
    session.add(row)
    session.flush()
    session.add(
        ResultRow(
            submission_id=row.id, round=1, attempt=1, worker="gpu-1" if timing else "cpu-1", verdict=str(result.verdict),
            reason=result.reason, stage_hash=stage.hash, speedup=timing.speedup if timing else None, created_at=at,
            speedup_low=timing.speedup_low if timing else None, speedup_high=timing.speedup_high if timing else None,
            body=result.stored(),
        )
    )  # fmt: skip
    return row


def _page(row: Submission) -> str:
    return f"/submissions/{row.id}"


def _source(stage: Stage) -> bytes:
    return stage.files["starter/online_softmax.py"]


@cache
def judged(stage: Stage, mistake: str | None, backend: Backend) -> Result:
    """What a submission gets whose every output is the mistake's, or the truth's, in the case's dtype."""
    grader, reports, wrong = Grader(stage), [], None
    for case in stage.spec.cases:
        if backend is Backend.INTERPRETER and case.needs_gpu:
            reports.append(CaseReport(name=case.name, title=case.title, group=case.group, state="not_run"))
            continue
        inputs = grader.inputs(case, SEED)
        with np.errstate(over="ignore"):  # a mistake may overflow in the case's dtype, as a submission would
            outputs = {
                name: RawTensor(case.dtype, tensor.shape, _bytes(tensor, case.dtype))
                for name, tensor in grader.reference(case, inputs, mistake).items()
            }
        report, found = judge_case(grader, CaseOutcome(case, inputs, outputs, grader.reference(case, inputs)), 3.1)
        reports.append(report)
        wrong = wrong or found
    timed = stage.spec.ranking is Ranking.SPEEDUP
    verdict = Verdict.WRONG_ANSWER if wrong else Verdict.CORRECT if timed else Verdict.ACCEPTED
    return Result(
        verdict=verdict, reason="wrong_value" if wrong else "passed", message=verdict.about.meaning, stage=stage.name,
        stage_hash=stage.hash, backend=backend, seed=SEED, cases=tuple(reports), wrong=wrong,
        mistake=named(stage, mistake) if mistake and wrong else None, phases={Phase.CASES: 210.0, Phase.JUDGE: 12.5},
    )  # fmt: skip


def _bytes(tensor: Float64, dtype: str) -> bytes:
    """Little-endian bytes, rounded to nearest even; numpy knows no bfloat16."""
    if dtype != "bfloat16":
        return np.ascontiguousarray(tensor.astype(dtype)).tobytes()
    words = np.ascontiguousarray(tensor.astype(np.float32)).view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype("<u2").tobytes()


def _compile_error(stage: Stage) -> Result:
    cases = tuple(CaseReport(name=c.name, title=c.title, group=c.group, state="not_run") for c in stage.spec.cases)
    return Result(
        verdict=Verdict.COMPILE_ERROR, reason="compiler", message=BROKEN.splitlines()[0], stage=stage.name, log=BROKEN,
        stage_hash=stage.hash, backend=Backend.GPU, seed=SEED, cases=cases, phases={Phase.COMPILE: 1310.0},
    )  # fmt: skip
