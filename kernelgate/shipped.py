"""Stages that were proven before they shipped: `graders/shipped.txt` has a line for each, with the hash of that version.

`kernelgate stage ship` writes it, and a test holds it to the folders. A version that it names opens at once; one that anybody
has changed since is another version, and is proven first.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kernelgate.stages import Stage

FILE = "shipped.txt"
HEAD = "# Written by `kernelgate stage ship`: stages that were proven as they lie here, and open at once.\n"


def shipped(graders: Path) -> dict[str, str]:
    """The hashes of the versions that shipped, by name. A line that is none is left out: that stage is proven first."""
    try:
        lines = (graders / FILE).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    words = [line.split() for line in lines if not line.startswith("#")]
    return {parts[0]: parts[1] for parts in words if len(parts) == 2}


def is_shipped(stage: Stage) -> bool:
    return shipped(stage.folder.parent).get(stage.name) == stage.hash


def write(graders: Path, stages: Iterable[Stage]) -> None:
    """States the given versions as the ones that ship."""
    lines = sorted(f"{stage.name} {stage.hash}\n" for stage in stages)
    (graders / FILE).write_text(HEAD + "".join(lines))
