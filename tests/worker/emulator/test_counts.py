"""What the check pass counts of memory, held against what was counted by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.worker.emulator.conftest import Emulated
from worker.emulator import counts
from worker.emulator.run import addr2line
from worker.emulator.toolchain import Pass
from worker.judging.traffic import Access

SOURCE = (Path(__file__).parent / "planted" / "memory.cu").read_text()
KERNELS = re.findall(r"^KERNEL\((\w+)\)", SOURCE, re.MULTILINE)
SIGNATURE = 'extern "C" void memory(const float* x, float* y, int which, cudaStream_t stream)'
BYTES = 64 * 64 * 4
SCATTERED, IN_ORDER, FOURS, ONE = (32, 4), (4, 4), (16, 16), (1, 1)


@dataclass(frozen=True)
class Counted:
    emulated: Emulated
    text: str

    def __call__(self, kernel: str) -> dict[str, Access]:
        """By what was done."""
        x = np.arange(64 * 64, dtype=np.float32)
        ran = self.emulated(Pass.CHECK, {"x": x}, {"y": BYTES}, {"which": KERNELS.index(kernel)}, count=True)
        assert ran.finding is None, ran.finding
        lines = addr2line(self.emulated.job.sandbox, self.emulated.programs[Pass.CHECK])
        return {each.what: each for each in counts.accesses(counts.read(ran.counted), "memory.cu", lines)}


@pytest.fixture(scope="module")
def counted(emulate: Callable[..., Emulated]) -> Counted:
    text = SOURCE.replace("        KERNELS\n", f"        {', '.join(KERNELS)}\n")
    return Counted(emulate("memory", SIGNATURE, text, [Pass.CHECK]), text)


def a_request(access: Access) -> tuple[float, float]:
    return access.taken / access.requests, access.least / access.requests


@pytest.mark.parametrize(
    ("kernel", "read", "written", "requests"),
    [
        ("in_order", IN_ORDER, IN_ORDER, 128),
        ("by_columns", SCATTERED, SCATTERED, 128),
        ("by_fours", FOURS, FOURS, 32),
        ("one_for_all", ONE, IN_ORDER, 128),
        ("some_lanes", ONE, ONE, 32),
    ],
)
def test_sectors_of_a_request_to_global_memory(
    counted: Counted, kernel: str, read: tuple[float, float], written: tuple[float, float], requests: int
) -> None:
    found = counted(kernel)
    assert found.keys() == {"read x", "write y"}
    assert a_request(found["read x"]) == read
    assert a_request(found["write y"]) == written
    assert {each.requests for each in found.values()} == {requests}
    assert {each.kernel for each in found.values()} == {kernel}


@pytest.mark.parametrize(("kernel", "passes"), [("turned_at_32", 32), ("turned_at_33", 1)])
def test_passes_over_the_banks_of_shared_memory(counted: Counted, kernel: str, passes: int) -> None:
    found = counted(kernel)
    assert a_request(found["write tile"]) == ONE
    assert a_request(found["read tile"]) == (passes, 1)
    lines = counted.text.splitlines()
    assert "= tile[lane * pitch + row]" in lines[found["read tile"].line - 1]
    assert "= x[row * kSide + lane]" in lines[found["write tile"].line - 1]


def test_eight_bytes_a_lane_take_a_pass_for_each_half_of_a_warp(counted: Counted) -> None:
    found = counted("pairs_in_shared")
    assert a_request(found["read pairs"]) == a_request(found["write pairs"]) == (2, 2)


def test_what_a_block_reads_again_is_told_apart_from_what_others_read(counted: Counted) -> None:
    again = counted("three_times")["read x"]
    assert (again.within, again.distinct) == (3 * 4096, 4096)
    shared = counted("pairs_in_shared")["read x"]  # every block reads the same, once
    assert shared.within == shared.distinct == 4 * 2048


@pytest.mark.parametrize(
    "change",
    [
        {"size": 3},
        {"taken": 0},
        {"kernel": "k" * 3000},
        {"array": "\u202e"},
        {"lanes": -1},
        {"more": 1},
        {"pc": "main"},
    ],
)
def test_what_is_no_count_is_not_read(change: dict[str, object]) -> None:
    place = {"kernel": "k", "pc": "0x40", "array": "x", "size": 4, "shared": False, "writes": False}
    place |= {
        "accesses": 32,
        "sampled": 32,
        "lanes": 32,
        "requests": 1,
        "taken": 4,
        "least": 4,
        "bytes": 128,
        "distinct": 128,
    }
    assert len(counts.read(json.dumps(place).encode())) == 1
    assert counts.read(f"{json.dumps(place)}\n{json.dumps({**place, **change})}\n".encode()) == []
