"""The emulator with clang++, and for aarch64 under qemu-user: its runtime, samples of every kind, and what the checks find.

Each is skipped, and says why, where the compiler or qemu is not there; `test_kernels.py` and `test_planted_bugs.py` are the
whole of it with the compiler that this host grades with.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worker.emulator.conftest import Emulated, compiling
from tests.worker.emulator.merged import Merged, merge
from tests.worker.emulator.planted_file import Planted, compile_bugs
from tests.worker.emulator.samples import SAMPLES
from tests.worker.emulator.test_planted_bugs import MATRIX
from worker.emulator.compilers import compiler_at, shortcoming
from worker.emulator.toolchain import Pass, Toolchain
from worker.sandbox import Sandbox

CROSS, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64"
ROOT_OF_CROSS = "/usr/aarch64-linux-gnu"
UNDER_QEMU = f"""#!/bin/sh
tail -n +4 "$0" > program && chmod u+x program
exec {QEMU} -L {ROOT_OF_CROSS} ./program
""".encode()
"""Put before a program for aarch64, it makes a script of the whole that unpacks and starts it."""
CHOSEN = [
    sample
    for sample in SAMPLES
    if sample.name in ("scan", "reduce", "softmax", "half2_axpy", "jacobi", "compaction", "async_copy")
]
BUGS = ("missing_barrier", "uninitialised_global", "misaligned_vector", "atomic_and_plain", "flag_without_fence")
MISSED_WITH_CLANG = "misaligned_vector"
"""clang++ looks at the alignment of what is read by member, not of a vector that is copied whole."""
PATIENCE_S = 900

Compile = Callable[..., Emulated]


def toolchain_of(name: str) -> Toolchain:
    """Skips where the compiler is not there or lacks something."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"no {name} here")
    found = compiler_at(Path(path))
    if why := shortcoming(found):
        pytest.skip(why)
    return Toolchain(found)


@pytest.fixture(scope="module", params=["clang++", CROSS])
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    return toolchain_of(request.param)


@pytest.fixture(scope="module")
def compile_it(toolchain: Toolchain, sandbox: Sandbox) -> Compile:
    starter = b""
    if toolchain.compiler.machine != platform.machine():
        if shutil.which(QEMU) is None or not Path(ROOT_OF_CROSS).is_dir():
            pytest.skip(f"no {QEMU} here to run what {CROSS} compiles; on Debian: apt-get install qemu-user")
        starter = UNDER_QEMU
    toolchain.prepare([Pass.PLAIN, Pass.CHECK])
    return compiling(toolchain, sandbox, starter)


@pytest.fixture(scope="module")
def merged(compile_it: Compile) -> Merged:
    return merge(CHOSEN, compile_it, [Pass.PLAIN, Pass.CHECK])


@pytest.fixture(scope="module")
def bugs(compile_it: Compile) -> Planted:
    return compile_bugs(compile_it, [Pass.CHECK])


@pytest.mark.timeout(PATIENCE_S)
def test_samples_give_numpys_answers(merged: Merged) -> None:
    for sample in CHOSEN:
        inputs = sample.made()
        for build in (Pass.PLAIN, Pass.CHECK):
            assert sample.wrong(inputs, merged(sample, build)) == "", (sample.name, build)


@pytest.mark.timeout(PATIENCE_S)
def test_the_check_pass_finds_what_it_finds_elsewhere(toolchain: Toolchain, bugs: Planted) -> None:
    ran = {name: bugs(name, Pass.CHECK) for name in (*BUGS, "endless_recursion", "right_lock")}
    kinds = {name: one.finding.kind if one.finding else "" for name, one in ran.items()}
    wanted = {name: MATRIX[name][1] if name in MATRIX else "" for name in ran}
    if toolchain.compiler.clang:
        wanted[MISSED_WITH_CLANG] = ""
    assert kinds == wanted
    race = ran["missing_barrier"]
    assert race.finding is not None
    if toolchain.compiler.machine == platform.machine():  # this host's addr2line reads its own programs alone
        assert race.finding.sentence(race.lines).startswith("line ")
