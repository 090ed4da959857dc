"""What the sandbox says about itself, when it refuses to work, and its tables of numbers."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from worker.sandbox import Limits, Sandbox, SandboxError, layers, layers_table, syscalls

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "sandbox.md"
HEADERS = {
    "x86_64": [Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), Path("/usr/include/asm/unistd_64.h")],
    "aarch64": [Path("/usr/include/asm-generic/unistd.h")],
}


def test_the_table_has_every_layer_and_says_what_it_stops(sandbox: Sandbox) -> None:
    table = layers_table(sandbox.layers)
    assert [row[0] for row in table] == list(layers.NAMES)
    assert all(row[1] in ("holds", "absent") and row[2] and row[3] for row in table)
    assert sandbox.layers.level in sandbox.layers.describe()


def test_the_minimum_is_enforced_and_names_what_is_missing() -> None:
    lacking = [layers.PID, layers.NET]
    with pytest.raises(SandboxError, match="KERNELGATE_SANDBOX_MINIMUM") as refused:
        Sandbox(python=Path(sys.executable), uid=64123, minimum="full", without=lacking)
    assert all(name in str(refused.value) for name in lacking)
    with pytest.raises(SandboxError, match="seccomp: left out on request"):
        Sandbox(python=Path(sys.executable), uid=64123, minimum="reduced", without=[layers.SECCOMP])


@pytest.mark.parametrize("name", [name for name in layers.NAMES if name != layers.WATCHDOG])
def test_programs_run_with_any_layer_left_out(name: str, open_python: str) -> None:
    with Sandbox(python=Path(open_python), uid=64123, minimum="none", without=[name]) as sandbox:
        assert name not in sandbox.layers.held
        limits = Limits(wall_s=10, cpu_s=10, memory_mb=256, scratch_mb=16, output_kb=64)
        assert sandbox.run([sandbox.python, "-I", "-S", "-c", "print(1)"], limits=limits).stdout == b"1\n"


def test_an_interpreter_in_a_private_home_needs_a_mount_namespace() -> None:
    if (
        os.getuid() != 0
        or Path("/root").stat().st_mode & 0o005
        or not Path(sys.executable).resolve().is_relative_to("/root")
    ):
        pytest.skip("needs root, with its Python in its private home")
    with pytest.raises(SandboxError, match="set KERNELGATE_RUNNER_PYTHON to one outside of a private folder"):
        Sandbox(python=Path(sys.executable), uid=64123, minimum="none", without=layers.NAMESPACES)


def test_every_layer_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [name for name in layers.NAMES if f"| {name} |" not in text] == []


@pytest.mark.parametrize(("machine", "column"), [("x86_64", 0), ("aarch64", 1)])
def test_numbers_are_the_kernels(machine: str, column: int) -> None:
    header = next((path for path in HEADERS[machine] if path.exists()), None)
    if header is None:
        pytest.skip(f"needs the kernel headers for {machine}, one of {HEADERS[machine]}")
    stated = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    wrong = {
        name: (numbers[column], stated.get(name))
        for name, numbers in syscalls.NUMBERS.items()
        if numbers[column] is not None and name in stated and int(stated[name]) != numbers[column]
    }
    assert wrong == {}
    assert len(set(syscalls.NUMBERS) & set(stated)) > 70
