"""Makes a new stage folder out of the one that ships as a pattern."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from kernelgate.settings import ROOT
from kernelgate.stages import StageError

PATTERN = "pattern"
"""The name that stands for the new stage's in the pattern's files and file names."""


def scaffold(name: str, into: Path) -> Path:
    """Copies `graders/_pattern` to `into/name`, renamed throughout. Raises StageError for a bad name or a taken folder."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise StageError(
            f"stage name {name[:80]!r}: lower-case letters, digits and '_', starting with a letter, at most 63"
        )
    folder = into / name
    if folder.exists():
        raise StageError(f"{folder} exists; choose another name or remove it")
    shutil.copytree(ROOT / "graders" / f"_{PATTERN}", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            path.write_text(path.read_text().replace(PATTERN, name))
            if PATTERN in path.name:
                path.rename(path.with_name(path.name.replace(PATTERN, name)))
    return folder
