"""Loads, stores, atomics, copies and conversions of addresses (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .emitter import Emitter
from .forms import CTYPES, WIDTHS
from .tree import Address, Group, Instruction, Number, Operand

SCOPES = (".cta", ".cluster", ".gpu", ".sys")
SPACES = (".global", ".shared", ".shared::cta", ".local", ".const", ".param", ".param::entry", ".param::func")
LOADED = (*(f".{kind}{width}" for kind in "sub" for width in (8, 16, 32, 64)), ".f32", ".f64")
HINTS = r"(\.L1::(evict_normal|evict_unchanged|evict_first|evict_last|no_allocate))?(\.L2::(64B|128B|256B))?"
_ANY = "|".join
LOAD = re.compile(
    rf"ld(?P<order>\.weak|\.volatile|\.(?:relaxed|acquire)(?:{_ANY(map(re.escape, SCOPES))}))?"
    rf"(?P<space>{_ANY(map(re.escape, SPACES))})?(\.(ca|cg|cs|lu|cv))?(\.nc)?{HINTS}"
    rf"(?P<vector>\.v2|\.v4)?(?P<type>{_ANY(map(re.escape, LOADED))})"
)
STORE = re.compile(
    rf"st(?P<order>\.weak|\.volatile|\.(?:relaxed|release)(?:{_ANY(map(re.escape, SCOPES))}))?"
    rf"(?P<space>{_ANY(map(re.escape, SPACES))})?(\.(wb|cg|cs|wt))?{HINTS}"
    rf"(?P<vector>\.v2|\.v4)?(?P<type>{_ANY(map(re.escape, LOADED))})"
)
ATOMICS: dict[str, tuple[str, str]] = {
    "add": ("Add", ".u32 .s32 .u64 .s64 .f32 .f64 .noftz.f16 .noftz.bf16 .noftz.f16x2 .noftz.bf16x2"),
    "exch": ("Exchange", ".b32 .b64"),
    "min": ("Smaller", ".u32 .s32 .u64 .s64"),
    "max": ("Larger", ".u32 .s32 .u64 .s64"),
    "inc": ("Increment", ".u32"),
    "dec": ("Decrement", ".u32"),
    "and": ("And", ".b32 .b64"),
    "or": ("Or", ".b32 .b64"),
    "xor": ("Xor", ".b32 .b64"),
    "cas": ("", ".b16 .b32 .b64"),
}
"""The C++ for each atomic operation and the types it has."""
ATOMIC = re.compile(
    rf"(?P<name>atom|red)(?P<order>\.relaxed|\.acquire|\.release|\.acq_rel)?({_ANY(map(re.escape, SCOPES))})?"
    rf"(?P<space>\.global|\.shared|\.shared::cta)?\.(?P<operation>{_ANY(ATOMICS)})"
    rf"(?P<later>\.relaxed|\.acquire|\.release|\.acq_rel)?({_ANY(map(re.escape, SCOPES))})?(?P<type>(\.noftz)?\.\w+)"
)
"""The order may stand before the operation or, as CUDA's own headers write it, behind."""
COPY = re.compile(r"cp\.async\.(ca|cg)\.shared(::cta)?\.global(\.L2::(64B|128B|256B))?")
CONVERT = re.compile(r"cvta(?P<to>\.to)?(?P<space>\.global|\.shared|\.shared::cta|\.local|\.const|\.param)\.u64")
INSIDE = re.compile(r"isspacep\.(?P<space>global|shared|shared::cta|local|const)")
PREFETCH = re.compile(r"prefetch(\.global|\.local)?\.(L1|L2)|prefetchu\.L1|discard(\.global)?\.L2")


@dataclass(frozen=True)
class Access:
    """What a load or store says: its type, how many values, its space, and whether others watch the memory."""

    type: str
    count: int
    space: str
    order: str

    @classmethod
    def of(cls, match: re.Match[str]) -> Access:
        count = int(match["vector"][2:]) if match["vector"] else 1
        order = (match["order"] or "").split(".")
        return cls(match["type"][1:], count, _space(match["space"]), order[1] if len(order) > 1 else "")

    @property
    def ctype(self) -> str:
        one = CTYPES[self.type]
        return one if self.count == 1 else f"ptx::Several<{one}, {self.count}>::type"


def _space(text: str | None) -> str:
    return (text or "").removeprefix(".").partition("::")[0]


def _values(emitter: Emitter, operand: Operand, count: int) -> list[Operand]:
    items = list(operand.items) if isinstance(operand, Group) else [operand]
    if len(items) != count:
        raise emitter.error(f"{len(items)} operands where its type has {count}")
    return items


def load(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    access = Access.of(match)
    if access.count * WIDTHS[access.type] > 128:
        raise emitter.unknown()
    to, source = emitter.operands(it, 2)
    place = emitter.address(source, access.space)
    function = {"volatile": "load_shared_state", "relaxed": "load_shared_state", "acquire": "load_acquire"}.get(
        access.order, "load"
    )
    value = f"*(const {access.ctype}*){place}" if function == "load" else f"ptx::{function}<{access.ctype}>({place})"
    if function != "load":
        emitter.waits = True
        if access.count > 1:
            raise emitter.unknown()
    if access.count == 1:
        return emitter.assign(_values(emitter, to, 1)[0], access.type, value, wider=True)
    taken = [
        emitter.assign(item, access.type, f"loaded[{at}]", wider=True)
        for at, item in enumerate(_values(emitter, to, access.count))
    ]
    return f"{{ const {access.ctype} loaded = {value}; {' '.join(taken)} }}"


def store(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    access = Access.of(match)
    if access.count * WIDTHS[access.type] > 128 or access.space == "const":
        raise emitter.unknown()
    to, source = emitter.operands(it, 2)
    place = emitter.address(to, access.space)
    values = [emitter.read(item, access.type, wider=True) for item in _values(emitter, source, access.count)]
    function = {"volatile": "store_shared_state", "relaxed": "store_shared_state", "release": "store_release"}.get(
        access.order, "store"
    )
    if function != "store":
        emitter.waits = True
        if access.count > 1:
            raise emitter.unknown()
    value = values[0] if access.count == 1 else f"{access.ctype}{{{', '.join(values)}}}"
    if function == "store":
        return f"*({access.ctype}*){place} = {value};"
    return f"ptx::{function}<{access.ctype}>({place}, {value});"


def atomic(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    function, kinds = ATOMICS[match["operation"]]
    if match["type"] not in kinds.split() or (match["order"] and match["later"]):
        raise emitter.unknown()
    emitter.waits = emitter.serial = True
    kind = match["type"].rpartition(".")[2]
    returns = match["name"] == "atom"
    operands = list(emitter.operands(it, (3 if match["operation"] == "cas" else 2) + returns))
    to = operands.pop(0) if returns else None
    place = emitter.address(operands.pop(0), _space(match["space"]))
    values = ", ".join(emitter.read(item, kind) for item in operands)
    if match["operation"] == "cas":
        value = f"ptx::atomic_swap<{CTYPES[kind]}>({place}, {values})"
    elif kind.endswith("x2"):
        value = f"ptx::atomic_pair({place}, {values})"
    else:
        value = f"ptx::atomic<ptx::{function}>({place}, {values})"
    fence = "::emulator::fence(); " if {match["order"], match["later"]} & {".release", ".acq_rel"} else ""
    return fence + (emitter.assign(to, kind, value) if to is not None else f"{value};")


def copy(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    del match
    if (
        not 3 <= len(it.operands) <= 4
        or not isinstance(it.operands[2], Number)
        or it.operands[2].value not in (4, 8, 16)
    ):
        raise emitter.error("its size is not 4, 8 or 16")
    to, source = emitter.address(it.operands[0], "shared"), emitter.address(it.operands[1], "global")
    size = it.operands[2].value
    zeros = f"{size}u - {emitter.read(it.operands[3], 'u32')}" if len(it.operands) == 4 else "0"
    return f"::emulator::copy_later({to}, {source}, {size}, {zeros}, nullptr);"


def copy_group(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    if match["what"] == "commit_group":
        emitter.operands(it, 0)
        return "::emulator::close_copy_batch();"
    if match["what"] == "wait_all":
        emitter.operands(it, 0)
        return "::emulator::close_copy_batch(); ::emulator::finish_copies(0);"
    (left,) = emitter.operands(it, 1)
    return f"::emulator::finish_copies({emitter.read(left, 'u32')});"


def convert_address(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    to, source = emitter.operands(it, 2)
    value = emitter.read(source, "u64")
    if _space(match["space"]) == "shared":
        emitter.arena = True
        value = f"({value} - (uint64_t)arena)" if match["to"] else f"({value} + (uint64_t)arena)"
    return emitter.assign(to, "u64", value)


def inside(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    to, source = emitter.operands(it, 2)
    value = f"ptx::address({emitter.read(source, 'u64')})"
    space = _space(match["space"])
    if space == "local":
        outcome = f"!(::emulator::in_shared({value}) || ::emulator::in_global({value}))"
    elif space == "const":
        outcome = "false"
    else:
        outcome = f"::emulator::in_{space}({value})"
    return emitter.assign(to, "pred", outcome)


def prefetch(emitter: Emitter, it: Instruction, match: re.Match[str]) -> str:
    del match
    if not it.operands or not isinstance(it.operands[0], Address):
        raise emitter.error("it names no address")
    return ";"


COPY_GROUP = re.compile(r"cp\.async\.(?P<what>commit_group|wait_group|wait_all)")
Handler = Callable[[Emitter, Instruction, re.Match[str]], str]
MEMORY: tuple[tuple[re.Pattern[str], Handler], ...] = (
    (LOAD, load),
    (STORE, store),
    (ATOMIC, atomic),
    (COPY, copy),
    (COPY_GROUP, copy_group),
    (CONVERT, convert_address),
    (INSIDE, inside),
    (PREFETCH, prefetch),
)
"""Spellings with the functions that write their C++; a spelling that is matched by none is not known."""
