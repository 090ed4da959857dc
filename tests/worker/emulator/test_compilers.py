"""Which compiler the emulator takes, and what it says where it can take none."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import forget_settings
from worker.emulator.compilers import ToolchainError, compiler_at, find_compiler, shortcoming

CROSS = "aarch64-linux-gnu-g++"


@pytest.fixture
def stated(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets KERNELGATE_EMULATOR_COMPILER for one test."""

    def state(name: str) -> None:
        monkeypatch.setenv("KERNELGATE_EMULATOR_COMPILER", name)
        forget_settings()

    return state


@pytest.fixture(autouse=True)
def forgotten() -> object:
    yield
    forget_settings()


def program(folder: Path, name: str, *, version: str) -> Path:
    """A program that calls itself a compiler and compiles nothing."""
    path = folder / name
    path.write_text(f'#!/bin/sh\ncase "$1" in\n-dumpmachine) echo x86_64-linux-gnu ;;\n*) echo {version} ;;\nesac\n')
    path.chmod(0o755)
    return path


def test_an_old_compiler_is_refused_by_its_version(tmp_path: Path) -> None:
    old = program(tmp_path, "g++", version="11.4")
    assert shortcoming(compiler_at(old)) == f"{old} is version 11; 12 or newer is needed"


def test_where_none_can_be_used_each_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "g++", version="9.1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError) as caught:
        find_compiler()
    assert "g++ is version 9; 12 or newer is needed; clang++ is not there" in str(caught.value)
    assert "install g++ 12 or clang++ 14, or newer" in str(caught.value)


def test_the_setting_decides(stated: Callable[[str], None]) -> None:
    if shutil.which("clang++") is None:
        pytest.skip("no clang++ here")
    if why := shortcoming(compiler_at(Path(str(shutil.which("clang++"))))):
        pytest.skip(why)
    stated("clang++")
    assert find_compiler().clang


def test_a_stated_compiler_that_is_not_there_is_no_reason_to_take_another(stated: Callable[[str], None]) -> None:
    stated("g++-99")
    with pytest.raises(
        ToolchainError, match=r"g\+\+-99 is not there\); KERNELGATE_EMULATOR_COMPILER=g\+\+-99: name another"
    ):
        find_compiler()


def test_a_compiler_for_another_processor_is_none_for_this_one(stated: Callable[[str], None]) -> None:
    if shutil.which(CROSS) is None or platform.machine() == "aarch64":
        pytest.skip(f"no {CROSS} here that would be a cross compiler")
    stated(CROSS)
    with pytest.raises(ToolchainError, match=f"compiles for aarch64; this is {platform.machine()}"):
        find_compiler()
