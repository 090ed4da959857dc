"""Failures of device code: a bad address, a changed input, runs that differ, a CUDA error.

One reason and one message for each, whichever backend saw it: both that replay on a GPU, the emulator and the interpreter.
How an event is found differs; what it is called and costs does not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgate.reasons import Reason
from kernelgate.stages import Tolerance
from worker.judging.arrays import Array
from worker.judging.failures import Failure

KEPT_OR_RACED = "Look for a race, an uninitialised read, or an answer kept from an earlier call"
OUTSIDE = "a kernel touched memory outside the buffers it was given"


def input_changed(case: str, name: str) -> Failure:
    """The failure of a case after which the input `name` is not what it was."""
    message = f"Case {case}: the input {name!r} was changed; inputs are read-only."
    return Failure(Reason.INPUTS_CHANGED, message, case=case)


def stray_write(case: str, name: str) -> Failure:
    """The failure of a case after which something stands beside the buffer `name`."""
    message = f"Case {case}: {OUTSIDE}: something was written beside {name!r}."
    return Failure(Reason.ILLEGAL_ADDRESS, message, case=case)


def check_memory(case: str, changed: Sequence[str], strayed: Sequence[str]) -> None:
    """Raises Failure for what a replay touched beside its outputs: inputs that it changed, buffers that it wrote beside."""
    if changed:
        raise input_changed(case, changed[0])
    if strayed:
        raise stray_write(case, strayed[0])


def check_printed(case: str, printed: int, limit_kb: int) -> None:
    """Raises Failure where device code printed more bytes than a submission may."""
    if printed > limit_kb * 1024:
        message = f"Case {case}: the kernels printed {printed:,} bytes; at most {limit_kb} KiB are accepted."
        raise Failure(Reason.OUTPUT_LIMIT, message, case=case)


def check_repeat(
    case: str,
    name: str,
    first: Array,
    second: Array,
    why: str = KEPT_OR_RACED,
    *,
    tolerance: Tolerance | None = None,
) -> None:
    """Raises Failure unless two calls on one input gave the same bits, or values within `tolerance`; any NaN equals any other.

    first, second: the tensor `name` of both calls, of one shape and floating or integer dtype. why: where to look, a sentence
    without its full stop. tolerance: `Grader.repeat_tolerance`.
    """
    if first.tobytes() == second.tobytes():
        return
    one, other = first.astype(np.float64), second.astype(np.float64)
    differ = (one != other) | (np.signbit(one) != np.signbit(other))
    differ &= ~(np.isnan(one) & np.isnan(other))
    if tolerance is not None:
        with np.errstate(invalid="ignore"):
            near = np.abs(one - other) <= tolerance.absolute + tolerance.relative * np.abs(other)
        differ &= ~(near & np.isfinite(other))
    if differ.any():
        at = tuple(int(i) for i in np.argwhere(differ)[0])
        message = (
            f"Case {case}: two runs on one input differ in {int(differ.sum())} of {differ.size} values of {name}, first at "
            f"{list(at)}: {one[at]:.9g} and {other[at]:.9g}. {why}."
        )
        raise Failure(Reason.NOT_REPEATABLE, message, case=case)
