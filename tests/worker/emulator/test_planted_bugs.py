"""Which pass finds which planted bug, and that right kernels are left alone: the matrix of docs/emulator.md."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.worker.emulator.conftest import Emulated
from tests.worker.emulator.planted_file import KERNELS, SOURCE, Planted, compile_bugs
from worker.emulator.toolchain import Pass

NONE, TOO_LONG = "", "it takes a loop of millions of checked reads to be called a deadlock"
# bug: what the plain and the check pass find
MATRIX: dict[str, tuple[str, str]] = {
    "shared_overrun": (NONE, "out_of_bounds"),
    "dynamic_overrun": (NONE, "out_of_bounds"),
    "read_past_end": ("out_of_bounds", "out_of_bounds"),
    "read_before_start": (NONE, "out_of_bounds"),
    "write_past_end": ("out_of_bounds", "out_of_bounds"),
    "uninitialised_shared": (NONE, "uninitialised"),
    "uninitialised_global": (NONE, "uninitialised"),
    "missing_barrier": (NONE, "race"),
    "missing_second_barrier": (NONE, "race"),
    "missing_syncwarp": (NONE, "race"),
    "shuffle_is_no_barrier": (NONE, "race"),
    "blocks_race": (NONE, "race"),
    "blocks_race_on_variable": (NONE, "race"),
    "counter_without_atomic": (NONE, "race"),
    "flag_without_fence": (NONE, "race"),
    "atomic_and_plain": (NONE, "race"),
    "copy_without_wait": (NONE, "uninitialised"),
    "misaligned_vector": ("misaligned", "misaligned"),
    "barrier_in_branch": ("deadlock", "deadlock"),
    "barrier_object_waits": ("deadlock", "deadlock"),
    "shuffle_in_branch": (NONE, "warp_mask"),
    "lane_outside_its_mask": ("warp_mask", "warp_mask"),
    "warp_operations_differ": ("warp_divergence", "warp_divergence"),
    "local_array_overrun": (NONE, NONE),
    "host_pointer": ("out_of_bounds", "out_of_bounds"),
    "null_pointer": ("out_of_bounds", "out_of_bounds"),
    "constant_write": ("trap", "trap"),
    "endless_recursion": ("stack_overflow", "stack_overflow"),
    "division_by_zero": ("arithmetic", "arithmetic"),
    "failed_assertion": ("assertion", "assertion"),
    "trapped": ("trap", "trap"),
    "endless_loop": ("still_running", "still_running"),
    "one_waits": ("deadlock", TOO_LONG),
    "unset_sum": (NONE, "uninitialised"),
    "unset_index": (NONE, "uninitialised"),
    "unset_choice": (NONE, "uninitialised"),
    "unset_in_some_threads": (NONE, "uninitialised"),
    "unset_in_one_lane": (NONE, "uninitialised"),
}


@pytest.fixture(scope="module")
def bugs(emulate: Callable[..., Emulated]) -> Planted:
    return compile_bugs(emulate, tuple(Pass))


def test_every_planted_bug_is_in_the_matrix() -> None:
    assert [name for name in KERNELS if not name.startswith("right_")] == list(MATRIX)
    assert len(MATRIX) >= 15


@pytest.mark.parametrize(
    ("bug", "build"),
    [
        (bug, build)
        for bug, found in MATRIX.items()
        for build, kind in zip(Pass, found, strict=True)
        if kind != TOO_LONG
    ],
)
def test_a_pass_finds_what_the_matrix_says(bugs: Planted, bug: str, build: Pass) -> None:
    ran = bugs(bug, build)
    told = ran.finding.sentence(ran.lines) if ran.finding else f"{ran.finished.end} {ran.finished.stderr[:300]!r}"
    found = ran.finding.kind if ran.finding else NONE
    assert found.replace("out_of_time", "still_running") == MATRIX[bug][list(Pass).index(build)], told
    if ran.finding is None:
        assert ran.returned, told


@pytest.mark.parametrize("build", Pass)
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name.startswith("right_")])
def test_a_right_kernel_is_left_alone(bugs: Planted, kernel: str, build: Pass) -> None:
    ran = bugs(kernel, build)
    assert ran.finding is None, ran.finding and ran.finding.sentence(ran.lines)
    assert ran.returned


def test_a_race_names_both_lines_and_threads(bugs: Planted) -> None:
    ran = bugs("missing_barrier", Pass.CHECK)
    assert ran.finding is not None
    line = next(at for at, text in enumerate(SOURCE.splitlines(), 1) if "KERNEL(missing_barrier)" in text)
    sentence = ran.finding.sentence(ran.lines)
    assert re.match(
        rf"line {line}, block \(0, 0, 0\), thread \(\d+, 0, 0\), kernel missing_barrier: a write of 4 bytes at byte",
        sentence,
    )
    assert "of the shared variable a (256 bytes" in sentence
    assert re.search(rf"The other access is a read: line {line}, block \(0, 0, 0\), thread \(\d+, 0, 0\)", sentence)


@pytest.mark.parametrize(
    ("bug", "words"),
    [
        ("unset_sum", "a variable that was never set is handed on in byte 0 of y"),
        ("unset_index", "an address is made of a variable that was never set"),
        ("unset_choice", "a branch depends on a variable that was never set"),
        ("unset_in_some_threads", "a variable that was never set is handed on in byte 0 of y"),
    ],
)
def test_a_variable_that_was_never_set_is_told_where_something_comes_of_it(bugs: Planted, bug: str, words: str) -> None:
    ran = bugs(bug, Pass.CHECK)
    assert ran.finding is not None
    line = next(at for at, text in enumerate(SOURCE.splitlines(), 1) if f"KERNEL({bug})" in text)
    sentence = ran.finding.sentence(ran.lines)
    assert sentence.startswith(f"line {line}, block (0, 0, 0), thread (0, 0, 0), kernel {bug}: {words}"), sentence


def test_a_deadlock_names_lines_and_lanes(bugs: Planted) -> None:
    ran = bugs("barrier_in_branch", Pass.PLAIN)
    assert ran.finding is not None
    assert "32 threads wait at a block barrier in line" in ran.finding.text
    assert "(lanes 0000ffff of warp 0)" in ran.finding.text
    assert "a warp operation" in ran.finding.text


def test_a_deadlock_names_the_line_of_a_loop_that_waits_and_no_line_0(bugs: Planted) -> None:
    ran = bugs("one_waits", Pass.PLAIN)
    assert ran.finding is not None
    line = next(at for at, text in enumerate(SOURCE.splitlines(), 1) if "if (T == 0) while (((volatile" in text)
    sentence = ran.finding.sentence(ran.lines)
    assert sentence.startswith(
        f"line {line}, block (0, 0, 0), thread (0, 0, 0), kernel one_waits: no thread of the block"
    ), sentence
    assert "1 threads wait at a waiting loop (lanes 00000001 of warp 0);" in sentence
    assert "line 0" not in sentence


@pytest.mark.parametrize("build", Pass)
def test_a_time_limit_names_the_line_that_ran(bugs: Planted, build: Pass) -> None:
    ran = bugs("endless_loop", build)
    assert ran.finding is not None
    line = next(at for at, text in enumerate(SOURCE.splitlines(), 1) if "KERNEL(endless_loop)" in text)
    sentence = ran.finding.sentence(ran.lines)
    assert re.match(
        rf"line {line}, block \(0, 0, 0\), thread \(\d+, 0, 0\), kernel endless_loop: the kernel was still", sentence
    )
