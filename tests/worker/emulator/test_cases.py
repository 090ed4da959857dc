"""Small files, each reduced from what public code or a report did to the product, and what they must get."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kernelgate.protocol import Result
from kernelgate.stages import Spec, Stage
from worker.emulator import backend, submission
from worker.emulator.build import build as compile_for_the_cpu
from worker.emulator.toolchain import Pass, Toolchain
from worker.grade import grade
from worker.sandbox import Sandbox

FOLDER = Path(__file__).parent / "cases"
RIGHT = (
    "clock_without_time_h",
    "cub_only",
    "header_lacks_block_tile_memory",
    "header_not_there",
    "other_spelling_of_vote",
)
RACES = ("clamped_reads", "one_warp_read_shuffle_write", "race_told_with_one_thread")


def graded(name: str, sandbox: Sandbox, stage: str = "sum", **changes: str) -> Result:
    folder = FOLDER / "stages" / stage
    stated = tomllib.loads((folder / "stage.toml").read_text()) | changes
    files = {"grader.py": (folder / "grader.py").read_bytes()}
    source = (FOLDER / f"{name}.cu").read_bytes()
    return grade(Stage(folder, Spec.model_validate(stated), files), source, sandbox=sandbox, seed="5eed" * 8)


@pytest.mark.parametrize("name", RIGHT)
def test_what_nvcc_takes_is_graded(compiler: Toolchain, sandbox: Sandbox, name: str) -> None:
    del compiler
    result = graded(name, sandbox)
    assert (result.verdict, result.reason) == ("accepted", "passed"), result.message


def test_what_nvcc_makes_a_trap_is_one(compiler: Toolchain, sandbox: Sandbox) -> None:
    """Of a float4 that is added atomically to shared memory nvcc says that it cannot, and compiles a trap."""
    del compiler
    result = graded("vector_atomics", sandbox)
    assert (result.verdict, result.reason) == ("runtime_error", "illegal_instruction"), result.message
    assert "Cannot do vector atomic on shared memory" in result.log


@pytest.mark.parametrize("name", RACES)
def test_a_race_has_two_threads(compiler: Toolchain, sandbox: Sandbox, name: str) -> None:
    del compiler
    result = graded(name, sandbox, "halve" if name == "clamped_reads" else "sum")
    assert (result.verdict, result.reason) == ("wrong_answer", "race"), result.message
    assert "The other access is a " in result.message


def test_a_slow_file_is_compiled_once_more_before_its_long_cases(
    compiler: Toolchain, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here all cases but that of one value count as long, and every file as slow."""
    del compiler
    built: list[Pass] = []

    def build(tools: Toolchain, text: str, code: Pass, *rest: Any) -> dict[Pass, bytes]:
        built.append(code)
        return compile_for_the_cpu(tools, text, code, *rest)

    monkeypatch.setattr(submission, "build", build)
    monkeypatch.setattr(backend, "CHECKED_BYTES", 8)
    monkeypatch.setattr(backend, "SLOW_MS", 0.0)
    result = graded("other_spelling_of_vote", sandbox)
    assert (result.verdict, result.reason) == ("accepted", "passed"), result.message
    assert built == [Pass.CHECK, Pass.PLAIN]


def test_how_runs_have_to_agree_is_the_stages_word(compiler: Toolchain, sandbox: Sandbox) -> None:
    """A sum by atomics is right within the tolerance, and its last bit depends on the order."""
    del compiler
    strict, lenient = (graded("atomic_add_of_floats", sandbox, repeatable=how) for how in ("bits", "tolerance"))
    assert (strict.verdict, strict.reason) == ("wrong_answer", "not_repeatable"), strict.message
    assert "without __syncwarp()" in strict.message
    assert (lenient.verdict, lenient.reason) == ("accepted", "passed"), lenient.message


def test_a_missing_extern_c_is_named_with_the_function_that_was_found(compiler: Toolchain, sandbox: Sandbox) -> None:
    del compiler
    result = graded("no_extern_c", sandbox)
    assert (result.verdict, result.reason) == ("contract_violation", "missing_function")
    assert '`solve(float const*, float*, int)`, a C++ function: `extern "C"` is missing' in result.message
