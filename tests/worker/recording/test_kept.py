"""What compilers made is kept by all that it was made from, and nothing else comes back for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.settings import settings
from worker.judging.failures import Cancelled, Failure
from worker.judging.job import Job
from worker.recording import kept
from worker.recording.compile import compile_cuda

TARGET = "90a"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder of builds."""
    monkeypatch.setenv("KERNELGATE_BUILD_CACHE", str(tmp_path))
    settings.cache_clear()
    yield tmp_path / "kept"
    monkeypatch.undo()
    settings.cache_clear()


def test_an_entry_comes_back_as_it_was_written(place: Path) -> None:
    files = {"a.so": bytes(range(256)) * 40, "log": b""}
    assert kept.read("one") is None
    kept.write("one", files)
    assert kept.read("one") == files
    assert kept.read("other") is None
    assert place.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_an_entry_that_was_cut_short_is_none(place: Path, cut: int) -> None:
    kept.write("one", {"a": os.urandom(256)})
    path = place / "one.zip"
    path.write_bytes(path.read_bytes()[:-cut])
    assert kept.read("one") is None


def test_an_entry_whose_bytes_changed_is_none(place: Path) -> None:
    kept.write("one", {"a": os.urandom(256)})
    path = place / "one.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes(byte ^ 1 for byte in whole[100:120]) + whole[120:])
    assert kept.read("one") is None


def test_a_folder_that_takes_nothing_costs_no_verdict(place: Path) -> None:
    place.write_text("a file where the folder should be")
    kept.write("one", {"a": b"1"})
    assert kept.read("one") is None


def test_the_borders_of_what_a_key_is_made_of_count() -> None:
    keys = [
        kept.key("ab", "c"),
        kept.key("a", "bc"),
        kept.key("abc"),
        kept.key(["ab", "c"]),
        kept.key(["a"], ["b", "c"]),
        kept.key(["a", "b"], ["c"]),
    ]
    assert len(set(keys)) == len(keys)


def test_what_was_not_used_for_longest_makes_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(1000)
    for name in ("first", "second", "third"):
        kept.write(name, {"a": data})
    for age, name in enumerate(("third", "second", "first")):
        os.utime(place / f"{name}.zip", (1000 - age, 1000 - age))
    assert kept.read("first") is not None  # used now
    monkeypatch.setattr(kept, "FOLDER_BYTES", 3500)
    kept.write("fourth", {"a": data})
    assert {name for name in ("first", "second", "third", "fourth") if kept.read(name)} == {"first", "third", "fourth"}
    monkeypatch.setattr(kept, "ENTRY_BYTES", 999)
    kept.write("large", {"a": data})
    assert kept.read("large") is None


def test_another_release_of_a_program_is_another_program(tmp_path: Path) -> None:
    program = tmp_path / "cc"
    absent = kept.identity(program)
    kept.identity.cache_clear()
    program.write_bytes(b"one")
    first = kept.identity(program)
    kept.identity.cache_clear()
    program.write_bytes(b"another")
    assert len({absent, first, kept.identity(program)}) == 3


KERNEL = 'extern "C" __global__ void fill(float* y) { y[threadIdx.x] = 1; }\n'
SEAM = 'extern "C" void attention(float* y) { fill<<<1, 32>>>(y); }\n'


@pytest.mark.nvcc
def test_a_file_that_comes_again_needs_no_compiler(place: Path, job: Callable[[str], Job]) -> None:
    """The second job is cancelled before it begins: a compiler that was started for it would be stopped."""
    made = job(KERNEL + SEAM)
    first = compile_cuda(made, TARGET)
    again = replace(made, cancelled=lambda: True, resources=())
    assert compile_cuda(again, TARGET) == first
    assert again.resources == made.resources != ()
    with pytest.raises(Cancelled):
        compile_cuda(replace(again, source=KERNEL + SEAM + "// another\n"), TARGET)
    with pytest.raises(Cancelled):
        compile_cuda(again, "80")
    assert len(list(place.iterdir())) == 1


@pytest.mark.nvcc
def test_what_does_not_compile_is_not_kept(place: Path, job: Callable[[str], Job]) -> None:
    with pytest.raises(Failure):
        compile_cuda(job(KERNEL + "no C++\n"), TARGET)
    assert not place.exists()
