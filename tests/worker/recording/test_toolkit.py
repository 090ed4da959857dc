"""Where nvcc is taken from: the system's toolkit, else the one that came with wheels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.recording import native
from worker.recording.native import TOOLKIT, BuildError, cuda_root, wheel_toolkit


def toolkit(root: Path) -> Path:
    for part in TOOLKIT:
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).touch(0o755)
    return root


def wheel(site: Path) -> Path:
    """nvcc installed below `site` as pip does it: its files, and a record of them."""
    root = toolkit(site / "nvidia" / "cu13")
    record = site / "nvidia_cuda_nvcc-13.0.88.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cuda-nvcc\nVersion: 13.0.88\n")
    (record / "RECORD").write_text("nvidia/cu13/bin/nvcc,,\nnvidia/cu13/bin/ptxas,,\n")
    return root


@pytest.fixture
def no_system_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cuda_root.cache_clear()
    monkeypatch.setattr(native, "SYSTEM_TOOLKIT", tmp_path / "no toolkit here")
    monkeypatch.setenv("PATH", str(tmp_path))
    yield
    cuda_root.cache_clear()


@pytest.mark.usefixtures("no_system_toolkit")
def test_without_a_system_toolkit_the_wheels_one_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = wheel(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert wheel_toolkit() == (root,)
    assert cuda_root() == root


@pytest.mark.usefixtures("no_system_toolkit")
def test_the_systems_toolkit_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    system = toolkit(tmp_path / "cuda")
    monkeypatch.setenv("PATH", str(system / "bin"))
    assert cuda_root() == system


@pytest.mark.usefixtures("no_system_toolkit")
@pytest.mark.parametrize("lost", TOOLKIT)
def test_a_toolkit_that_lacks_a_part_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    """The wheels are five packages, and any of them may be missing."""
    root = wheel(tmp_path / "site")
    (root / lost).unlink()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(BuildError, match=r"no CUDA compiler.*requirements/cuda\.txt"):
        cuda_root()
