"""Reads what a cubin says of itself: kernels, their parameters and resources, and how much static memory it takes.

A cubin is an ELF64 file. The compiler wrote it in the sandbox, so it is somebody else's bytes: every offset is checked, and a
file that does not fit together raises MalformedCubinError. The sections and attributes that are read:
`.nv.info.<kernel>` holds attributes of four bytes head (format, code, 16-bit value or size) and a body; code 0x17 describes a
parameter (ordinal, offset, size), as does 0x45 where one is too large for 0x17, 0x05 gives the most threads a block may
have, 0x2f in `.nv.info` the registers of each kernel and 0x12/0x11 its stack. `.nv.global*` and `.nv.constant3` are
`__device__` and `__constant__` variables, `.nv.shared.<kernel>` is static shared memory.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

SIZED = 4
PARAMETER, WIDE_PARAMETER, MAX_THREADS, REGISTERS, FRAME = 0x17, 0x45, 0x05, 0x2F, 0x11
RESERVED_SHARED = 1024
"""From sm_90 on the first KiB of `.nv.shared.<kernel>` is the system's own."""


class MalformedCubinError(ValueError):
    """Bytes that are no cubin; the text says where."""


@dataclass
class Kernel:
    """One entry function. Sizes in bytes; `parameters` are (offset, size) in the order of the signature."""

    name: str
    parameters: list[tuple[int, int]] = field(default_factory=list)
    registers: int = 0
    shared_bytes: int = 0
    frame_bytes: int = 0
    max_threads: int = 1024


@dataclass(frozen=True)
class Cubin:
    """kernels by mangled name; static_bytes: all `__device__` and `__constant__` variables together.

    imported: functions of the driver's own that device code calls, e.g. `malloc`, `vprintf`. variables: names of variables.
    architecture: what it was compiled for, e.g. 90.
    """

    kernels: dict[str, Kernel]
    static_bytes: int
    imported: frozenset[str] = frozenset()
    variables: tuple[str, ...] = ()
    architecture: int = 0


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class _Symbol:
    """kind: of ELF, e.g. OBJECT for a variable. defined_in: the section's number; 0 for one that is not defined here."""

    name: str
    kind: int
    defined_in: int


NOBITS, OBJECT, EXECUTABLE, CUDA, RESERVED_INDEX = 8, 1, 2, 190, 0xFF00
ABI = {7: 0, 8: 8}
"""Versions of CUDA's ELF, and the bit of e_flags from which they give the architecture: 7 until CUDA 12, 8 from 13 on."""
VARIABLES = re.compile(r"\.nv\.(global|global\.init|constant3)")
MAX_SECTION = 1 << 30
MAX_SECTIONS = 20_000
MAX_SYMBOLS = 200_000


def read_cubin(data: bytes) -> Cubin:
    """Parses one cubin. Raises MalformedCubinError."""
    try:
        architecture = _architecture(data)
        sections = list(_sections(data))
        entries = _symbols(data, sections)
        symbols = [symbol.name for symbol in entries]
        names = {section.name for section in sections}
        texts = [section.name.removeprefix(".text.") for section in sections if section.name.startswith(".text.")]
        kernels = {name: Kernel(name) for name in texts if f".nv.info.{name}" in names}
        for section in sections:
            _read_section(data, section, kernels, symbols)
    except (struct.error, IndexError, UnicodeDecodeError, OverflowError) as error:
        raise MalformedCubinError(f"not a cubin: {error}") from error
    holding = {index: s for index, s in enumerate(sections) if VARIABLES.fullmatch(s.name)}
    return Cubin(
        kernels,
        static_bytes=sum(section.size for section in holding.values()),
        imported=frozenset(symbol.name for symbol in entries if symbol.name and not symbol.defined_in),
        variables=tuple(s.name for s in entries if s.kind == OBJECT and s.defined_in in holding),
        architecture=architecture,
    )


def _architecture(data: bytes) -> int:
    """What an executable of CUDA's says it was compiled for. Raises MalformedCubinError for any other file."""
    if data[:5] != b"\x7fELF\x02" or len(data) < 64:
        raise MalformedCubinError("not a cubin: no ELF64 header")
    kind, machine, _, _, _, _, flags = struct.unpack_from("<HHIQQQI", data, 0x10)
    version = data[8]
    if (kind, machine) != (EXECUTABLE, CUDA) or version not in ABI:
        raise MalformedCubinError(f"not a cubin: type {kind}, machine {machine}, ABI version {version}")
    return int(flags >> ABI[version] & 0xFF)


def _sections(data: bytes) -> Iterator[_Section]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    width, count, names = struct.unpack_from("<HHH", data, 0x3A)
    if width != 64 or count > MAX_SECTIONS:
        raise MalformedCubinError(f"not a cubin: {count} sections of {width} bytes")
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * width) for index in range(count)]
    _check_apart(
        [(table, table + count * width), *((head[4], head[4] + head[5]) for head in heads if head[1] != NOBITS)]
    )
    text_at = heads[names][4]
    for name, kind, _, _, offset, size, link, _, _, _ in heads:
        if kind != NOBITS and offset + size > len(data):
            raise MalformedCubinError(f"not a cubin: a section ends at {offset + size} of {len(data)} bytes")
        if size > MAX_SECTION or link >= count:
            raise MalformedCubinError(f"not a cubin: a section of {size} bytes, linked to section {link} of {count}")
        yield _Section(_text(data, text_at + name), kind, offset, size, link)


def _check_apart(spans: list[tuple[int, int]]) -> None:
    """Each byte belongs to one section: what is read here is then what the driver reads there. Raises MalformedCubinError."""
    filled = sorted(span for span in spans if span[0] < span[1])
    for (start, end), (following, _) in pairwise(filled):
        if following < end:
            raise MalformedCubinError(f"not a cubin: the sections at bytes {start} and {following} lie on one another")


def _text(data: bytes, at: int) -> str:
    end = data.index(b"\0", at, at + 8192) if b"\0" in data[at : at + 8192] else -1
    if end < 0:
        raise MalformedCubinError(f"not a cubin: a name at byte {at} does not end")
    return data[at:end].decode("ascii")


def _symbols(data: bytes, sections: list[_Section]) -> list[_Symbol]:
    for section in sections:
        if section.name == ".symtab":
            strings = sections[section.link].offset
            if section.size > 24 * MAX_SYMBOLS:
                raise MalformedCubinError(f"not a cubin: {section.size // 24} symbols; at most {MAX_SYMBOLS}")
            heads = (struct.unpack_from("<IBBHQQ", data, section.offset + at) for at in range(0, section.size, 24))
            return [_symbol(data, strings, sections, *head) for head in heads]
    return []


def _symbol(
    data: bytes, strings: int, sections: list[_Section], name: int, info: int, _: int, section: int, at: int, size: int
) -> _Symbol:
    if 0 < section < RESERVED_INDEX and (section >= len(sections) or at + size > sections[section].size):
        raise MalformedCubinError(f"not a cubin: a symbol of {size} bytes at {at} of section {section}")
    return _Symbol(_text(data, strings + name), info & 0xF, section)


def _read_section(data: bytes, section: _Section, kernels: dict[str, Kernel], symbols: list[str]) -> None:
    if section.name.startswith(".nv.shared."):
        kernel = kernels.get(section.name.removeprefix(".nv.shared."))
        if kernel:
            kernel.shared_bytes = max(0, section.size - RESERVED_SHARED)
    elif section.name == ".nv.info" and section.kind != NOBITS:
        for code, body in _attributes(data, section):
            if code in (REGISTERS, FRAME) and len(body) == 8:
                which, value = struct.unpack("<II", body)
                kernel = kernels.get(symbols[which])
                if kernel and code == REGISTERS:
                    kernel.registers = value
                elif kernel:
                    kernel.frame_bytes = value
    elif section.name.startswith(".nv.info."):
        kernel = kernels.get(section.name.removeprefix(".nv.info."))
        if kernel:
            _read_kernel(kernel, data, section)


def _read_kernel(kernel: Kernel, data: bytes, section: _Section) -> None:
    found: dict[int, tuple[int, int]] = {}
    for code, body in _attributes(data, section):
        if code == PARAMETER and len(body) == 12:
            _, ordinal, offset, packed = struct.unpack("<IHHI", body)
            found[ordinal] = (offset, packed >> 18)
        elif code == WIDE_PARAMETER and len(body) == 12:
            _, ordinal, offset, size = struct.unpack("<IHHI", body)
            found[ordinal] = (offset, size)
        elif code == MAX_THREADS and len(body) == 12:
            x, y, z = struct.unpack("<III", body)
            kernel.max_threads = max(1, min(1024, x * y * z))
    kernel.parameters = [found[ordinal] for ordinal in sorted(found)]


def _attributes(data: bytes, section: _Section) -> Iterator[tuple[int, bytes]]:
    at, end = section.offset, section.offset + section.size
    if end > len(data):
        raise MalformedCubinError(f"not a cubin: section {section.name[:80]} ends at {end} of {len(data)} bytes")
    while at + 4 <= end:
        form, code, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == SIZED:
            yield code, data[at : at + value]
            at += (value + 3) // 4 * 4
