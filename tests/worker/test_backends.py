"""A backend is one row: its language, how it runs cases, why it is missing. What no row names is refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from kernelgate import add_ons
from kernelgate.languages import LANGUAGES
from kernelgate.protocol import Result
from kernelgate.settings import ROOT
from kernelgate.stages import Backend, Spec, Stage
from kernelgate.verdicts import Verdict
from worker import backends
from worker.backends import NoBackendError, ways
from worker.grade import grade
from worker.sandbox import Sandbox

ADD_ON = """
from kernelgate.add_ons import AddOn
from worker.judging.arrays import RawTensor
from worker.judging.job import CaseRun
from worker.judging.way import Way


def run_cases(job):
    for case in job.cases:
        inputs = job.grader.inputs(case, job.seed)
        right = job.grader.reference(case, inputs)
        outputs = {name: (float(job.source) * values).astype(case.dtype) for name, values in right.items()}
        raw = {name: RawTensor(case.dtype, each.shape, each.tobytes()) for name, each in outputs.items()}
        yield CaseRun(case, inputs, raw, 0.1)


ABOUT = AddOn(ways="by_numbers:WAYS", how="multiplied")
WAYS = (Way("pytorch", run_cases, lambda: None),)
"""
"""A backend as a package has it: a submission is a number, by which it multiplies what the stage asks for."""


def install(folder: Path, name: str, source: str, reference: str) -> None:
    """What pip would leave of a package with a backend."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{add_ons.GROUP}]\n{name} = {reference}\n")


def forget() -> None:
    for each in (add_ons.backends, backends.ways, backends.why_missing, backends.missing):
        each.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with a backend, and two that are broken."""
    install(tmp_path, "by_numbers", ADD_ON, "by_numbers:ABOUT")
    install(tmp_path, "raises", "raise OSError('no such card')\n", "raises:ABOUT")
    lost = "from kernelgate.add_ons import AddOn\nABOUT = AddOn(ways='nowhere:WAYS')\n"
    install(tmp_path, "lost", lost, "lost:ABOUT")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield
    for word in ("by_numbers", "lost"):
        Backend._value2member_map_.pop(word, None)
    forget()


def stage_by(stage: Stage, *words: str) -> Stage:
    spec = stage.spec.model_dump(mode="json", exclude_defaults=True) | {"backends": words}
    return Stage(stage.folder, Spec.model_validate(spec), stage.files)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("source", "verdict"), [(b"1", Verdict.ACCEPTED), (b"2", Verdict.WRONG_ANSWER)])
def test_a_package_brings_a_backend(small_stage: Stage, sandbox: Sandbox, source: bytes, verdict: Verdict) -> None:
    result = grade(stage_by(small_stage, "by_numbers", "torch"), source, sandbox=sandbox, seed="5eed")
    assert (result.verdict, result.backend) == (verdict, "by_numbers"), result.message
    read = Result.model_validate_json(result.model_dump_json())
    assert read.backend is Backend("by_numbers")
    assert read.backend.how == "multiplied"
    assert "by_numbers" in backends.available()


@pytest.mark.usefixtures("installed")
def test_a_package_that_does_not_load_costs_no_other(caplog: pytest.LogCaptureFixture) -> None:
    ours = {pair for pair in backends.ways() if pair[0] != "by_numbers"}
    assert ours == {(Backend(word), way.language) for word, at in backends.BUILT_IN for way in backends._load(at)}
    assert "no such card" in caplog.text
    assert "nowhere:WAYS" in caplog.text


def test_a_word_of_no_backend_is_refused(small_stage: Stage) -> None:
    forget()
    with pytest.raises(ValidationError, match="by_numbers"):
        stage_by(small_stage, "by_numbers")


def test_a_pair_without_a_row_is_refused_by_name(small_stage: Stage) -> None:
    spec = small_stage.spec.model_copy(update={"backends": (Backend.EMULATOR,)})
    with pytest.raises(NoBackendError, match=r"\(emulator: it does not grade pytorch\)"):
        backends.choose(Stage(small_stage.folder, spec, small_stage.files))


def test_rows_name_languages_that_there_are() -> None:
    assert {language for _, language in ways()} == set(LANGUAGES)
    assert {backend for backend, _ in ways()} == set(Backend)
    assert all(backend.phases for backend in Backend)


def test_the_table_in_the_documents_has_every_row() -> None:
    page = (ROOT / "docs" / "backends.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted((str(backend), language) for backend, language in ways())
    for folder in re.findall(r"`((?:worker|sandboxed|kernels)/\w+/)`", page):
        assert (ROOT / folder).is_dir(), folder
