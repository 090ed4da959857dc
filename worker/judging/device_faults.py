"""Failures of device code: a bad address, a changed input, runs that differ, a CUDA error.

One reason and one message for each, whichever backend saw it: both that replay on a GPU, the emulator and the interpreter.
How an event is found differs; what it is called and costs does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelgate.reasons import Reason
from kernelgate.stages import Limits
from worker.judging.failures import Failure

KEPT_OR_RACED = "Look for a race, an uninitialised read, or an answer kept from an earlier call"
OUTSIDE = "a kernel touched memory outside the buffers it was given"
FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": (Reason.ILLEGAL_ADDRESS, OUTSIDE),
    "CUDA_ERROR_MISALIGNED_ADDRESS": (Reason.MISALIGNED_ADDRESS, "a kernel used an address that its type cannot have"),
    "CUDA_ERROR_LAUNCH_FAILED": (Reason.KERNEL_FAILED, "a kernel failed on the device"),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": (Reason.ILLEGAL_INSTRUCTION, "a kernel ran an illegal instruction or a trap"),
    "CUDA_ERROR_ASSERT": (Reason.ASSERTION, "an assert in a kernel did not hold"),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": (Reason.STACK_OVERFLOW, "a kernel's stack overflowed"),
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": (Reason.ILLEGAL_ADDRESS, "a kernel used an address of the wrong memory space"),
    "CUDA_ERROR_INVALID_PC": (Reason.ILLEGAL_INSTRUCTION, "a kernel jumped to no code"),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (Reason.LAUNCH_REFUSED, "a launch asked for more than the card has"),
    "CUDA_ERROR_INVALID_VALUE": (Reason.LAUNCH_REFUSED, "the driver refused a launch"),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (
        Reason.LAUNCH_REFUSED,
        "a cooperative launch does not fit on the card at once",
    ),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": (Reason.LAUNCH_REFUSED, "a cluster size is not possible"),
    "CUDA_ERROR_INVALID_IMAGE": (Reason.LAUNCH_REFUSED, "the device code does not load"),
    "CUDA_ERROR_OUT_OF_MEMORY": (Reason.OUT_OF_MEMORY, "the device ran out of memory"),
}
"""What a CUDA error that device code can earn is called, and means. Any other error is ours."""


def input_changed(case: str, name: str) -> Failure:
    """The failure of a case after which the input `name` is not what it was."""
    message = f"Case {case}: the input {name!r} was changed; inputs are read-only."
    return Failure(Reason.INPUTS_CHANGED, message, case=case)


def check_memory(case: str, answer: Mapping[str, Any]) -> None:
    """Raises Failure for what a replay touched beside its outputs. answer: the bench's, to a `case` order."""
    if answer["changed"]:
        raise input_changed(case, str(answer["changed"][0]))
    if answer["strayed"]:
        message = f"Case {case}: {OUTSIDE}: something was written beside {answer['strayed'][0]!r}."
        raise Failure(Reason.ILLEGAL_ADDRESS, message, case=case)


def check_repeat(case: str, name: str, first: NDArray[Any], second: NDArray[Any], why: str = KEPT_OR_RACED) -> None:
    """Raises Failure unless two calls on one input gave the same bits; any NaN equals any other.

    first, second: the tensor `name` of both calls, of one shape and floating or integer dtype. why: where to look, a sentence
    without its full stop.
    """
    if first.tobytes() == second.tobytes():
        return
    one, other = first.astype(np.float64), second.astype(np.float64)
    differ = (one != other) | (np.signbit(one) != np.signbit(other))
    differ &= ~(np.isnan(one) & np.isnan(other))
    if differ.any():
        at = tuple(int(i) for i in np.argwhere(differ)[0])
        message = (
            f"Case {case}: two runs on one input differ in {int(differ.sum())} of {differ.size} values of {name}, first at "
            f"{list(at)}: {one[at]:.9g} and {other[at]:.9g}. {why}."
        )
        raise Failure(Reason.NOT_REPEATABLE, message, case=case)


def ending(answer: Mapping[str, Any], name: str | None, limits: Limits) -> Failure | None:
    """The failure that device code earned by how the bench ended, or None where that is ours. name: the case's."""
    where = f"Case {name}: " if name else ""
    what = str(answer.get("what", ""))
    match answer["kind"]:
        case "time_limit":
            message = f"{where}the kernels were stopped after {limits.case_s:g} s."
            return Failure(Reason.TIME_LIMIT, message, case=name)
        case "fault" if answer["name"] in FAULTS:
            reason, meaning = FAULTS[answer["name"]]
            return Failure(reason, f"{where}{meaning} ({answer['name']}).", case=name)
        case "refused":
            return Failure(Reason.LAUNCH_REFUSED, f"{where}{what}.", case=name)
        case "wrong_when_timed":
            message = f"{where}right when it was judged, wrong when it was timed on new input: {what}."
            return Failure(Reason.WRONG_WHEN_TIMED, message, case=name)
        case _:
            return None
