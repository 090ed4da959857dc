"""Entries that tapes of CUDA and of Triton files share (docs/tape.md), and how a field is read strictly.

A recorder runs beside submitted code, so an entry may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_TAPE = 8 << 20
Entry = Mapping[str, object]
"""An entry of a tape: of no type before it was looked at, for whoever was recorded may have written it."""


@dataclass(frozen=True)
class Fill:
    """`size` bytes of `value` from `to` on."""

    to: int
    value: int
    size: int


@dataclass(frozen=True)
class Copy:
    """`size` bytes from device memory to device memory."""

    to: int
    source: int
    size: int


@dataclass(frozen=True)
class Upload:
    """Bytes of the host's, copied to the device as they were when the seam asked for it."""

    to: int
    data: bytes


MemoryWork = Fill | Copy | Upload


def memory_work(entry: Entry) -> MemoryWork:
    """What an entry does to memory. Raises ValueError, TypeError or KeyError for what is none."""
    op, to = text(entry, "op", 40), number(entry, "to", range(1 << 63))
    if op == "upload":
        return Upload(to, bytes.fromhex(text(entry, "data", MAX_TAPE)))
    size = number(entry, "bytes", range(1, 1 << 40))
    if op == "fill":
        return Fill(to, number(entry, "value", range(256)), size)
    if op == "copy":
        return Copy(to, number(entry, "from", range(1 << 63)), size)
    raise ValueError(f"an entry {op!r}")


def spans(work: MemoryWork) -> list[tuple[int, int]]:
    """The addresses that are written and read, with their bytes."""
    match work:
        case Copy(to, source, size):
            return [(to, size), (source, size)]
        case Fill(to, _, size):
            return [(to, size)]
        case Upload(to, data):
            return [(to, len(data))]


def number(entry: Entry, key: str, accepted: range) -> int:
    value = entry[key]
    if type(value) is not int or value not in accepted:
        raise ValueError(f"{key} is {str(value)[:40]}; {accepted.start} to {accepted.stop - 1} are accepted")
    return value


def text(entry: Entry, key: str, limit: int = 2000) -> str:
    value = entry[key]
    if not isinstance(value, str) or len(value) > limit:
        raise ValueError(f"{key} is a text of at most {limit} characters")
    return value


def numbers(entry: Entry, key: str, accepted: range) -> tuple[int, ...]:
    values = entry[key]
    if not isinstance(values, list) or any(type(value) is not int or value not in accepted for value in values):
        raise ValueError(f"{key} is {str(values)[:60]}; {accepted.start} to {accepted.stop - 1} are accepted")
    return tuple(values)


def triple(value: object, accepted: Iterable[int]) -> tuple[int, int, int]:
    if not isinstance(value, list) or len(value) != 3 or any(type(v) is not int or v not in accepted for v in value):
        raise ValueError(f"{str(value)[:60]} are no three sizes")
    return value[0], value[1], value[2]
