"""`stage verify` must fail for each thing that can be wrong with a stage, and say which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.stage_folders import load_stage, load_stages
from tests.long_form import long_form
from worker.sandbox import Sandbox
from worker.stages.verify import Report, number_of_checks, verify


@pytest.fixture
def folder(tmp_path: Path, own_settings: None) -> Path:
    del own_settings
    return long_form("scaling", tmp_path)


def failures(report: Report) -> list[str]:
    return [check.name for check in report.checks if not check.ok]


def test_a_new_stage_verifies(folder: Path, sandbox: Sandbox) -> None:
    report = verify(load_stage(folder), sandbox)
    assert failures(report) == []
    assert len(report.checks) == number_of_checks(load_stage(folder), brief=False)
    assert {"mistake forgot_y", "solution", "starter"} <= {check.name for check in report.checks}


def test_several_at_once_find_the_same_in_the_same_order(folder: Path, sandbox: Sandbox) -> None:
    seen: list[str] = []
    report = verify(load_stage(folder), sandbox, watch=lambda check: seen.append(check.name), jobs=2)
    assert failures(report) == []
    assert seen == [check.name for check in report.checks]
    assert seen == [check.name for check in verify(load_stage(folder), sandbox).checks]


def _replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    return change


def _move(name: str, to: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / to).parent.mkdir(exist_ok=True)
        (folder / name).rename(folder / to)

    return change


SPOILED = {
    "a starter that passes": (_replace("starter/scaling.py", "torch.zeros_like(x)", "factor * x + y"), "starter"),
    "a solution that is wrong": (_replace("solution/scaling.py", "+ y", "- y"), "solution"),
    "a reference that is wrong": (_replace("grader.py", "scaled + inputs", "scaled - inputs"), "solution"),
    "a mistake that no case shows": (
        _replace("grader.py", 'scaled if mistake == "forgot_y" else', "scaled if mistake is Ellipsis else"),
        "mistake forgot_y",
    ),
    "a wrong file in the wrong folder": (
        _move("submissions/wrong_answer/y_forgotten.py", "submissions/accepted/y_forgotten.py"),
        "submissions/accepted/y_forgotten.py",
    ),
    "an expectation without its file": (
        _move("submissions/wrong_answer/y_forgotten.py", "submissions/wrong_answer/other.py"),
        "expected.toml",
    ),
    "another message than expected": (
        _replace("submissions/expected.toml", "'x'", "'z'"),
        "submissions/contract_violation/x_scaled_in_place.py",
    ),
    "another mistake than expected": (
        _replace("submissions/wrong_answer/y_forgotten.py", "factor * x", "x"),
        "submissions/wrong_answer/y_forgotten.py",
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_what_is_wrong_with_a_stage_is_found(folder: Path, sandbox: Sandbox, how: str) -> None:
    change, expected = SPOILED[how]
    change(folder)
    assert expected in failures(verify(load_stage(folder), sandbox))


def test_every_shipped_stage_can_be_read(graders: Path) -> None:
    stages, broken = load_stages(graders)
    assert not broken
    assert "online_softmax" in stages
