"""Messages between the trusted side and the runner in the sandbox.

A frame is 4 bytes magic, 4 bytes length of the header, the header (a JSON object), then as many raw bytes as the header's
`bytes` says. What comes from the sandbox is hostile: sizes are checked before a byte is read for them, and a frame that is
not as it must be is the submission's fault (only submitted code can have written it), never ours.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping

from worker.judging.arrays import MalformedTensorError, RawTensor, byte_count

MAGIC = b"KGF1"
PREFIX = struct.Struct("<4sI")
MAX_HEADER = 256 * 1024
Header = Mapping[str, object]
"""What the other side said of a frame: of no type that anybody knows before he has looked."""


class MalformedFrameError(ValueError):
    """Bytes that are no frame; the text says what was expected."""


def encode(header: Mapping[str, object], payload: bytes = b"") -> bytes:
    """One frame. `header` must not have a key `bytes`."""
    body = json.dumps({**header, "bytes": len(payload)}).encode()
    return PREFIX.pack(MAGIC, len(body)) + body + payload


def receive(read: Callable[[int], bytes], *, max_payload: int) -> tuple[Header, bytes]:
    """Reads one frame with `read(count)`. Raises MalformedFrameError; what `read` raises passes through."""
    magic, length = PREFIX.unpack(read(PREFIX.size))
    if magic != MAGIC or length > MAX_HEADER:
        raise MalformedFrameError(f"a frame starts with {MAGIC!r} and a header of at most {MAX_HEADER} bytes")
    header = _parse(read(length))
    count = header.get("bytes")
    if type(count) is not int or not 0 <= count <= max_payload:
        stated = str(count)[:40] if isinstance(count, int | float | str | None) else f"a {type(count).__name__}"
        raise MalformedFrameError(f"frame payload of {stated} bytes: 0 to {max_payload} are accepted")
    return header, read(count)


def _parse(body: bytes) -> Header:
    if body.count(b"[") + body.count(b"{") > 4096:
        raise MalformedFrameError("a frame header has at most 4096 lists and objects")
    try:
        header = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedFrameError(f"a frame header is JSON: {str(error)[:200]}") from error
    if not isinstance(header, dict):
        raise MalformedFrameError("a frame header is a JSON object")
    return header


def text(header: Header, key: str, *, limit: int = 4000) -> str:
    """A text of a received header, bounded and without control characters; empty when missing."""
    value = header.get(key, "")
    return printable(value[: limit * 2] if isinstance(value, str) else "", limit=limit)


def printable(value: str, *, limit: int) -> str:
    """`value` with everything but printable characters, newlines and tabs replaced, cut at `limit` characters."""
    kept = "".join(
        letter if letter.isprintable() or letter in "\n\t" else "\N{REPLACEMENT CHARACTER}" for letter in value
    )
    return kept if len(kept) <= limit else kept[:limit] + f"\n… ({len(kept) - limit} characters cut)"


def _shape(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(size) is int for size in value):
        raise MalformedTensorError("a shape is a list of whole numbers")
    return tuple(value)


def _word(item: Header, key: str) -> str:
    value = item[key]
    if not isinstance(value, str):
        raise MalformedTensorError(f"{key} is a {type(value).__name__}; a text is accepted")
    return value[:80]


def tensors(header: Header, payload: bytes) -> dict[str, RawTensor]:
    """The tensors of a result frame: `tensors` lists name, dtype and shape; the payload holds their bytes in that order."""
    listed = header.get("tensors")
    if not isinstance(listed, list) or len(listed) > 64:
        raise MalformedFrameError("a result frame lists at most 64 tensors")
    found: dict[str, RawTensor] = {}
    at = 0
    try:
        for item in listed:
            name, dtype, shape = _word(item, "name"), _word(item, "dtype"), _shape(item["shape"])
            size = byte_count(dtype, shape)
            found[name] = RawTensor(dtype, shape, payload[at : at + size])
            at += size
    except (KeyError, TypeError, OverflowError, ValueError) as error:
        raise MalformedFrameError(f"a tensor of a result frame: {str(error)[:200]}") from error
    if at != len(payload):
        raise MalformedFrameError(f"the tensors of a result frame take {at} bytes; {len(payload)} came")
    return found


__all__ = ["Header", "MalformedFrameError", "MalformedTensorError", "encode", "printable", "receive", "tensors", "text"]
