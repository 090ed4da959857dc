"""`pull`: the public part of a stage, to work on a machine of one's own."""

from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

import click

from kernelgate.cli.exits import Exit, stop
from kernelgate.cli.server import server
from kernelgate.text import line

MOST_FILES = 64

MAKEFILE = """# make check   judges {file} here as the server would: {judged}
# make quick   the same without the cases that take long
CHECK := kernelgate check {stage} {file}
.PHONY: check quick
check:
\t$(CHECK)
quick:
\t$(CHECK) --quick
"""
NVCC = """
# make compile ARCH=sm_80   what nvcc says of it for a card that is not here
ARCH ?= native
.PHONY: compile
compile: {stem}.o
%.o: %.cu $(wildcard *.h *.cuh)
\tnvcc -std=c++17 -O3 -lineinfo -Xptxas -v -arch=$(ARCH) -I. -c $< -o $@
"""


@click.command()
@click.argument("stage")
@click.option(
    "--to", type=click.Path(file_okay=False, path_type=Path), default=None, help="The folder; STAGE, if not given."
)
def pull(stage: str, to: Path | None) -> None:
    """Fetch the public part of STAGE: starter, provided files, lesson, and what `kernelgate check` judges by.

    The starter is put where no file of its name is; what is there already stays. Pulled again, the rest is brought up to
    date. Judging runs the stage's reference on this machine: pull from servers that you trust.
    """
    with server() as remote:
        about = remote.json("GET", f"/stages/{stage}")
        body = remote.answer("GET", f"/stages/{stage}/bundle", headers={"Accept": "application/zip"}).content
    name, file = str(about.get("name", "")), str(about.get("file", ""))
    files = unpacked(body)
    if f"starter/{file}" not in files or not name.isidentifier():
        stop(Exit.NETWORK, f"the server's answer is no stage: {line(name)[:80]!r} with {line(file)[:80]!r}")
    folder = to or Path(name)
    kept = write(folder, name, file, files)
    click.echo(f"{folder}/: {file}{' (yours, kept)' if kept else ''}, lesson.md, Makefile")
    if "stage.py" in files:
        click.echo(f"next: cd {folder} && kernelgate check {name} {file}")
    else:
        click.echo(f"The server keeps this stage's reference; next: kernelgate run {name} {folder / file}")


def unpacked(body: bytes) -> dict[str, bytes]:
    """The files of a bundle by name. What is no file of a stage, or too large for one, ends the command: nothing is written."""
    from kernelgate.stage_folders import FILES, MAX_TEXT

    try:
        with zipfile.ZipFile(io.BytesIO(body)) as bundle:
            entries = bundle.infolist()
            wrong = [
                each.filename for each in entries if not FILES.fullmatch(each.filename) or each.file_size > MAX_TEXT
            ]
            if wrong or len(entries) > MOST_FILES:
                stop(Exit.NETWORK, f"the server's answer is no stage: {line(str(wrong[:3] or len(entries)))[:200]}")
            return {each.filename: bundle.read(each) for each in entries}
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        stop(Exit.NETWORK, f"the server's answer is no zip archive: {line(str(error))[:200]}")


def write(folder: Path, name: str, file: str, files: dict[str, bytes]) -> bool:
    """Writes the folder; returns whether a file of the student's own was there, which is kept."""
    from kernelgate.stage_folders import PULLED

    judged = folder / PULLED / name
    if judged.exists():
        shutil.rmtree(judged)
    for each, content in files.items():
        _put(judged / each, content)
        if each.startswith("provided/"):
            _put(folder / each.removeprefix("provided/"), content)
        elif each.startswith("figures/") or each == "lesson.md":
            _put(folder / each, content)
    kept = (folder / file).exists()
    if not kept:
        _put(folder / file, files[f"starter/{file}"])
    if not (folder / "Makefile").exists():
        _put(folder / "Makefile", _makefile(name, file, files).encode())
    return kept


def _put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _makefile(name: str, file: str, files: dict[str, bytes]) -> str:
    timed = any(each.startswith("baseline.") for each in files)
    judged = "values, and on a GPU its speed" if timed else "values; speed is judged on the server alone"
    stem, _, suffix = file.rpartition(".")
    text = MAKEFILE.format(stage=name, file=file, judged=judged)
    return text + NVCC.replace("{stem}", stem) if suffix == "cu" else text


commands = [pull]
