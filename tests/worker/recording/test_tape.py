"""The trusted reading of a tape: its form, its bounds, and the order that streams and events give it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from worker.recording.entries import Copy, Fill, Upload
from worker.recording.placement import Buffer, Edge, place
from worker.recording.tape import Launch, MalformedTapeError, Tape, UnjoinedError, read_tape

BUFFERS = {"out": Buffer("out", 0x6000_0010_0000, 4096, 0x6000_0000_0000, 2 << 20, True)}
OUT = BUFFERS["out"].address


def launch(stream: int = 1, **changes: Any) -> dict[str, Any]:
    entry = {"op": "launch", "kernel": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "shared": 0, "stream": stream}
    return {**entry, "arguments": "00ff", **changes}


def fill(stream: int = 1, **changes: Any) -> dict[str, Any]:
    return {"op": "fill", "stream": stream, "to": OUT, "value": 0, "bytes": 16, **changes}


def read(*entries: dict[str, Any], end: bool = True) -> Tape:
    lines = [*entries, {"op": "end"}] if end else list(entries)
    return read_tape("\n".join(json.dumps(entry) for entry in lines).encode(), BUFFERS)


def descriptor(**changed: Any) -> dict[str, Any]:
    shape = {"sizes": [4, 4], "strides": [16], "box": [4, 2], "steps": [1, 1]}
    modes = {"type": 7, "interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0}
    return {"op": "descriptor", "token": "ab" * 128, "address": OUT, **shape, **modes, **changed}


def order(*entries: dict[str, Any]) -> list[tuple[int, ...]]:
    return [node.after for node in read(*entries).nodes]


def test_entries_become_work() -> None:
    tape = read(
        {"op": "variable", "name": "table", "bytes": 64, "address": 0x5A00_0000_0000},
        {"op": "attribute", "kernel": "k", "which": 8, "value": 65536},
        launch(cluster=[1, 2, 1], cooperative=True),
        fill(value=255),
        {"op": "copy", "stream": 1, "to": OUT, "from": OUT + 64, "bytes": 64},
        {"op": "upload", "stream": 1, "to": 0x5A00_0000_0000, "data": "01020304"},
    )
    assert [node.work for node in tape.nodes] == [
        Launch("k", (1, 1, 1), (32, 1, 1), 0, b"\x00\xff", (1, 2, 1), True),
        Fill(OUT, 255, 16),
        Copy(OUT, OUT + 64, 64),
        Upload(0x5A00_0000_0000, b"\x01\x02\x03\x04"),
    ]
    assert tape.shared_limits == {"k": 65536}
    assert tape.launches == 1


def test_a_stream_keeps_its_order() -> None:
    assert order(launch(), launch(), fill()) == [(), (0,), (1,)]


def test_an_event_joins_a_stream_of_its_own() -> None:
    fork = [{"op": "record", "event": 1, "stream": 1}, {"op": "wait", "event": 1, "stream": 2}]
    join = [{"op": "record", "event": 2, "stream": 2}, {"op": "wait", "event": 2, "stream": 1}]
    nonblocking = {"op": "nonblocking", "stream": 2}
    assert order(launch(), nonblocking, *fork, launch(2), launch(), *join, fill()) == [(), (0,), (0,), (1, 2)]


def test_the_default_stream_waits_for_blocking_streams_and_they_for_it() -> None:
    assert order(launch(1), launch(2), launch(0), launch(1)) == [(), (), (0, 1), (2,)]


def test_a_nonblocking_stream_does_not_wait_for_the_default_stream() -> None:
    wait = [{"op": "record", "event": 1, "stream": 2}, {"op": "wait", "event": 1, "stream": 1}]
    assert order(launch(0), {"op": "nonblocking", "stream": 2}, launch(2), *wait, launch(1)) == [(), (), (0, 1)]


@pytest.mark.parametrize("stream", [-1, 2])
def test_what_the_host_waited_for_precedes_everything_later(stream: int) -> None:
    quiet = {"op": "nonblocking", "stream": 2}
    assert order(quiet, launch(2), {"op": "synchronize", "stream": stream}, launch(1)) == [(), (0,)]


def test_work_that_nothing_waits_for_is_refused() -> None:
    with pytest.raises(UnjoinedError, match="k on stream 2") as caught:
        read({"op": "nonblocking", "stream": 2}, launch(1), launch(2))
    assert (caught.value.work, caught.value.stream) == ("k", 2)


def test_an_event_recorded_before_the_work_joins_nothing() -> None:
    early = [{"op": "record", "event": 1, "stream": 2}, launch(2), {"op": "wait", "event": 1, "stream": 1}]
    with pytest.raises(UnjoinedError):
        read({"op": "nonblocking", "stream": 2}, *early, launch(1))


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (fill(to=OUT - 1), "lie in no buffer"),
        (fill(bytes=4097), "lie in no buffer"),
        (fill(bytes=-1), "bytes is -1"),
        (fill(value=True), "value is True"),
        (fill(value=256), "value is 256"),
        (launch(grid=[1, 1]), "no three sizes"),
        (launch(grid=[0, 1, 1]), "no three sizes"),
        (launch(block=[2048, 1, 1]), "no three sizes"),
        (launch(arguments="0"), "hexadecimal"),
        (launch(arguments="00" * 40_000), "at most"),
        (launch(kernel=7), "kernel is a text"),
        ({"op": "variable", "name": "v", "bytes": 4, "address": OUT}, "address is"),
        (descriptor(token="00" * 64), "64 bytes"),
        (descriptor(sizes=[]), "rank 0"),
        (descriptor(sizes=[4] * 6), "rank 6"),
        (descriptor(strides=[16, 16]), "do not fit rank 2"),
        (descriptor(box=[257, 1]), "box is"),
        (descriptor(steps="11"), "steps is"),
        (descriptor(type=True), "type is True"),
        (descriptor(address=OUT - 1), "lie in no buffer"),
        ({"op": "run_this"}, "run_this"),
        ({"nothing": 1}, "op"),
        ({"op": "copy", "stream": 1, "to": OUT, "from": 0, "bytes": 4}, "lie in no buffer"),
    ],
)
def test_a_malformed_entry_is_named(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(MalformedTapeError, match=said):
        read(fill(), entry)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[1]\n", b"{", b'{"op":"fill"}', b"[" * 100_000])
def test_bytes_that_are_no_tape_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedTapeError):
        read_tape(data, BUFFERS)


def test_a_tape_needs_its_end() -> None:
    with pytest.raises(MalformedTapeError, match="no end"):
        read(launch(), end=False)


def test_too_many_entries_are_refused() -> None:
    with pytest.raises(MalformedTapeError, match="entries"):
        read_tape(b'{"op":"end"}\n' * 20_001, BUFFERS)


def test_a_violation_ends_the_tape_and_is_kept() -> None:
    entry = {"op": "violation", "reason": "workspace", "call": "cudaMalloc", "detail": "", "bytes": 64}
    tape = read(launch(2), entry, end=False)
    assert tape.violation is not None
    assert (tape.violation.call, tape.violation.size) == ("cudaMalloc", 64)


@pytest.mark.parametrize("edge", Edge)
@pytest.mark.parametrize("size", [3072, 2 << 20, (2 << 20) + 2048])
def test_a_buffer_touches_the_edge_of_its_mapping(edge: Edge, size: int) -> None:
    buffer = place({"qkv": size, "out": size}, frozenset({"out"}), edge)["out"]
    assert buffer.written
    assert buffer.address % 256 == 0
    start, end = buffer.mapping, buffer.mapping + buffer.mapped
    assert start <= buffer.address
    assert buffer.address + size <= end
    assert buffer.address == start if edge is Edge.START else buffer.address + size == end


def test_no_place_is_used_twice() -> None:
    sizes = {"a": 1024, "b": 1024}
    seen = [buffer.address for _ in range(200) for buffer in place(sizes, frozenset(), Edge.END).values()]
    assert len(set(seen)) == len(seen)
