"""Makes a new stage folder out of a pattern, or out of another stage."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

from kernelgate.languages import LANGUAGES
from kernelgate.settings import ROOT
from kernelgate.stages import StageError

PATTERN = "pattern"
"""The name that stands for the new stage's in the patterns' files and file names."""


def scaffold(name: str, into: Path, language: str = "pytorch", like: Path | None = None) -> Path:
    """Copies the language's pattern, or the stage folder `like`, to `into/name`, renamed throughout.

    Raises StageError for a bad name, a taken folder, or an unknown language.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise StageError(
            f"stage name {name[:80]!r}: lower-case letters, digits and '_', starting with a letter, at most 63"
        )
    if language not in LANGUAGES:
        raise StageError(f"language {language[:40]!r}: known are {', '.join(LANGUAGES)}")
    folder = into / name
    if folder.exists():
        raise StageError(f"{folder} exists; choose another name or remove it")
    source = like or ROOT / "graders" / "_patterns" / language
    if not source.is_dir():
        raise StageError(f"{source} is no stage to start from")
    old = PATTERN if like is None else like.name
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__", "calibration"))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _rename(path, old, name)
    return folder


def _rename(path: Path, old: str, new: str) -> None:
    with contextlib.suppress(UnicodeDecodeError):  # a shipped file that is no text on purpose
        path.write_text(path.read_text().replace(old, new))
    if old in path.name:
        path.rename(path.with_name(path.name.replace(old, new)))
