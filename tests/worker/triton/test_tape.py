"""The reader of recordings: what a recorder writes is taken, anything else is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kernelgate.stages import Case
from worker.judging.failures import Failure
from worker.recording.placement import PAGE, Edge
from worker.triton.recording import call
from worker.triton.replay import arguments
from worker.triton.tape import Kernel, MalformedRecordingError, read_recording

LAUNCH = {
    "op": "launch",
    "kernel": "k0",
    "grid": [4, 1, 1],
    "cluster": 1,
    "cooperative": False,
    "scratch": 0,
    "args": [["*fp16", 4096], ["i32", -3], ["fp32", (0.125).hex()]],
}
RESULT = {"name": "out", "address": 4096, "dtype": "float16", "shape": [33, 16]}


def recording(
    entries: list[Any], results: list[Any] | None = None, sizes: list[Any] | None = None
) -> tuple[dict[str, Any], bytes]:
    tape = json.dumps(
        [{"entries": entries, "sizes": sizes or [], "results": [RESULT] if results is None else results}]
    ).encode()
    kernels = [{"key": "k0", "name": "kernel", "shared": 1024, "warps": 4, "stages": 3, "image": 4}]
    return {"kind": "recorded", "tape": len(tape), "kernels": kernels}, tape + b"\x7fELF"


def test_a_launch_keeps_every_digit() -> None:
    (take,) = read_recording(*recording([LAUNCH])).takes
    assert [list(argument) for argument in take.launches[0].args] == LAUNCH["args"]
    assert take.results[0].size == 33 * 16 * 2


WRONG: dict[str, dict[str, Any]] = {
    "a kernel that did not come": {**LAUNCH, "kernel": "k1"},
    "a grid of two": {**LAUNCH, "grid": [1, 1]},
    "a grid of zero": {**LAUNCH, "grid": [0, 1, 1]},
    "a negative pointer": {**LAUNCH, "args": [["*fp16", -1]]},
    "an unknown type": {**LAUNCH, "args": [["tensordesc", 1]]},
    "a number that is none": {**LAUNCH, "args": [["fp32", "much"]]},
    "true for a number": {**LAUNCH, "args": [["i32", True]]},
    "an unknown entry": {"op": "free", "to": 0, "bytes": 4},
    "a fill with 256": {"op": "fill", "to": 0, "value": 256, "bytes": 4},
    "an upload that is not hex": {"op": "upload", "to": 0, "data": "zz"},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_entry_is_refused(name: str) -> None:
    with pytest.raises(MalformedRecordingError):
        read_recording(*recording([WRONG[name]]))


@pytest.mark.parametrize(
    "result", [{**RESULT, "dtype": "object"}, {**RESULT, "shape": [1 << 19, 1 << 19]}, {**RESULT, "shape": [-1]}]
)
def test_a_damaged_result_is_refused(result: dict[str, Any]) -> None:
    with pytest.raises(MalformedRecordingError):
        read_recording(*recording([LAUNCH], [result]))


def test_lost_bytes_are_noticed() -> None:
    header, payload = recording([LAUNCH])
    with pytest.raises(MalformedRecordingError, match="3 came"):
        read_recording(header, payload[:-1])


def test_every_call_has_addresses_of_its_own() -> None:
    first, second = (call({"q": 1056, "k": 1056}, edge) for edge in (Edge.END, Edge.START))
    assert (first.inputs["q"].address + 1056) % PAGE == 0
    assert second.inputs["q"].address % PAGE == 0
    for each in (first, second):
        starts = [*each.slots, *(buffer.mapping for buffer in each.inputs.values())]
        assert len({start >> 32 for start in starts}) == len(starts)


def test_arguments_that_do_not_fit_their_kernel_are_the_submissions_fault() -> None:
    case = Case(name="one", title="one", group="one")
    with pytest.raises(Failure) as raised:
        arguments(
            read_recording(*recording([LAUNCH])).takes[0].launches[0], Kernel("k0", "kernel", b"\x7fELF", 0, 4, 3), case
        )
    assert raised.value.reason == "tape_damaged"
