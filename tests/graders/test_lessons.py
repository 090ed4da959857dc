"""A lesson teaches; it does not hand out: what a student is to write stands in no file that the student is shown."""

from __future__ import annotations

import re

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage, load_stages
from kernelgate.stages import Stage

STAGES = sorted(load_stages(ROOT / "graders")[0])
NAMES = re.compile(r"[\w,:]+")
"""A list of parameters is the contract's, not the student's."""
LONG = 28
"""Characters without spaces from which a line of code is somebody's work, and not a brace, an import or a common call."""


def lines(text: str) -> set[str]:
    """Lines of code as they stay when spaces, comments and Markdown's marks are taken away."""
    bare = (re.sub(r"\s+", "", re.sub(r"(#|//).*", "", line)) for line in text.splitlines())
    return {line.strip("`") for line in bare if len(line) >= LONG and not NAMES.fullmatch(line)}


def shown(stage: Stage) -> str:
    """All that a student may read without submitting, without spaces, as `lines` are."""
    texts = [stage.text("lesson.md"), stage.starter, *stage.provided.values()]
    return "\n".join(re.sub(r"[ \t]+", "", text) for text in texts)


def work(stage: Stage) -> set[str]:
    """The solution's own lines: those of the starter and of provided files were given to the student."""
    given = lines(stage.starter).union(*(lines(text) for text in stage.provided.values()))
    return lines(stage.text(f"solution/{stage.spec.file}")) - given


@pytest.mark.parametrize("name", STAGES)
def test_nothing_that_a_student_is_shown_has_a_line_of_the_solution(name: str) -> None:
    stage = load_stage(ROOT / "graders" / name)
    assert len(work(stage)) >= 4, "the walk finds no work in the solution"
    public = shown(stage)
    assert [line for line in work(stage) if line in public] == []
