"""Loads, stores, atomics, copies, warp instructions, barriers, calls and branches: each spelling's parts at least once.

One module holds all kernels. A kernel gets the addresses of 64-bit words that are given and of those that it writes.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.worker.emulator.ptx import barrier_kernels, control_kernels, memory_kernels
from tests.worker.emulator.ptx.machine import Launch, Programs, played, programs
from tests.worker.emulator.ptx.matrix_kernels import module
from tests.worker.emulator.ptx.sample import GIVEN, WORDS, Sample, low
from worker.emulator.ptx import PATTERNS
from worker.emulator.toolchain import Toolchain
from worker.sandbox import Sandbox

LANES = 128
"""Threads whose words there is room for."""
SAMPLES = [*memory_kernels.SAMPLES, *control_kernels.SAMPLES, *barrier_kernels.SAMPLES]


@pytest.fixture(scope="module")
def made(compiler: Toolchain, sandbox: Sandbox) -> Programs:
    del compiler
    return programs("".join(sample.text() for sample in SAMPLES) + control_kernels.PRINTING, sandbox)


@pytest.fixture(scope="module")
def written(made: Programs, sandbox: Sandbox) -> dict[str, np.ndarray]:
    """By sample, the words that each thread wrote; a word that none has written is all ones."""
    data, found = np.array(GIVEN, dtype=np.uint64), {}
    for sample in SAMPLES:
        blocks, threads, cooperative = sample.launch
        shared, cluster = 256 * (sample.name == "dynamic_shared"), 2 * (sample.name == "clusters")
        launch = Launch(sample.name, blocks, threads, shared, cooperative, cluster)
        ran = played(made, sandbox, [launch], data, 8 * WORDS * LANES)
        told = ran.finding.text if ran.finding else ran.finished.stderr.decode(errors="replace")
        assert ran.returned, f"{sample.name}: {ran.finished.end}: {told}"
        found[sample.name] = np.frombuffer(ran.written["written"], np.uint64).reshape(LANES, WORDS)
    return found


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_kernel_moves_what_the_isa_says(written: dict[str, np.ndarray], sample: Sample) -> None:
    blocks = sample.launch[0] if sample.name == "clusters" else 1
    for thread in range(blocks * sample.launch[1]):
        wanted = [low(int(value), 64) for value in sample.wanted(thread)]
        got = [int(value) for value in written[sample.name][thread][: len(wanted)]]
        assert [hex(it) for it in got] == [hex(it) for it in wanted], f"thread {thread}"


def test_a_kernel_prints_and_asserts(made: Programs, sandbox: Sandbox) -> None:
    data = np.array(GIVEN, dtype=np.uint64)
    ran = played(made, sandbox, [Launch("printing", block=1)], data, 64)
    assert ran.finished.stdout.decode() == control_kernels.PRINTED
    assert ran.finding is not None
    assert (ran.finding.kind, ran.finding.site.line) == ("assertion", 41)
    assert "the assertion word" in ran.finding.text


def test_every_pattern_of_an_opcode_has_a_kernel() -> None:
    """A handler that no kernel above reaches is untested, and so is an atomic operation on a type."""
    text = "".join(sample.text() for sample in SAMPLES)
    spoken = set(re.findall(r"(?<=[\s;])[a-z]\w*(?:(?:\.|::)\w+)*(?=[\s;])", text))
    spoken |= set(re.findall(r"(?<=[\s;])[a-z]\w*(?:(?:\.|::)\w+)*(?=[\s;])", module()))
    for pattern, handler in PATTERNS:
        assert any(pattern.fullmatch(word) for word in spoken), f"no kernel for {handler.__name__}: {pattern.pattern}"
