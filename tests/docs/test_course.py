"""The course's tables are those of the stages, and what a stage builds on is there and comes before it."""

from __future__ import annotations

import pytest

from kernelgate.course import HEAD, builds_on, leads_to, rewritten
from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stages
from kernelgate.stages import Stage

STAGES = load_stages(ROOT / "graders")[0]


def test_the_page_is_what_the_stages_say() -> None:
    page = (ROOT / "docs" / "course.md").read_text()
    assert page == rewritten(page, STAGES), "run python -m kernelgate.course"
    with pytest.raises(ValueError, match="has no lines"):
        rewritten(page.replace(HEAD, ""), STAGES)


def before(stage: Stage) -> set[str]:
    """All that a stage builds on, through others too."""
    found: set[str] = set()
    for each in builds_on(stage, STAGES):
        if isinstance(each, Stage):
            found |= {each.name, *before(each)}
    return found


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_what_a_stage_builds_on_is_a_stage_or_words_and_no_circle(stage: Stage) -> None:
    assert stage.spec.needs
    assert stage.spec.hours
    assert all(isinstance(each, Stage) or each in ("C++", "Python", "PyTorch") for each in builds_on(stage, STAGES))
    assert stage.name not in before(stage)
    same_path = [
        each for each in builds_on(stage, STAGES) if isinstance(each, Stage) and each.spec.path == stage.spec.path
    ]
    assert all(each.spec.order < stage.spec.order for each in same_path)
    assert all(stage in leads_to(each, STAGES) for each in builds_on(stage, STAGES) if isinstance(each, Stage))
