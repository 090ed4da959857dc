"""A stage's folder on disk: which files there may be, read and checked, with what is derived where a stage.py says it.

Unknown files are errors, as unknown keys are: what is misspelt must not be left out without a word.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from kernelgate import stage_file
from kernelgate.derived_files import derived_files
from kernelgate.edit_lines import Edit, EditLineError
from kernelgate.stage_file import StageFile
from kernelgate.stage_source import Source, StageFileError
from kernelgate.stages import SUFFIXES, Spec, Stage, StageError, first_error
from kernelgate.verdicts import Verdict

MAX_TEXT = 1 << 20
FILES = re.compile(
    r"stage\.(toml|py)|lesson\.md|grader\.py|drawn\.py|driver\.py|baseline\.(cu|py)|submissions/expected\.toml|"
    r"calibration/[a-z0-9_]+\.json|"
    rf"(starter|solution|provided)/[a-z0-9_]+\.({SUFFIXES}|cuh|h)|figures/[a-z0-9_]+\.svg|"
    r"submissions/(" + "|".join(Verdict) + rf")/[a-z0-9_]+\.({SUFFIXES}|bin)"
)
_REQUIRED = ("stage.toml", "lesson.md", "grader.py")
_REPLACED = ("stage.toml", "grader.py", "drawn.py", "driver.py")
"""What a stage.py takes the place of; a driver.py has the ways of calling that a stage.py speaks of."""
DRIVER = "driver.py"
PULLED = Path(".kernelgate")
"""Where stages that were pulled from a server lie, in the folder that one works in."""


def load_stage(folder: Path, *, pulled: bool = False) -> Stage:
    """Reads and checks one stage folder. pulled: the public part of a stage will do. Raises StageError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", folder.name):
        raise StageError(f"stage folder {folder.name!r}: the name is lower-case letters, digits and '_', at most 63")
    files = dict(_read_files(folder))
    stage = _short(folder, files) if stage_file.FILE in files else _long(folder, files)
    if stage.spec.pulled and not pulled:
        raise StageError(f"stage {stage.name}: it is the public part of a stage, which has no solution to prove it by")
    _check_files(stage)
    return stage


def _long(folder: Path, files: Mapping[str, bytes]) -> Stage:
    for name in _REQUIRED:
        if name not in files:
            needed = f"stage.py or {', '.join(_REQUIRED)}, starter/ and solution/"
            raise StageError(f"stage {folder.name}: {name} is missing; a stage has {needed}")
    try:
        spec = Spec.model_validate(tomllib.loads(files["stage.toml"].decode()))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise StageError(f"stage {folder.name}: stage.toml is not TOML: {error}") from error
    except ValidationError as error:
        raise StageError(f"stage {folder.name}: stage.toml: {first_error(error)}") from error
    return Stage(folder, spec, files)


def _short(folder: Path, files: dict[str, bytes]) -> Stage:
    """A stage from its stage.py: what the folder does not have is derived, wrong files from their edits."""
    for name in _REPLACED:
        if name in files and not (name == DRIVER and b"\nways = " in files[stage_file.FILE]):
            raise StageError(
                f"stage {folder.name}: {name} stands beside stage.py; one of the two says what the stage is"
            )
    if "lesson.md" not in files:
        raise StageError(f"stage {folder.name}: lesson.md is missing")
    try:
        form = stage_file.read(folder.name, files[stage_file.FILE].decode())
        _check_driver(form, files)
        spec = Spec.model_validate(form.spec)
        files |= derived_files(form, spec, files)
        files |= {
            f"submissions/{edit.verdict}/{edit.name}{spec.suffix}": _apply(edit, spec, files) for edit in form.edits
        }
    except (StageFileError, EditLineError, UnicodeDecodeError) as error:
        raise StageError(f"stage {folder.name}: {stage_file.FILE} {error}") from error
    except ValidationError as error:
        raise StageError(f"stage {folder.name}: {stage_file.FILE}: {first_error(error)}") from error
    return Stage(folder, spec, files, form)


def _check_driver(form: StageFile, files: Mapping[str, bytes]) -> None:
    """Every way of calling is a function of driver.py."""
    if not form.ways:
        return
    if DRIVER not in files:
        raise StageFileError(0, f"ways: {DRIVER} is missing; it defines {', '.join(sorted(form.ways))}")
    missing = form.ways - Source(files[DRIVER].decode()).functions.keys()
    if missing:
        raise StageFileError(0, f"ways: {DRIVER} defines no function {', '.join(sorted(missing))}")


def _apply(edit: Edit, spec: Spec, files: Mapping[str, bytes]) -> bytes:
    if edit.verdict not in list(Verdict):
        raise StageFileError(0, f"edits: {edit.name}: no verdict {edit.verdict!r}; known are {', '.join(Verdict)}")
    original = files.get(f"{edit.of}/{spec.file}")
    if original is None:
        raise StageFileError(0, f"edits: {edit.name}: {edit.of}/{spec.file} is missing")
    return edit.applied(original.decode()).encode()


def _check_files(stage: Stage) -> None:
    """What the spec speaks of is there."""
    spec, files, name = stage.spec, stage.files, stage.name
    for folder_name in ("starter",) if spec.pulled else ("starter", "solution"):
        if f"{folder_name}/{spec.file}" not in files:
            raise StageError(f"stage {name}: {folder_name}/{spec.file} is missing")
    baseline = f"baseline{spec.suffix}"
    measured = [case.name for case in spec.cases if case.measured]
    if measured and spec.language == "pytorch":
        raise StageError(f"stage {name}: case {measured[0]} is measured; the time of {spec.language} is not measured")
    if spec.gate and baseline not in files:
        raise StageError(f"stage {name}: {baseline} is missing; a gate of {spec.gate.speedup:g}x is over a baseline")
    if measured and baseline not in files:
        raise StageError(
            f"stage {name}: {baseline} is missing; case {measured[0]} is measured, and a time is of a baseline's"
        )
    for short in spec.calibrated:
        if f"submissions/{short}" not in files:
            raise StageError(f"stage {name}: calibrated: submissions/{short} is missing")


def _read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    if not folder.is_dir():
        raise StageError(f"stage {folder.name}: {folder} is not a folder")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "__pycache__" in name or path.is_dir():
            continue
        if path.is_symlink() or not FILES.fullmatch(name):
            raise StageError(
                f"stage {folder.name}: unknown file {name!r}; see docs/stage-reference.md for the files a stage has"
            )
        if path.stat().st_size > MAX_TEXT:
            raise StageError(f"stage {folder.name}: {name} has {path.stat().st_size} bytes; at most {MAX_TEXT}")
        yield name, path.read_bytes()


def load_stages(graders: Path) -> tuple[dict[str, Stage], dict[str, str]]:
    """All stages of a folder, in the order of their paths: (usable ones by name, why each other one is not)."""
    good: dict[str, Stage] = {}
    bad: dict[str, str] = {}
    for folder in sorted(path for path in graders.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))):
        try:
            good[folder.name] = load_stage(folder)
        except StageError as error:
            bad[folder.name] = str(error)
    return {stage.name: stage for stage in _in_order(good.values())}, bad


def _in_order(stages: Collection[Stage]) -> list[Stage]:
    """Path by path, the path that begins at the lowest order first: a newcomer reads from the top."""
    begins: dict[str, int] = {}
    for stage in stages:
        begins[stage.spec.path] = min(stage.spec.order, begins.get(stage.spec.path, stage.spec.order))
    return sorted(
        stages,
        key=lambda stage: (begins[stage.spec.path], stage.spec.path.casefold(), stage.spec.order, stage.name),
    )
