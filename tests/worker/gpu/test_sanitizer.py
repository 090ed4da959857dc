"""What compute-sanitizer says, in one line; its logs are those of version 2025.3."""

from __future__ import annotations

from kernelgate.reasons import Reason
from worker.gpu.sanitizer import explained, found
from worker.judging.failures import Failure

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at <unnamed>::plainRows(const float *, float *, int)+0x1a30 in /tmp/x/attention.cu:52
=========     by thread (31,0,0) in block (2,7,0)
=========     Access to 0x600000400000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x600000200000 of size 2097152 bytes
========= ERROR SUMMARY: 1 error
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at <unnamed>::tile(const float *, float *)+0x530 in attention.cu:31
=========     and Read access at <unnamed>::tile(const float *, float *)+0x6a0 in attention.cu:40 [992 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""


def test_the_first_error_is_told_with_its_line() -> None:
    assert found(MEMCHECK) == (
        "Invalid __global__ write of size 4 bytes in attention.cu:52, by thread (31,0,0) of block (2,7,0)"
    )
    assert found(RACECHECK) == "Race reported between Write access in attention.cu:31"


def test_a_log_without_an_error_says_nothing() -> None:
    assert found("") is None
    assert found("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") is None


def test_a_log_may_hold_anything() -> None:
    hostile = MEMCHECK.replace("Invalid __global__", "Invalid \x1b]0;x\x07" + "x" * 5000)
    shown = found(hostile)
    assert shown is not None
    assert "\x1b" not in shown
    assert len(shown) < 400


def test_a_failure_that_no_tool_explains_stays_as_it_is() -> None:
    failure = Failure(Reason.TIME_LIMIT, "the kernels were stopped.")
    assert explained(failure, b"", [({}, b"")], lambda: False).message == "the kernels were stopped."
    fault = Failure(Reason.ILLEGAL_ADDRESS, "a fault.")
    assert explained(fault, b"", [], lambda: False).message == "a fault."
