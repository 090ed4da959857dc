"""A stage folder that cannot be used says which file or key, its value, and what is accepted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelgate.settings import ROOT
from kernelgate.stage_folders import load_stage, load_stages
from kernelgate.stages import Case, DoneWhen, Gate, Limits, Mistake, Seam, Spec, StageError, Tensor, Tolerance
from kernelgate.verdicts import Verdict
from tests.long_form import long_form


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return long_form("scaling", tmp_path)


def edit(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / "stage.toml").read_text()
        assert old in text
        (folder / "stage.toml").write_text(text.replace(old, new, 1))

    return change


def put(name: str, body: bytes = b"x") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(body)

    return change


UNUSABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "unknown key": (edit("order = 1", "order = 1\ngates = 2"), "gates: Extra inputs are not permitted"),
    "unknown key within a case": (edit('group = "small"', 'group = "small"\nseed = 1'), r"cases\.0\.seed"),
    "no TOML": (edit("title =", "title"), "not TOML"),
    "a case twice": (edit('name = "rectangular"', 'name = "by_hand"'), "'by_hand' stands twice"),
    "a dtype without tolerance": (edit('group = "small"', 'group = "small"\ndtype = "float64"'), "has dtype 'float64'"),
    "a negative tolerance": (edit("absolute = 1e-6", "absolute = -1"), "greater than or equal to 0"),
    "an unknown backend": (edit('["torch"]', '["tpu"]'), "'torch', 'gpu', 'emulator' or 'interpreter'"),
    "an unknown ranking": (edit('"first_accepted"', '"fastest"'), "'first_accepted' or 'speedup'"),
    "a gate without a ranking by speed": (edit("[limits]", "[gate]\nspeedup = 2\n\n[limits]"), "ranks by 'speedup'"),
    "a mistake that shows as no violation": (
        edit("[limits]", '[[mistakes]]\nname = "m"\ntitle = "t"\nhint = "h"\nviolation = "passed"\n\n[limits]'),
        r"mistakes\.0\.violation: .*not a reason of contract_violation",
    ),
    "an unknown language": (edit('"pytorch"', '"fortran"'), "no such language; known: pytorch, triton, cuda"),
    "a file of another language": (edit('"pytorch"', '"cuda"'), "a file of cuda ends in .cu, not as 'scaling.py' does"),
    "a bad file name": (edit('file = "scaling.py"', 'file = "../up.py"'), "file: String should match"),
    "an unknown file": (put("notes.txt"), "unknown file 'notes.txt'"),
    "a file in an unknown verdict's folder": (put("submissions/great/a.py"), "unknown file"),
    "a file that is too long": (put("provided/data.py", b"#" * (1 << 20) + b"#"), "1048577 bytes"),
    "no grader": (lambda folder: (folder / "grader.py").unlink(), "grader.py is missing"),
    "no starter": (lambda folder: (folder / "starter" / "scaling.py").unlink(), "starter/scaling.py is missing"),
    "no solution": (lambda folder: (folder / "solution" / "scaling.py").unlink(), "solution/scaling.py is missing"),
    "a link out of the folder": (
        lambda folder: (folder / "provided.py").symlink_to("/etc/passwd"),
        "unknown file 'provided.py'",
    ),
}


@pytest.mark.parametrize("how", UNUSABLE)
def test_what_is_wrong_is_said(folder: Path, how: str) -> None:
    change, said = UNUSABLE[how]
    change(folder)
    with pytest.raises(StageError, match=said):
        load_stage(folder)


def test_one_broken_stage_leaves_the_others_usable(folder: Path) -> None:
    long_form("other", folder.parent)
    put("notes.txt")(folder)
    good, bad = load_stages(folder.parent)
    assert list(good) == ["other"]
    assert "notes.txt" in bad["scaling"]


def test_paths_come_in_the_order_in_which_they_begin(folder: Path) -> None:
    for name, path, order in (("last", "Above", 6), ("second", "early", 2), ("first", "early", 1)):
        long_form(name, folder.parent)
        toml = folder.parent / name / "stage.toml"
        toml.write_text(
            toml.read_text().replace('path = "warm-up"', f'path = "{path}"').replace("order = 1", f"order = {order}")
        )
    edit("order = 1", "order = 9")(folder)
    assert list(load_stages(folder.parent)[0]) == ["first", "second", "last", "scaling"]


def test_the_hash_covers_what_grading_reads_and_nothing_else(folder: Path) -> None:
    before = load_stage(folder).hash
    put("lesson.md", b"# Another lesson")(folder)
    put("submissions/accepted/more.py", b"")(folder)
    assert load_stage(folder).hash == before
    edit("absolute = 1e-6", "absolute = 2e-6")(folder)
    assert load_stage(folder).hash != before


def test_examples_carry_what_they_must_get(folder: Path) -> None:
    examples = {example.path.name: example for example in load_stage(folder).examples()}
    assert examples["y_forgotten.py"].verdict is Verdict.WRONG_ANSWER
    assert examples["y_forgotten.py"].mistake == "forgot_y"
    assert examples["x_scaled_in_place.py"].reason == "inputs_changed"


def test_an_expectation_with_an_unknown_key_is_an_error(folder: Path) -> None:
    put("submissions/expected.toml", b'["accepted/addcmul.py"]\nverdict = "accepted"\n')(folder)
    with pytest.raises(StageError, match="verdict"):
        list(load_stage(folder).examples())


def test_a_reason_is_a_word_of_the_list(folder: Path) -> None:
    put("submissions/expected.toml", b'["accepted/addcmul.py"]\nreason = "well_done"\n')(folder)
    put("submissions/accepted/addcmul.py", b"")(folder)
    with pytest.raises(StageError, match=r"accepted/addcmul.py'\] reason: .*no such reason.*'well_done'"):
        list(load_stage(folder).examples())


def test_expectations_that_are_no_toml_are_an_error(folder: Path) -> None:
    put("submissions/expected.toml", b'["a"]\n["a"]\n')(folder)
    with pytest.raises(StageError, match="not TOML"):
        list(load_stage(folder).examples())


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "stage-reference.md").read_text()
    for model in (Spec, Seam, Limits, Tolerance, Tensor, Case, Mistake, Gate, DoneWhen):
        undocumented = [key for key in model.model_fields if f"`{key}`" not in page]
        assert not undocumented, f"docs/stage-reference.md does not name these keys of {model.__name__}: {undocumented}"
