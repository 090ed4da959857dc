"""One reason and one wording for what kernels do besides computing."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.stages import Limits, Tolerance
from kernelgate.verdicts import Verdict
from worker.emulator.findings import KINDS
from worker.gpu.faults import FAULTS, ending
from worker.gpu.protocol import Ended
from worker.judging.device_faults import check_memory, check_printed, check_repeat
from worker.judging.failures import Failure
from worker.triton.interpret import FAULTS as INTERPRETED


def failure(changed: list[str], strayed: list[str]) -> Failure:
    with pytest.raises(Failure) as raised:
        check_memory("tokens_33", changed, strayed)
    return raised.value


def test_memory_that_was_left_alone_is_no_event() -> None:
    check_memory("tokens_33", [], [])


def test_a_changed_input_breaks_the_contract() -> None:
    changed = failure(["qkv"], ["out"])
    assert (changed.verdict, changed.reason) == (Verdict.CONTRACT_VIOLATION, "inputs_changed")
    assert changed.message == "Case tokens_33: the input 'qkv' was changed; inputs are read-only."


def test_a_write_beside_a_buffer_is_called_as_a_fault_on_its_fence_is() -> None:
    fault = ending(Ended("fault", "", "CUDA_ERROR_ILLEGAL_ADDRESS"), "tokens_33", Limits())
    assert fault is not None
    stray = failure([], ["out"])
    assert (stray.verdict, stray.reason, stray.case) == (fault.verdict, fault.reason, "tokens_33")
    assert stray.message.endswith("outside the buffers it was given: something was written beside 'out'.")
    assert "outside the buffers it was given (CUDA_ERROR_ILLEGAL_ADDRESS)." in fault.message


def test_a_bench_that_broke_is_no_failure_of_a_submission() -> None:
    assert ending(Ended("broken", "no memory"), None, Limits()) is None
    assert ending(Ended("fault", "", "CUDA_ERROR_ECC_UNCORRECTABLE"), None, Limits()) is None


@pytest.mark.parametrize(
    "name",
    ["CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_ERROR_NOT_FOUND", "CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_OF_TOMORROW"],
)
def test_whatever_else_the_driver_refuses_is_the_submissions_doing(name: str) -> None:
    refused = ending(Ended("fault", "", name), "tokens_33", Limits())
    assert refused is not None
    assert (refused.verdict, refused.reason) == (Verdict.RUNTIME_ERROR, "launch_refused")
    assert name in refused.message


def test_what_kernels_print_is_bounded() -> None:
    check_printed("tokens_33", 64 * 1024, 64)
    with pytest.raises(Failure, match="printed 65,537 bytes; at most 64 KiB") as raised:
        check_printed("tokens_33", 64 * 1024 + 1, 64)
    assert (raised.value.verdict, raised.value.reason) == (Verdict.RUNTIME_ERROR, "output_limit")


@pytest.mark.parametrize("reason", ["illegal_address", "misaligned_address", "assertion"])
def test_what_every_backend_can_see_has_one_reason(reason: str) -> None:
    assert reason in {known for known, _ in FAULTS.values()}
    assert reason in KINDS.values()
    assert INTERPRETED[reason] == reason


def test_a_repeat_is_compared_bit_for_bit_but_nan_is_nan() -> None:
    first = np.array([1.0, np.nan, 0.0], np.float32)
    other_nan = first.copy()
    other_nan.view(np.uint32)[1] ^= 1
    check_repeat("c", "out", first, other_nan)
    for at, value in ((0, np.nextafter(np.float32(1), np.float32(2))), (1, 3.0), (2, -0.0)):
        second = first.copy()
        second[at] = value
        with pytest.raises(Failure, match=rf"differ in 1 of 3 values of out, first at \[{at}\]") as raised:
            check_repeat("c", "out", first, second)
        assert (raised.value.verdict, raised.value.reason) == (Verdict.WRONG_ANSWER, "not_repeatable")


@pytest.mark.parametrize(
    ("first", "second", "agree"),
    [
        (1.0, 1.0009, True),
        (1.0, 1.0021, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (1.0, np.inf, False),
        (np.nan, 1.0, False),
        (np.nan, np.nan, True),
    ],
)
def test_a_stage_may_ask_that_two_runs_agree_within_the_tolerance(first: float, second: float, agree: bool) -> None:
    one, other = (np.array([value], np.float32) for value in (first, second))
    tolerance = Tolerance(absolute=1e-3, relative=1e-3)
    if agree:
        check_repeat("c", "y", one, other, tolerance=tolerance)
        return
    with pytest.raises(Failure, match="differ in 1 of 1 values of y"):
        check_repeat("c", "y", one, other, tolerance=tolerance)
