"""Frames come from hostile code: nothing that is sent may be believed, allocated for, or crash the reader."""

from __future__ import annotations

import contextlib
import io
import json
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.judging import frames
from worker.judging.frames import MalformedFrameError, encode, printable, receive, tensors


def reader(data: bytes):  # type: ignore[no-untyped-def]
    stream = io.BytesIO(data)

    def read(count: int) -> bytes:
        got = stream.read(count)
        if len(got) < count:
            raise EOFError
        return got

    return read


def raw_frame(header: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<4sI", b"KGF1", len(header)) + header + payload


def test_there_and_back() -> None:
    header, payload = receive(reader(encode({"kind": "case"}, b"abc")), max_payload=10)
    assert (header["kind"], payload) == ("case", b"abc")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"HTTP/1.1 200 OK\r\n", "a frame starts with"),
        (struct.pack("<4sI", b"KGF1", 1 << 31), "a frame starts with"),
        (raw_frame(b"not json"), "JSON"),
        (raw_frame(b"[" * 5000), "4096"),
        (raw_frame(b"[" * 4000), "JSON"),
        (raw_frame(b"[]"), "JSON object"),
        (raw_frame(b"{}"), "payload of None"),
        (raw_frame(b'{"bytes": true}'), "payload of True"),
        (raw_frame(b'{"bytes": -1}'), "payload of -1"),
        (raw_frame(b'{"bytes": 11}'), "payload of 11"),
        (raw_frame(b'{"bytes": 1e400}'), "payload of inf"),
    ],
)
def test_what_is_no_frame_is_said_to_be_none(data: bytes, said: str) -> None:
    with pytest.raises(MalformedFrameError, match=said):
        receive(reader(data), max_payload=10)


@pytest.mark.parametrize(
    "listed",
    [
        None,
        [{}] * 65,
        [{"name": "a"}],
        [{"name": "a", "dtype": "float32", "shape": [1 << 40]}],
        [{"name": "a", "dtype": "float32", "shape": "12"}],
        [{"name": "a", "dtype": "float32", "shape": [2]}, {"name": "b", "dtype": "float32", "shape": [1]}],
        [{"name": "a", "dtype": "float32", "shape": [1]}],
        ["a"],
    ],
)
def test_tensor_lists_that_do_not_fit(listed: object) -> None:
    with pytest.raises(MalformedFrameError):
        tensors({"tensors": listed}, b"\0" * 8)


@given(st.binary(max_size=400))
def test_any_bytes_end_in_a_frame_or_a_clear_error(data: bytes) -> None:
    try:
        header, payload = receive(reader(data), max_payload=100)
        tensors(header, payload)
    except (MalformedFrameError, EOFError):
        pass


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@settings(
    suppress_health_check=[HealthCheck.too_slow]
)  # the first draw compiles the strategy, on a busy machine slowly
@given(st.dictionaries(st.sampled_from(["tensors", "kind", "name", "bytes"]), json_values), st.binary(max_size=16))
def test_any_header_ends_in_tensors_or_a_clear_error(header: dict[str, object], payload: bytes) -> None:
    body = json.dumps({**header, "bytes": len(payload)}).encode()
    got, rest = receive(reader(raw_frame(body, payload)), max_payload=16)
    with contextlib.suppress(MalformedFrameError):
        assert all(len(tensor.data) <= 16 for tensor in tensors(got, rest).values())


def test_texts_are_bounded_and_plain() -> None:
    assert printable("a\x1b[31mred\x00", limit=100) == "a\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}"
    assert len(printable("x" * 1000, limit=10)) < 60
    assert frames.text({"message": 12}, "message") == ""
