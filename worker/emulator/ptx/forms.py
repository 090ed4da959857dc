"""What an instruction that only computes is: the types it reads and writes, and C++ for its value.

A table has one entry for every spelling with all its modifiers, so that an unknown combination is refused and never guessed at,
and so that the tests can ask for an example of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

INTEGERS = ".s16 .u16 .s32 .u32 .s64 .u64"
WORDS = ".s32 .u32 .s64 .u64"
BITS = ".b16 .b32 .b64"
ROUNDINGS = {".rn": "Nearest", ".rz": "Zero", ".rm": "Down", ".rp": "Up"}
WIDTHS = {
    "pred": 1,
    **{f"{kind}{width}": width for kind in "sub" for width in (8, 16, 32, 64)},
    "f16": 16,
    "bf16": 16,
    "f16x2": 32,
    "bf16x2": 32,
    "u16x2": 32,
    "s16x2": 32,
    "f32": 32,
    "f64": 64,
    "b128": 128,
    "tf32": 32,
}
"""Bits of a PTX type; a predicate counts as one."""
CTYPES = {
    "pred": "bool",
    **{f"{kind}{width}": f"{'' if kind == 's' else 'u'}int{width}_t" for kind in "sub" for width in (8, 16, 32, 64)},
    "f16": "ptx::Half",
    "bf16": "ptx::Brain",
    "f16x2": "ptx::Two<ptx::Half>",
    "bf16x2": "ptx::Two<ptx::Brain>",
    "u16x2": "ptx::Two<uint16_t>",
    "s16x2": "ptx::Two<int16_t>",
    "f32": "float",
    "f64": "double",
    "tf32": "uint32_t",
}
"""The C++ type that a PTX type is computed in."""


@dataclass(frozen=True)
class Form:
    """result: the PTX type written. operands: those read. value: C++ with {0}, {1}, … for the operands."""

    result: str
    operands: tuple[str, ...]
    value: str


Table = dict[str, Form]


def spellings(pattern: str) -> Iterator[tuple[str, ...]]:
    """Every opcode a pattern stands for, followed by what its braces chose; `{| .ftz}` may choose nothing.

    >>> list(spellings("add{| .sat}.s32"))
    [('add.s32', ''), ('add.sat.s32', '.sat')]
    """
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [[part] if at % 2 == 0 else _choices(part) for at, part in enumerate(parts)]
    for chosen in product(*choices):
        yield ("".join(chosen), *chosen[1::2])


def _choices(text: str) -> list[str]:
    optional = text.startswith("|")
    return ([""] if optional else []) + text.removeprefix("|").split()


def add(table: Table, pattern: str, value: str, reads: str = "T T", writes: str = "T") -> None:
    """Enters integer forms: T in `reads`, `writes` and `value` is the last type of the spelling."""
    for opcode, *_ in spellings(pattern):
        last = opcode.rpartition(".")[2]
        operands = tuple(last if kind == "T" else kind for kind in reads.split())
        table[opcode] = Form(last if writes == "T" else writes, operands, value.replace("T(", f"{CTYPES[last]}("))


def merged(*tables: Table) -> Table:
    """All tables in one; an opcode in two of them is a mistake of ours."""
    whole: Table = {}
    for table in tables:
        twice = whole.keys() & table.keys()
        if twice:
            raise ValueError(f"defined twice: {sorted(twice)[:3]}")
        whole |= table
    return whole
