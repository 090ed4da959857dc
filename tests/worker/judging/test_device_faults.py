"""One reason and one wording for what kernels do besides computing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelgate.stages import Limits
from kernelgate.verdicts import Verdict
from worker.emulator.findings import KINDS
from worker.judging.device_faults import FAULTS, check_memory, check_repeat, ending
from worker.judging.failures import Failure
from worker.triton.interpret import FAULTS as INTERPRETED


def told(answer: dict[str, Any]) -> Failure:
    with pytest.raises(Failure) as raised:
        check_memory("tokens_33", {"changed": [], "strayed": [], **answer})
    return raised.value


def test_memory_that_was_left_alone_is_no_event() -> None:
    check_memory("tokens_33", {"changed": [], "strayed": []})


def test_a_changed_input_breaks_the_contract() -> None:
    failure = told({"changed": ["qkv"], "strayed": ["out"]})
    assert (failure.verdict, failure.reason) == (Verdict.CONTRACT_VIOLATION, "inputs_changed")
    assert failure.message == "Case tokens_33: the input 'qkv' was changed; inputs are read-only."


def test_a_write_beside_a_buffer_is_called_as_a_fault_on_its_fence_is() -> None:
    fault = ending({"kind": "fault", "name": "CUDA_ERROR_ILLEGAL_ADDRESS"}, "tokens_33", Limits())
    assert fault is not None
    stray = told({"strayed": ["out"]})
    assert (stray.verdict, stray.reason, stray.case) == (fault.verdict, fault.reason, "tokens_33")
    assert stray.message.endswith("outside the buffers it was given: something was written beside 'out'.")
    assert "outside the buffers it was given (CUDA_ERROR_ILLEGAL_ADDRESS)." in fault.message


def test_a_bench_that_broke_is_no_failure_of_a_submission() -> None:
    assert ending({"kind": "broken", "what": "no memory"}, None, Limits()) is None
    assert ending({"kind": "fault", "name": "CUDA_ERROR_ECC_UNCORRECTABLE", "what": ""}, None, Limits()) is None


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
