"""A stage's calibration: where it lies, what is read from it, and what it warns of."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from kernelgate.calibration import Calibrated, Calibration, calibration, calibrations, file_name, ordered, readable
from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage, StageError
from kernelgate.verdicts import Verdict


def row(name: str, role: str, speedup: float) -> Calibrated:
    return Calibrated.model_validate(
        {
            "name": name,
            "role": role,
            "verdict": Verdict.ACCEPTED if speedup >= 1.8 else Verdict.GATE_MISSED,
            "gradings": 3,
            "baseline_ms": 1.0,
            "user_ms": 1.0 / speedup,
            "speedup": speedup,
            "speedup_low": speedup,
            "speedup_high": speedup,
        }
    )


def table(*rows: Calibrated, gate: float | None = 1.8) -> Calibration:
    return Calibration(
        gpu="NVIDIA L4", driver="CUDA 13.0", measured_on=date(2026, 1, 2), stage_hash="0" * 16, gate=gate, rows=rows
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(settings().graders_dir / "online_attention", tmp_path / "online_attention")
    (tmp_path / "online_attention" / "calibration").mkdir()
    return tmp_path / "online_attention"


def put(folder: Path, name: str, text: str) -> Stage:
    (folder / name).write_text(text)
    return load_stage(folder)


def test_a_model_has_a_file_of_its_own() -> None:
    assert file_name("NVIDIA H200") == "calibration/nvidia_h200.json"
    assert file_name("NVIDIA GeForce RTX 4090 (Laptop)") == "calibration/nvidia_geforce_rtx_4090_laptop.json"
    assert file_name("../../é") == "calibration/unnamed.json"


def test_a_calibration_is_read_back_and_changes_no_version(folder: Path) -> None:
    before = load_stage(folder).hash
    written = table(row("starter", "starter", 1.0), row("solution", "solution", 2.5))
    stage = put(folder, file_name(written.gpu), written.model_dump_json())
    assert calibration(stage, "NVIDIA L4") == written
    assert calibration(stage, "NVIDIA T4") is None
    assert calibration(stage, None) is None
    assert calibrations(stage)["NVIDIA L4"] == written
    assert stage.hash == before


def test_what_cannot_be_read_is_named_and_not_shown(folder: Path) -> None:
    stage = put(folder, "calibration/nvidia_l4.json", '{"gpu": "NVIDIA L4"}')
    with pytest.raises(StageError, match=r"calibration/nvidia_l4\.json: driver: Field required"):
        calibrations(stage)
    assert "NVIDIA L4" not in [found.gpu for found in readable(stage)]
    moved = put(folder, "calibration/nvidia_l4.json", table(row("solution", "solution", 2.5)).model_dump_json())
    assert calibration(moved, "NVIDIA L4") is not None
    elsewhere = put(folder, "calibration/nvidia_t4.json", table(row("solution", "solution", 2.5)).model_dump_json())
    with pytest.raises(StageError, match=r"belongs into calibration/nvidia_l4\.json"):
        calibration(elsewhere, "NVIDIA T4")


def test_a_gate_that_does_not_fit_the_card_is_warned_of() -> None:
    assert list(table(row("starter", "starter", 1.0), row("solution", "solution", 2.5)).warnings()) == []
    assert list(table(row("solution", "solution", 1.0), gate=None).warnings()) == []
    near = list(table(row("solution", "solution", 2.3)).warnings())
    assert len(near) == 1
    assert "solution, reaches 2.30x" in near[0]
    assert "2.40x" in near[0]
    upside_down = list(table(row("starter", "starter", 1.9), row("solution", "solution", 1.5)).warnings())
    assert any("the starter reaches 1.90x" in text for text in upside_down)
    assert any("misses the gate" in text for text in upside_down)


def test_rows_stand_slowest_first_and_the_best_is_the_mark() -> None:
    found = table(
        *ordered([row("solution", "solution", 2.5), row("tiles", "shipped", 4.4), row("starter", "starter", 1)])
    )
    assert [each.name for each in found.rows] == ["starter", "solution", "tiles"]
    assert found.best.name == "tiles"
    with pytest.raises(ValueError, match="a name of its own"):
        table(row("a", "shipped", 1), row("a", "shipped", 2))
