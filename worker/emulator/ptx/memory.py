"""Loads, stores, atomics, copies and conversions of addresses (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from . import tracking
from .emitter import Emitter, Register
from .forms import CTYPES, WIDTHS
from .spelling import Chosen, Pattern, Words
from .tree import Address, Group, Instruction, Name, Number, Operand

SCOPES = (".cta", ".cluster", ".gpu", ".sys")
SPACES = (
    ".global",
    ".shared",
    ".shared::cta",
    ".shared::cluster",
    ".local",
    ".const",
    ".param",
    ".param::entry",
    ".param::func",
)
LOADED = (*(f".{kind}{width}" for kind in "sub" for width in (8, 16, 32, 64)), ".f32", ".f64")
HINTS = (
    r"(\.L1::(evict_normal|evict_unchanged|evict_first|evict_last|no_allocate))?"
    r"(?P<hint>\.L2::cache_hint)?(\.L2::(64B|128B|256B))?"
)
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
    "add": ("Add", "u32 s32 u64 s64 f32 f64 f16 bf16 f16x2 bf16x2"),
    "exch": ("Exchange", "b32 b64"),
    "min": ("Smaller", "u32 s32 u64 s64"),
    "max": ("Larger", "u32 s32 u64 s64"),
    "inc": ("Increment", "u32"),
    "dec": ("Decrement", "u32"),
    "and": ("And", "b32 b64"),
    "or": ("Or", "b32 b64"),
    "xor": ("Xor", "b32 b64"),
    "cas": ("", "b16 b32 b64"),
}
"""The C++ for each atomic operation and the types it has."""
ATOMIC = Words(
    "atom|red",
    operation=" ".join(ATOMICS),
    order="|relaxed acquire release acq_rel",
    scope="|cta cluster gpu sys",
    space="|global shared shared::cta shared::cluster",
    flush="|noftz",
    vector="|v2 v4 v8",
    hint="|L2::cache_hint",
    type=" ".join(dict.fromkeys(kind for _, kinds in ATOMICS.values() for kind in kinds.split())),
)
"""The words stand in another order in CUDA's own headers than in the ISA; `.shared.cta` is a space and a scope."""
VECTORS = {"v2": ("f32", "f16", "bf16", "f16x2", "bf16x2"), "v4": ("f32", "f16", "bf16", "f16x2", "bf16x2"),
           "v8": ("f16", "bf16")}  # fmt: skip
"""The types that are added several at a time, each by itself."""
COPY = re.compile(r"cp\.async\.(ca|cg)\.shared(::cta)?\.global(?P<hint>\.L2::cache_hint)?(\.L2::(64B|128B|256B))?")
CONVERT = re.compile(r"cvta(?P<to>\.to)?(?P<space>\.global|\.shared(::cta|::cluster)?|\.local|\.const|\.param)\.u64")
INSIDE = re.compile(r"isspacep\.(?P<space>global|shared(::cta|::cluster)?|local|const)")
PREFETCH = re.compile(
    r"prefetch(\.global|\.local)?\.(L1|L2)|prefetchu\.L1|discard(\.global)?\.L2|applypriority(\.global)?\.L2::evict_normal"
)
_EVICT = r"\.L2::evict_(last|normal|first|unchanged)"
POLICY = re.compile(rf"createpolicy\.(fractional{_EVICT}({_EVICT})?|range(\.global)?{_EVICT}({_EVICT})?|cvt\.L2)\.b64")


@dataclass(frozen=True)
class Access:
    """What a load or store says: its type, how many values, its space, and whether others watch the memory."""

    type: str
    count: int
    space: str
    order: str

    @classmethod
    def of(cls, match: Chosen) -> Access:
        count = int((match["vector"] or ".v1")[2:])
        order = (match["order"] or "").split(".")
        return cls((match["type"] or "")[1:], count, _space(match["space"]), order[1] if len(order) > 1 else "")

    @property
    def shared(self) -> bool:
        """Whether it is memory that other threads may see."""
        return self.space not in ("param", "local", "const")

    @property
    def ctype(self) -> str:
        one = CTYPES[self.type]
        return one if self.count == 1 else f"ptx::Several<{one}, {self.count}>::type"


def _space(text: str | None) -> str:
    name = (text or "").removeprefix(".")
    return name if name == "shared::cluster" else name.partition("::")[0]


def _values(emitter: Emitter, operand: Operand, count: int) -> list[Operand]:
    items: list[Operand] = list(operand.items) if isinstance(operand, Group) else [operand]
    if len(items) != count:
        raise emitter.error(f"{len(items)} operands where its type has {count}")
    return items


def load(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    access = Access.of(match)
    if access.count * WIDTHS[access.type] > 128:
        raise emitter.unknown()
    to, source = emitter.operands(it, 3 if match["hint"] else 2)[:2]
    place = emitter.address(source, access.space)
    order = "relaxed" if emitter.guessing and access.order in ("", "weak") else access.order
    function = {"volatile": "load_shared_state", "relaxed": "load_shared_state", "acquire": "load_acquire"}.get(
        order, "load"
    )
    value = f"*(const {access.ctype}*){place}" if function == "load" else f"ptx::{function}<{access.ctype}>({place})"
    if function != "load":
        emitter.waits = True
        if access.count > 1:
            return _ordered_vector(emitter, to, access, place, function)
    if function == "load" and isinstance(to, Name) and to.text in emitter.spares:
        value = f"ptx::load_spare<{access.ctype}>({place}, {emitter.spare(to.text)})"
    tracked = (
        tracking.loaded(emitter, place, _values(emitter, to, access.count), WIDTHS[access.type] // 8)
        if access.shared
        else ""
    )
    if access.count == 1:
        return tracked + emitter.assign(_values(emitter, to, 1)[0], access.type, value, wider=True)
    if any(_unread(emitter, item) for item in _values(emitter, to, access.count)):
        return tracked + _in_part(emitter, to, access, place)
    taken = [
        emitter.assign(item, access.type, f"loaded[{at}]", wider=True)
        for at, item in enumerate(_values(emitter, to, access.count))
    ]
    return f"{tracked}{{ const {access.ctype} loaded = {value}; {' '.join(taken)} }}"


def _unread(emitter: Emitter, item: Operand) -> bool:
    found = emitter.names.find(item.text) if isinstance(item, Name) else None
    return isinstance(found, Register) and found.variable in emitter.unread


def _in_part(emitter: Emitter, to: Operand, access: Access, place: str) -> str:
    """Of a struct that is loaded as a whole, the members that somebody looks at: the others need not have been written."""
    one, step = CTYPES[access.type], WIDTHS[access.type] // 8
    taken = [
        emitter.assign(item, access.type, f"*(const {one}*)(at + {step * at})", wider=True)
        for at, item in enumerate(_values(emitter, to, access.count))
        if not _unread(emitter, item)
    ]
    return f"{{ const char* const at = ptx::aligned<{access.ctype}>({place}); {' '.join(taken)} }}"


def _ordered_vector(emitter: Emitter, to: Operand, access: Access, place: str, function: str) -> str:
    """Volatile and ordered loads are watched one by one; nothing else runs between them."""
    one, step = CTYPES[access.type], WIDTHS[access.type] // 8
    loaded = ", ".join(f"ptx::{function}<{one}>(at + {step * i})" for i in range(access.count))
    taken = [
        emitter.assign(item, access.type, f"loaded[{at}]", wider=True)
        for at, item in enumerate(_values(emitter, to, access.count))
    ]
    return f"{{ const char* const at = {place}; const {one} loaded[] = {{{loaded}}}; {' '.join(taken)} }}"


def store(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    access = Access.of(match)
    if access.count * WIDTHS[access.type] > 128 or access.space == "const":
        raise emitter.unknown()
    to, source = emitter.operands(it, 3 if match["hint"] else 2)[:2]
    place = emitter.address(to, access.space)
    values = [emitter.read(item, access.type, wider=True) for item in _values(emitter, source, access.count)]
    function = {"volatile": "store_shared_state", "relaxed": "store_shared_state", "release": "store_release"}.get(
        access.order, "store"
    )
    if function != "store":
        emitter.waits = True
        if access.count > 1:
            one, step = CTYPES[access.type], WIDTHS[access.type] // 8
            stored = " ".join(f"ptx::{function}<{one}>(at + {step * i}, {value});" for i, value in enumerate(values))
            return f"{{ char* const at = {place}; {stored} }}"
    value = values[0] if access.count == 1 else f"{access.ctype}{{{', '.join(values)}}}"
    if function == "store":
        items = _values(emitter, source, access.count)
        tracked = tracking.stored(emitter, place, items, WIDTHS[access.type] // 8) if access.shared else ""
        return f"*({access.ctype}*){place} = {value}; {tracked}".rstrip()
    return f"ptx::{function}<{access.ctype}>({place}, {value});"


def atomic(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    operation, kind = match["operation"] or "", match["type"] or ""
    function, kinds = ATOMICS[operation]
    sixteen, vector = ("16" in kind and kind[0] != "b") or kind.startswith("bf16"), match["vector"]
    if kind not in kinds.split() or (match["flush"] is not None) != sixteen:
        raise emitter.unknown()
    if vector and (operation != "add" or kind not in VECTORS[vector] or int(vector[1:]) * WIDTHS[kind] > 128):
        raise emitter.unknown()
    emitter.waits = emitter.serial = True
    returns = match["head"] == "atom"
    operands = list(emitter.operands(it, (3 if operation == "cas" else 2) + returns + (match["hint"] is not None)))
    if match["hint"]:
        operands.pop()
    to = operands.pop(0) if returns else None
    place = emitter.address(operands.pop(0), _space(match["space"]))
    fence = "::emulator::fence(); " if match["order"] in ("release", "acq_rel") else ""
    if vector:
        return fence + _atomic_vector(emitter, to, place, operands[0], kind, int(vector[1:]))
    values = ", ".join(emitter.read(item, kind) for item in operands)
    if operation == "cas":
        value = f"ptx::atomic_swap<{CTYPES[kind]}>({place}, {values})"
    elif kind.endswith("x2"):
        value = f"ptx::atomic_pair({place}, {values})"
    else:
        value = f"ptx::atomic<ptx::{function}>({place}, {values})"
    return fence + (emitter.assign(to, kind, value) if to is not None else f"{value};")


def _atomic_vector(emitter: Emitter, to: Operand | None, place: str, given: Operand, kind: str, count: int) -> str:
    """Each element is added atomically, the vector as a whole is not."""
    ctype, one = CTYPES[kind], "atomic_pair" if kind.endswith("x2") else "atomic<ptx::Add>"
    values = ", ".join(emitter.read(item, kind) for item in _values(emitter, given, count))
    added = f"char* const at = {place}; const {ctype} given[] = {{{values}}}; {ctype} held[{count}]; "
    added += f"for (int i = 0; i < {count}; ++i) held[i] = ptx::{one}(at + i * {WIDTHS[kind] // 8}, given[i]); "
    taken = (
        [emitter.assign(item, kind, f"held[{at}]") for at, item in enumerate(_values(emitter, to, count))]
        if to is not None
        else ["(void)held;"]
    )
    return f"{{ {added}{' '.join(taken)} }}"


def copy(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """Behind the size: how many bytes are read, or a predicate under which none are; the rest become zero."""
    given = list(it.operands[:-1] if match["hint"] else it.operands)
    size = given[2].value if len(given) > 2 and isinstance(given[2], Number) else 0
    if not 3 <= len(given) <= 4 or size not in (4, 8, 16):
        raise emitter.error("its size is not 4, 8 or 16")
    to, source = emitter.address(given[0], "shared"), emitter.address(given[1], "global")
    zeros = "0"
    if len(given) == 4 and emitter.type_of(given[3]) == "pred":
        zeros = f"({emitter.read(given[3], 'pred')} ? {size}u : 0u)"
    elif len(given) == 4:
        zeros = f"{size}u - {emitter.read(given[3], 'u32')}"
    return f"::emulator::copy_later({to}, {source}, {size}, {zeros}, nullptr);"


def copy_group(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    if match["what"] == "commit_group":
        emitter.operands(it, 0)
        return "::emulator::close_copy_batch();"
    if match["what"] == "wait_all":
        emitter.operands(it, 0)
        return "::emulator::close_copy_batch(); ::emulator::finish_copies(0);"
    (left,) = emitter.operands(it, 1)
    return f"::emulator::finish_copies({emitter.read(left, 'u32')});"


def convert_address(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, source = emitter.operands(it, 2)
    value = emitter.read(source, "u64")
    if _space(match["space"]) == "shared":
        emitter.arena = True
        value = f"({value} - (uint64_t)arena)" if match["to"] else f"({value} + (uint64_t)arena)"
    elif _space(match["space"]) == "shared::cluster":
        value = f"ptx::cluster_offset({value})" if match["to"] else f"(uint64_t)ptx::cluster_place((uint32_t){value})"
    return emitter.assign(to, "u64", value)


def inside(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    to, source = emitter.operands(it, 2)
    value = f"ptx::address({emitter.read(source, 'u64')})"
    space = _space(match["space"])
    if space == "local":
        outcome = f"!(::emulator::in_shared({value}) || ::emulator::in_global({value}))"
    elif space == "const":
        outcome = "false"
    elif space == "shared::cluster":
        outcome = f"ptx::in_cluster({value})"
    else:
        outcome = f"::emulator::in_{space}({value})"
    return emitter.assign(to, "pred", outcome)


def prefetch(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    del match
    if not it.operands or not isinstance(it.operands[0], Address):
        raise emitter.error("it names no address")
    return ";"


def policy(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """How long a cache keeps what is loaded: there is none here."""
    del match
    if len(it.operands) < 2 and not it.opcode.startswith("createpolicy.fractional"):
        raise emitter.error("it says of nothing how it is to be kept")
    return emitter.assign(it.operands[0], "b64", "0")


COPY_GROUP = re.compile(r"cp\.async\.(?P<what>commit_group|wait_group|wait_all)")
Handler = Callable[[Emitter, Instruction, Chosen], str]
MEMORY: tuple[tuple[Pattern, Handler], ...] = (
    (LOAD, load),
    (STORE, store),
    (ATOMIC, atomic),
    (COPY, copy),
    (COPY_GROUP, copy_group),
    (CONVERT, convert_address),
    (INSIDE, inside),
    (PREFETCH, prefetch),
    (POLICY, policy),
)
"""Spellings with the functions that write their C++; a spelling that is matched by none is not known."""
