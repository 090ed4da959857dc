"""Cases that a grading draws from its seed: judged like the listed ones, the same for the same seed, and repeatable."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.protocol import Result
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage, StageError
from kernelgate.verdicts import Verdict
from worker.grade import grade, new_seed
from worker.judging.grader import Grader
from worker.sandbox import Sandbox

DRAWS = '''from kernelgate.stages import Case


def drawn(rng):
    """Two cases of random sizes."""
    made = []
    for _ in range(2):
        rows, columns = (int(size) for size in rng.integers(34, 90, 2))
        params = {"rows": rows, "columns": columns, "factor": 3.0}
        made.append(Case(name="drawn", title=f"{rows} by {columns}", group="", params=params))
    return made
'''
RIGHT = "def scaling(x, y, factor):\n    return factor * x + y\n"
LISTED_SIZES_ALONE = (
    "def scaling(x, y, factor):\n    return factor * x + (y if tuple(x.shape) in ((1, 2), (33, 7)) else 0)\n"
)
SEED = "0" * 32


@pytest.fixture(scope="module")
def drawing(small_stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """The small stage with two drawn cases."""
    folder: Path = tmp_path_factory.mktemp("graders") / small_stage.name
    for name, body in small_stage.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)
    (folder / "drawn.py").write_text(DRAWS)
    return load_stage(folder)


def graded(stage: Stage, sandbox: Sandbox, source: str, seed: str = SEED) -> Result:
    return grade(stage, source.encode(), sandbox=sandbox, seed=seed)


def test_drawn_cases_follow_the_listed_ones_and_count(drawing: Stage, sandbox: Sandbox) -> None:
    result = graded(drawing, sandbox, RIGHT)
    assert (result.verdict, result.message) == (Verdict.ACCEPTED, "All 4 cases are right.")
    assert [case.group for case in result.cases[2:]] == ["Drawn", "Drawn"]
    assert [case.name for case in result.cases[2:]] == ["drawn_1", "drawn_2"]


def test_a_file_for_the_listed_sizes_is_wrong_and_told_how_to_repeat_it(drawing: Stage, sandbox: Sandbox) -> None:
    result = graded(drawing, sandbox, LISTED_SIZES_ALONE)
    assert (result.verdict, result.reason) == (Verdict.WRONG_ANSWER, "wrong_value")
    assert [case.state for case in result.cases] == ["right", "right", "wrong", "wrong"]
    title = result.cases[2].title
    assert f"drawn_1 was drawn for this grading ({title})" in result.message
    assert f"`kernelgate check {drawing.name} scaling.py --seed {SEED}` draws it again" in result.message


def test_an_exception_in_a_drawn_case_is_told_how_to_repeat_it(drawing: Stage, sandbox: Sandbox) -> None:
    source = "def scaling(x, y, factor):\n    assert len(x) < 34\n    return factor * x + y\n"
    result = graded(drawing, sandbox, source)
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert f"--seed {SEED}` draws it again" in result.message


def test_a_seed_draws_the_same_cases_and_another_seed_others(drawing: Stage) -> None:
    grader = Grader(drawing)
    assert grader.drawn(SEED) == grader.drawn(SEED)
    assert {case.title for case in grader.drawn(SEED)} != {case.title for case in grader.drawn(new_seed())}


def test_a_listed_case_does_not_call_itself_drawn(drawing: Stage, tmp_path: Path) -> None:
    folder = tmp_path / drawing.name
    for name, body in drawing.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body.replace(b'group = "small"', b'group = "small"\ndrawn = true'))
    with pytest.raises(StageError, match="says drawn = true"):
        load_stage(folder)
