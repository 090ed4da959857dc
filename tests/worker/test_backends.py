"""A backend is one row: its language, how it runs cases, why it is missing. What no row names is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from kernelgate.languages import LANGUAGES
from kernelgate.settings import ROOT
from kernelgate.stages import Backend, Stage
from kernelgate.verdicts import Verdict
from worker import backends
from worker.backends import WAYS, NoBackendError, Way
from worker.grade import grade
from worker.judging.arrays import RawTensor
from worker.judging.job import CaseRun, Job
from worker.sandbox import Sandbox


def in_numpy(job: Job) -> Iterator[CaseRun]:
    """A backend for a test: a submission is a number, by which it multiplies what the stage asks for."""
    for case in job.cases:
        inputs = job.grader.inputs(case, job.seed)
        right = job.grader.reference(case, inputs)
        outputs = {name: (float(job.source) * values).astype(case.dtype) for name, values in right.items()}
        raw = {name: RawTensor(case.dtype, each.shape, each.tobytes()) for name, each in outputs.items()}
        yield CaseRun(case, inputs, raw, 0.1)


def forget() -> None:
    backends.why_missing.cache_clear()
    backends.missing.cache_clear()


@pytest.fixture
def elsewhere(small_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The small stage, graded by a row that is added for it."""
    monkeypatch.setitem(WAYS, (Backend.INTERPRETER, "pytorch"), Way(in_numpy, lambda: None))
    spec = small_stage.spec.model_copy(update={"backends": (Backend.INTERPRETER,)})
    forget()
    yield Stage(small_stage.folder, spec, small_stage.files)
    forget()


@pytest.mark.parametrize(("source", "verdict"), [(b"1", Verdict.ACCEPTED), (b"2", Verdict.WRONG_ANSWER)])
def test_a_row_makes_a_backend(elsewhere: Stage, sandbox: Sandbox, source: bytes, verdict: Verdict) -> None:
    result = grade(elsewhere, source, sandbox=sandbox, seed="5eed")
    assert (result.verdict, result.backend) == (verdict, Backend.INTERPRETER), result.message


def test_a_pair_without_a_row_is_refused_by_name(small_stage: Stage) -> None:
    spec = small_stage.spec.model_copy(update={"backends": (Backend.EMULATOR,)})
    with pytest.raises(NoBackendError, match=r"\(emulator: it does not grade pytorch\)"):
        backends.choose(Stage(small_stage.folder, spec, small_stage.files))


def test_rows_name_languages_that_there_are() -> None:
    assert {language for _, language in WAYS} == set(LANGUAGES)
    assert {backend for backend, _ in WAYS} == set(Backend)
    assert all(backend.phases for backend in Backend)


def test_the_table_in_the_documents_has_every_row() -> None:
    page = (ROOT / "docs" / "backends.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted((str(backend), language) for backend, language in WAYS)
    for folder in re.findall(r"`((?:worker|sandboxed|kernels)/\w+/)`", page):
        assert (ROOT / folder).is_dir(), folder
