"""What the recorder sends of one case, as the trusted side reads it: strict in form and bounded in size.

The recorder runs beside submitted code, so every byte may be anything. A frame that does not fit is the submission's doing; one
that fits is replayed, and the values that come out are judged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from worker.judging.arrays import ITEM_SIZE
from worker.judging.frames import Header, printable
from worker.recording.entries import MAX_TAPE, Copy, Fill, MemoryWork, Upload, memory_work, number, text
from worker.recording.placement import Buffer

MAX_ENTRIES = 5000
MAX_KERNELS = 64
MAX_ARGUMENTS = 512
SIZES = {
    **dict.fromkeys(("i1", "i8", "u1", "u8"), 1),
    **dict.fromkeys(("i16", "u16", "fp16", "bf16"), 2),
    **dict.fromkeys(("i32", "u32", "fp32", "f32"), 4),
    **dict.fromkeys(("i64", "u64", "fp64"), 8),
}
"""Bytes of an argument by its Triton type; pointers start with a star and take eight."""
SYMBOL = re.compile(r"[\w.$@]+", re.ASCII)
"""A kernel's name, which is shown as it is: in tables, on pages, in terminals."""


class MalformedRecordingError(ValueError):
    """A recording that is not as the recorder writes it; the text says where."""


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel. image: a cubin, or Triton IR as text. shared: bytes. warps, stages: as it was compiled."""

    key: str
    name: str
    image: bytes
    shared: int
    warps: int
    stages: int


@dataclass(frozen=True)
class Region:
    """A tensor that the seam returned: where it lies and what it is."""

    name: str
    address: int
    dtype: str
    shape: tuple[int, ...]
    size: int


Argument = tuple[str, int | str]
"""Type in Triton's spelling, and value: a floating-point number as Python writes it in hex."""


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, by its key. scratch: where Triton's own memory for it lies, 0 for none."""

    kernel: str
    grid: tuple[int, int, int]
    cluster: int
    cooperative: bool
    scratch: int
    args: tuple[Argument, ...]


Entry = Launch | MemoryWork


def as_line(entry: Entry) -> dict[str, object]:
    """An entry as the sandboxed interpreter reads it."""
    match entry:
        case Launch():
            return {"op": "launch", **asdict(entry)}
        case Fill(to, value, size):
            return {"op": "fill", "to": to, "value": value, "bytes": size}
        case Copy(to, source, size):
            return {"op": "copy", "to": to, "from": source, "bytes": size}
        case Upload(to, data):
            return {"op": "upload", "to": to, "data": data.hex()}


@dataclass(frozen=True)
class Take:
    """One recorded call: what it asked of the device in order, what it allocated, what it returned."""

    entries: tuple[Entry, ...]
    sizes: tuple[int, ...]
    results: tuple[Region, ...]

    @property
    def launches(self) -> list[Launch]:
        return [entry for entry in self.entries if isinstance(entry, Launch)]


@dataclass(frozen=True)
class Recording:
    """All takes of one case, in the order they were asked for, and the kernels that they launch, by key."""

    takes: tuple[Take, ...]
    kernels: Mapping[str, Kernel]


def read_recording(header: Header, payload: bytes) -> Recording:
    """Parses one `recorded` frame. Raises MalformedRecordingError."""
    try:
        length = number(header, "tape", range(MAX_TAPE))
        kernels = dict(_kernels(header["kernels"], payload[length:]))
        listed = json.loads(payload[:length])
        return Recording(tuple(_take(_object(item), kernels) for item in _list(listed, 8)), kernels)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
        raise MalformedRecordingError(f"{type(error).__name__}: {str(error)[:200]}") from error


def _kernels(listed: object, images: bytes) -> Iterator[tuple[str, Kernel]]:
    at = 0
    for item in map(_object, _list(listed, MAX_KERNELS)):
        size = number(item, "image", range(1, 64 << 20))
        image = images[at : at + size]
        at += size
        key, name = text(item, "key", 40), text(item, "name", 400)
        if not SYMBOL.fullmatch(name):
            raise ValueError("a kernel's name that is no symbol of an object file")
        numbers = [number(item, field, range(1 << 20)) for field in ("shared", "warps", "stages")]
        yield key, Kernel(key, name, image, *numbers)
    if at != len(images):
        raise ValueError(f"the kernels take {at} bytes; {len(images)} came")


def _take(item: Header, kernels: Mapping[str, Kernel]) -> Take:
    entries = tuple(_entry(_object(each), kernels) for each in _list(item["entries"], MAX_ENTRIES))
    sizes = tuple(_whole(size, range(1, 1 << 40)) for size in _list(item["sizes"], 64))
    return Take(entries, sizes, tuple(_region(_object(each)) for each in _list(item["results"], 16)))


def _entry(item: Header, kernels: Mapping[str, Kernel]) -> Entry:
    return _launch(item, kernels) if item["op"] == "launch" else memory_work(item)


def _launch(item: Header, kernels: Mapping[str, Kernel]) -> Launch:
    kernel = text(item, "kernel", 40)
    if kernel not in kernels:
        raise ValueError("a launch of a kernel that did not come")
    return Launch(
        kernel=kernel,
        grid=_grid(item["grid"]),
        cluster=number(item, "cluster", range(1, 17)),
        cooperative=item["cooperative"] is True,
        scratch=number(item, "scratch", range(1 << 63)),
        args=tuple(_argument(*_list(pair, 2)) for pair in _list(item["args"], MAX_ARGUMENTS)),
    )


def _grid(value: object) -> tuple[int, int, int]:
    sizes = [_whole(size, range(1, 1 << 31)) for size in _list(value, 3)]
    if len(sizes) != 3:
        raise ValueError(f"a grid of {len(sizes)} sizes; 3 are accepted")
    return sizes[0], sizes[1], sizes[2]


def _argument(kind: object, value: object) -> Argument:
    if not isinstance(kind, str) or len(kind) > 40:
        raise TypeError("an argument's type is a short text")
    if kind.startswith("*"):
        return kind, _whole(value, range(1 << 63))
    if kind not in SIZES:
        raise ValueError(f"an argument of type {kind!r}")
    if kind[0] in "fb":
        if not isinstance(value, str):
            raise TypeError("a floating-point argument is a text")
        float.fromhex(value)
        return kind, value[:40]
    return kind, _whole(value, range(-(1 << 63), 1 << 64))


def _region(item: Header) -> Region:
    dtype = text(item, "dtype", 20)
    shape = tuple(_whole(size, range(1 << 20)) for size in _list(item["shape"], 8))
    size = ITEM_SIZE[dtype]
    for extent in shape:
        size *= extent
    if size > 64 << 20:
        raise ValueError(f"a result of {size} bytes")
    return Region(
        printable(text(item, "name", 80), limit=80), number(item, "address", range(1 << 63)), dtype, shape, size
    )


def _object(value: object) -> Header:
    if not isinstance(value, dict):
        raise TypeError("an object")
    return value


def _list(value: object, most: int) -> list[object]:
    if not isinstance(value, list) or len(value) > most:
        raise TypeError(f"a list of at most {most} items")
    return value


def _whole(value: object, accepted: range) -> int:
    if type(value) is not int or value not in accepted:
        raise ValueError(f"{str(value)[:40]}; {accepted.start} to {accepted.stop - 1} are accepted")
    return value


def owner(region: Region, buffers: Mapping[str, Buffer]) -> Buffer | None:
    """The buffer that a returned tensor lies in, or None when it lies in none."""
    for buffer in buffers.values():
        if buffer.address <= region.address and region.address + region.size <= buffer.address + buffer.size:
            return buffer
    return None
