"""The public part of a stage: it loads, it judges, and it holds nothing of the solution."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kernelgate.cli.exits import Stop
from kernelgate.cli.pulling import unpacked, write
from kernelgate.public_part import public_files, public_source
from kernelgate.settings import ROOT
from kernelgate.stage_folders import PULLED, load_stage, load_stages
from kernelgate.stages import Stage, StageError
from worker.recording.native import cuda_root
from worker.stages.agreement import disagreements

STAGES = load_stages(ROOT / "graders")[0]
each_stage = pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
SERVICE = (
    "sqlalchemy",
    "alembic",
    "celery",
    "kombu",
    "redis",
    "fastapi",
    "starlette",
    "uvicorn",
    "psycopg",
    "jinja2",
    "torch",
)
"""What a student's machine lacks that installs no extra; torch is imported in the sandbox alone."""


def pulled(stage: Stage, folder: Path) -> Stage:
    write(folder, stage.name, stage.spec.file, public_files(stage))
    return load_stage(folder / PULLED / stage.name, pulled=True)


@each_stage
def test_it_is_a_stage_that_a_grader_can_use_and_no_service_opens(stage: Stage, tmp_path: Path) -> None:
    found = pulled(stage, tmp_path)
    assert found.spec.seam == stage.spec.seam
    assert [each.name for each in found.spec.mistakes] == [each.name for each in stage.spec.mistakes]
    assert [(each.name, each.params) for each in found.spec.cases] == [
        (each.name, each.params) for each in stage.spec.cases
    ]
    assert not list(disagreements(found))
    with pytest.raises(StageError, match="no solution to prove it by"):
        load_stage(found.folder)


@each_stage
def test_nothing_of_the_solution_goes_with_it(stage: Stage) -> None:
    files = public_files(stage)
    assert not [name for name in files if name.split("/")[0] in ("solution", "submissions", "calibration")]
    starter = stage.starter
    own = {line.strip() for line in stage.text(f"solution/{stage.spec.file}").splitlines() if len(line.strip()) > 40}
    everywhere = "\n".join(body.decode() for body in files.values())
    given = {line for line in own if line in starter or line.startswith(("#", "//", '"""', "*"))}
    assert not [line for line in own - given if line in everywhere and line not in stage.text("lesson.md")]
    source = files["stage.py"].decode()
    assert not re.search(r"(?m)^(edits|done_when)\b|\shidden$", source)
    for item in stage.spec.done_when:
        assert item.text not in source


def test_the_baseline_goes_with_it_where_the_starter_is_the_baseline() -> None:
    timed, untimed = public_files(STAGES["rms_norm"]), public_files(STAGES["row_sum"])
    assert timed["baseline.cu"] == timed["starter/rms_norm.cu"]
    assert "gate = " in timed["stage.py"].decode()
    assert "baseline.cu" not in untimed
    assert " measured" not in untimed["stage.py"].decode()


def test_what_stands_beside_what_is_kept_back_stays() -> None:
    head = 'gate, work = 2.0, "n"\nedits = """\na => b\n"""\ndraft = True\n'
    text = head + 'cases = "one n=1\\nno n=2 hidden\\nlong n=9 measured"\n'
    assert public_source(text, timed=True) == 'gate, work = 2.0, "n"\ncases = """\none n=1\nlong n=9 measured\n"""\n'
    assert public_source(text, timed=False) == 'work = \'n\'\ncases = """\none n=1\nlong n=9\n"""\n'


def test_it_judges_on_a_machine_without_database_queue_and_web_server(tmp_path: Path) -> None:
    stage = STAGES["online_softmax"]
    pulled(stage, tmp_path)
    shutil.copy(ROOT / "graders" / stage.name / "solution" / stage.spec.file, tmp_path / stage.spec.file)
    program = f"import sys; sys.modules.update(dict.fromkeys({SERVICE!r})); from kernelgate.cli import main; main()"
    words = [sys.executable, "-c", program, "check", stage.name, stage.spec.file, "--case", "hand_update", "--quiet"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "KERNELGATE_GRADERS_DIR": str(tmp_path / "nothing")}
    run = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=110, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "case_right" in run.stdout


def packed(**files: bytes) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as bundle:
        for name, content in files.items():
            bundle.writestr(name, content)
    return body.getvalue()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "no zip archive"),
        (packed(**{"../../.bashrc": b"x"}), "no stage"),
        (packed(**{"/etc/passwd": b"x"}), "no stage"),
        (packed(**{"starter/a.cu": b"\0" * (1 << 20) + b"x"}), "no stage"),
        (packed(**{f"starter/a{n}.cu": b"" for n in range(65)}), "no stage"),
    ],
)
def test_what_a_server_may_send_is_bounded(body: bytes, words: str) -> None:
    with pytest.raises(Stop, match=words):
        unpacked(body)


def test_a_file_of_the_students_own_stays_and_the_rest_is_brought_up_to_date(tmp_path: Path) -> None:
    stage = STAGES["rms_norm"]
    files = public_files(stage)
    assert not write(tmp_path, stage.name, stage.spec.file, files)
    (tmp_path / "rms_norm.cu").write_text("// mine\n")
    (tmp_path / "rms_norm.h").write_text("// changed\n")
    assert write(tmp_path, stage.name, stage.spec.file, files)
    assert (tmp_path / "rms_norm.cu").read_text() == "// mine\n"
    assert (tmp_path / "rms_norm.h").read_bytes() == stage.files["provided/rms_norm.h"]


def test_its_makefile_compiles_the_file_with_nvcc(tmp_path: Path) -> None:
    stage = STAGES["rms_norm"]
    pulled(stage, tmp_path)
    env = {**os.environ, "PATH": f"{cuda_root() / 'bin'}:{os.environ['PATH']}"}
    run = subprocess.run(
        ["make", "compile", "ARCH=sm_80"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "rms_norm.o").stat().st_size > 0
    assert "registers" in run.stdout + run.stderr
