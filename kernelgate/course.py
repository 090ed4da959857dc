"""The course: which stage builds on which, and the tables of docs/course.md, written from the stages themselves."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Stage
from kernelgate.written_part import replaced

HEAD, TAIL = "<!-- written by `python -m kernelgate.course` -->", "<!-- end of the paths -->"


def builds_on(stage: Stage, stages: Mapping[str, Stage]) -> list[Stage | str]:
    """What a reader comes from, in the stage's order: a stage, or words for what is none."""
    return [stages.get(name, name) for name in stage.spec.needs]


def leads_to(stage: Stage, stages: Mapping[str, Stage]) -> list[Stage]:
    """The stages that name this one among what they need."""
    return [each for each in stages.values() if stage.name in each.spec.needs]


def tables(stages: Mapping[str, Stage]) -> str:
    """Every path with its stages in order, as docs/course.md has them between HEAD and TAIL."""
    paths: dict[str, list[Stage]] = {}
    for stage in stages.values():
        paths.setdefault(stage.spec.path, []).append(stage)
    return "\n\n".join([HEAD, *(_table(path, members, stages) for path, members in paths.items()), TAIL])


def _table(path: str, members: Collection[Stage], stages: Mapping[str, Stage]) -> str:
    rows = [
        f"| {stage.spec.order} | [{stage.spec.title}](../graders/{stage.name}/lesson.md) | {_needs(stage, stages)} | "
        f"{stage.spec.hours} | {f'{stage.spec.gate.speedup:g}x' if stage.spec.gate else ''} |"
        for stage in members
    ]
    return "\n".join([f"### {path}", "", "| | stage | builds on | hours | gate |", "|---|---|---|---|---|", *rows])


def _needs(stage: Stage, stages: Mapping[str, Stage]) -> str:
    return ", ".join(
        each if isinstance(each, str) else f"{each.spec.path} {each.spec.order}" if each.spec.path != stage.spec.path
        else str(each.spec.order)
        for each in builds_on(stage, stages)
    )  # fmt: skip


def rewritten(page: str, stages: Mapping[str, Stage]) -> str:
    """The page with its tables as the stages are now. Raises ValueError where the page has no place for them."""
    return replaced(page, "course.md", HEAD, TAIL, tables(stages))


def write(path: Path = ROOT / "docs" / "course.md") -> None:
    stages, _ = load_stages(ROOT / "graders")
    path.write_text(rewritten(path.read_text(), stages))
    sys.stdout.write(f"{path}: {len(stages)} stages\n")


if __name__ == "__main__":
    write()
