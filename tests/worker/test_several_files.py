"""Submissions of several files: graded as one, told apart in messages, and never in the place of what is the stage's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from api.pages.text.faults import faults
from kernelgate.protocol import Result, Trial
from kernelgate.settings import ROOT
from kernelgate.several_files import FilesError, Part, check, joined, parts
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from kernelgate.verdicts import Verdict
from worker.grade import grade
from worker.sandbox import Sandbox

HALF = "def double(x):\n    return 2 * x\n"
USES = "from halves import double\n\n\ndef scaling(x, y, factor):\n    return double(x) * factor / 2 + y\n"


def taking_several(stage: Stage) -> Stage:
    return Stage(stage.folder, stage.spec.model_copy(update={"several": True}), stage.files, stage.form)


def run(stage: Stage, sandbox: Sandbox, source: str, case: str = "by_hand") -> Result:
    return grade(stage, source.encode(), sandbox=sandbox, seed="00", trial=Trial(case=case))


def test_a_text_is_taken_apart_and_put_together() -> None:
    text = joined({"b.cuh": "two\nlines\n", "main.cu": "first", "a.h": "last"}, "main.cu", "cuda")
    assert text == "first\n//@file a.h\nlast\n//@file b.cuh\ntwo\nlines\n"
    assert parts(text, "main.cu") == [
        Part("main.cu", "first\n", 1),
        Part("a.h", "last\n", 3),
        Part("b.cuh", "two\nlines\n", 5),
    ]
    assert parts("#@file x.py\n", "m.py") == [Part("m.py", "", 1), Part("x.py", "", 2)]
    assert parts("// @file x.h\n", "m.cu") == [Part("m.cu", "// @file x.h\n", 1)]


@pytest.mark.parametrize(
    ("language", "names", "words"),
    [
        ("cuda", ["../a.h"], "cannot be the name"),
        ("cuda", ["a.py"], "cannot be the name"),
        ("cuda", ["a.h", "a.h"], "stands twice"),
        ("cuda", ["main.cu"], "stands twice"),
        ("cuda", ["given.h"], "provided by the stage"),
        ("triton", ["torch.py"], "stand in for the module torch"),
        ("pytorch", ["driver.py"], "stand in for the module driver"),
        ("pytorch", ["json.py"], "stand in for the module json"),
        ("pytorch", [f"a{n}.py" for n in range(16)], "at most 16"),
    ],
)
def test_names_that_cannot_be_are_told(language: str, names: list[str], words: str) -> None:
    found = [Part("main.cu", "", 1), *(Part(name, "", 1) for name in names)]
    with pytest.raises(FilesError, match=words):
        check(found, language, ["given.h"])


def test_python_imports_its_own_file(small_stage: Stage, sandbox: Sandbox) -> None:
    stage = taking_several(small_stage)
    source = joined({stage.spec.file: USES, "halves.py": HALF}, stage.spec.file, "pytorch")
    assert run(stage, sandbox, source).verdict is Verdict.CORRECT


def test_where_one_file_is_taken_the_line_is_a_comment(small_stage: Stage, sandbox: Sandbox) -> None:
    source = joined({small_stage.spec.file: USES, "halves.py": HALF}, small_stage.spec.file, "pytorch")
    result = run(small_stage, sandbox, source)
    assert "halves" in result.message
    assert not result.verdict.passes


def test_an_error_in_a_further_file_is_marked_in_the_whole_text(small_stage: Stage, sandbox: Sandbox) -> None:
    stage = taking_several(small_stage)
    broken = HALF.replace("2 * x", "2 * nothing")
    source = joined({stage.spec.file: USES, "halves.py": broken}, stage.spec.file, "pytorch")
    result = run(stage, sandbox, source)
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert [fault.line for fault in faults(result, stage.spec.file, source)] == [8]
    assert source.splitlines()[7].strip() == "return 2 * nothing"


def test_a_name_that_cannot_be_is_a_compile_error(small_stage: Stage, sandbox: Sandbox) -> None:
    stage = taking_several(small_stage)
    result = run(stage, sandbox, f"{USES}#@file contract.py\n{HALF}")
    assert (result.verdict, result.reason) == (Verdict.COMPILE_ERROR, "wrong_files")
    assert "contract" in result.message


@pytest.fixture
def row_sum(tmp_path: Path) -> Stage:
    folder = tmp_path / "row_sum"
    shutil.copytree(ROOT / "graders" / "row_sum", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "stage.py").write_text((folder / "stage.py").read_text() + "\nseveral = True\n")
    return load_stage(folder)


def test_cuda_includes_its_own_headers(row_sum: Stage, sandbox: Sandbox) -> None:
    solution = row_sum.text(f"solution/{row_sum.spec.file}")
    files = {row_sum.spec.file: '#include "rows.cuh"\n', "rows.cuh": solution}
    whole = joined(files, row_sum.spec.file, "cuda")
    assert run(row_sum, sandbox, whole, row_sum.runnable[0].name).verdict is Verdict.CORRECT
    assert solution.count("__global__") == 1
    broken = whole.replace("__global__", "__globl__")
    result = run(row_sum, sandbox, broken, row_sum.runnable[0].name)
    assert result.verdict is Verdict.COMPILE_ERROR
    first = faults(result, row_sum.spec.file, broken)[0]
    assert "__globl__" in broken.splitlines()[first.line - 1]
