"""C++ that follows undefined values through a function in the check build, bit by bit, and says where something comes of one.

Beside a register that may hold one stands a mask of its undefined bits. Moves, selections, shuffles and bitwise operations hand
masks on exactly, arithmetic spreads them, and everything else forgets them: what is not followed accuses nobody. A finding is a
branch that is taken by undefined bits, an address that is made of them, and memory that is written with them and read, or
handed on as a result. Values that are only moved, or that a selection or a mask discards, are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .butterflies import Chain
from .emitter import Emitter, Register
from .forms import WIDTHS
from .tree import Address, Group, Instruction, Name, Not, Operand, leaves

_SPREADS = re.compile(
    r"(add|sub|mul|mad|fma|div|rem|abs|neg|min|max|mul24|mad24|sad|rcp|sqrt|rsqrt|ex2|lg2|sin|cos|tanh|cvt)\..*"
    r"|shr\.s\d+|setp\.[a-z]+(\.ftz)?\.[a-z]+[0-9]+(x2)?"
)
"""What computes with all bits of what it reads. A comparison that is joined with a third predicate is not among them."""
_EXACT = re.compile(r"(mov|selp|and|or|xor|not|shl|shfl\.sync)\..*|shr\.[bu].*|cvt\.[su]\d+\.[su]\d+")


def hands_on(opcode: str) -> bool:
    """Whether results of the instruction are undefined where what it reads is."""
    return bool(_EXACT.fullmatch(opcode) or _SPREADS.fullmatch(opcode))


def declared(emitter: Emitter) -> str:
    """C++ of the masks, set where nothing has written the register yet."""
    followed = [it for it in emitter.registers if it.variable in emitter.undefined.reached]
    masks = (
        f"{_type(it)} u_{it.variable} = ({_type(it)}){'-1' if it.variable in emitter.undefined.first else '0'};"
        for it in followed
    )
    return f"PTX_TRACKED({' '.join(masks)})" if followed else ""


def before(emitter: Emitter, it: Instruction) -> str:
    """What is done ahead of an instruction: its addresses are looked at, and the masks of its results are set."""
    if not emitter.undefined.reached:
        return ""
    looked = [
        f"ptx::defined_address({_any([base], emitter)}, {it.line});"
        for operand in it.operands
        if isinstance(operand, Address)
        for base in [operand.base]
        if _register(emitter, base) is not None
    ]
    return _tracked([*looked, *_results(emitter, it)])


def choice(emitter: Emitter, it: Instruction, operand: Operand | None) -> str:
    """What is done ahead of a branch, or of what runs under a predicate."""
    asked = _register(emitter, operand)
    return _tracked([f"ptx::defined_choice(u_{asked.variable}, {it.line});"] if asked is not None else [])


def stored(emitter: Emitter, place: str, values: list[Operand], size: int) -> str:
    """What is done behind a store of values of `size` bytes each."""
    return _tracked(
        [
            f"ptx::stored_undefined({place} + {at * size}, {size}, {_any([value], emitter)});"
            for at, value in enumerate(values)
            if _register(emitter, value) is not None
        ]
    )


def loaded(emitter: Emitter, place: str, values: list[Operand], size: int) -> str:
    """What is done ahead of a load of values of `size` bytes each."""
    return _tracked(
        [
            f"u_{to.variable} = ({_type(to)})-(int)ptx::holds_undefined({place} + {at * size}, {size});"
            for at, value in enumerate(values)
            if (to := _register(emitter, value)) is not None
        ]
    )


def folded(emitter: Emitter, chain: Chain) -> str:
    """What is done ahead of a chain of shuffles."""
    to = _register(emitter, chain.result)
    if to is None:
        return ""
    if _register(emitter, chain.value) is None:
        return _tracked([f"u_{to.variable} = 0;"])
    both = "[](const uint32_t a, const uint32_t b) -> uint32_t { return a | b; }"
    steps = ", ".join(map(str, chain.steps))
    mask = f"(uint32_t)-(int){_any([chain.value], emitter)}"
    return _tracked([f"u_{to.variable} = ptx::butterfly<uint32_t, {steps}>({mask}, {both}, {chain.start.line});"])


# -------------------------------------------------------------------------------------------------------------- results


def _results(emitter: Emitter, it: Instruction) -> list[str]:
    targets = [found for operand in _leaves(it.operands[:1]) if (found := _register(emitter, operand)) is not None]
    if not targets or it.opcode.startswith("brx"):
        return []
    read = it.operands[1:]
    if any(_register(emitter, operand) is not None for operand in _leaves(read)):
        if it.opcode.startswith("mov.") and isinstance(it.operands[0], Group):
            return _unpacked(emitter, it.operands[0], read[0])
        if _EXACT.fullmatch(it.opcode):
            first = _register(emitter, _leaves(it.operands[:1])[0])
            exact = _exact(emitter, it)
            return [f"u_{to.variable} = ({_type(to)})({exact if to is first else '0'});" for to in targets]
        if _SPREADS.fullmatch(it.opcode):
            spread = _any(list(read), emitter)
            return [f"u_{to.variable} = ({_type(to)})-(int){spread};" for to in targets]
    return [f"u_{to.variable} = 0;" for to in targets]


def _exact(emitter: Emitter, it: Instruction) -> str:
    """C++ of the mask of the first result."""
    head, read = it.opcode.partition(".")[0], it.operands[1:]
    kind = it.opcode.rpartition(".")[2]
    masks = [_mask(emitter, operand) for operand in read]
    match head:
        case "selp":
            chosen = f"{emitter.read(read[2], 'pred')} ? {masks[0]} : {masks[1]}"
            return f"{masks[2]} ? -1 : {chosen}"
        case "and" | "or":
            turned = "~" if head == "or" else ""
            if kind == "pred":
                turned = "!" if head == "or" else ""
            a, b = (emitter.read(operand, kind) for operand in read)
            return f"({masks[0]} | {masks[1]}) & ({turned}{a} | {masks[0]}) & ({turned}{b} | {masks[1]})"
        case "shl" | "shr":
            moved = "left" if head == "shl" else "right"
            value = f"ptx::{moved}<uint{WIDTHS[kind]}_t>({masks[0]}, {emitter.read(read[1], 'u32')})"
            return f"{masks[1]} ? -1 : {value}"
        case "shfl":
            how = it.opcode.split(".")[2].capitalize()
            given = ", ".join([masks[0], *(emitter.read(operand, "b32") for operand in read[1:])])
            return f"ptx::shuffled<ptx::Shuffle::{how}>({given}, ptx::anywhere(), {it.line})"
        case "mov" if isinstance(read[0], Group):
            width = WIDTHS[kind] // max(1, len(read[0].items))
            parts = (f"((uint64_t){_mask(emitter, each)} << {at * width})" for at, each in enumerate(read[0].items))
            return " | ".join(parts)
        case (
            _
        ):  # mov, xor, not, and conversions of integers, of which a wider result is taken to be undefined as a whole
            joined = " | ".join(masks)
            narrow = it.opcode.split(".")[1:3] if head == "cvt" else []
            wider = bool(narrow) and WIDTHS[narrow[0]] > WIDTHS[narrow[1]]
            return f"-(int)(({joined}) != 0)" if wider else joined


def _unpacked(emitter: Emitter, to: Group, source: Operand) -> list[str]:
    whole, at, lines = _mask(emitter, source), 0, []
    for item in to.items:
        declared_as = emitter.names.find(item.text) if isinstance(item, Name) else None
        width = WIDTHS[declared_as.type] if isinstance(declared_as, Register) else 0
        found = _register(emitter, item)
        if found is not None:
            lines.append(f"u_{found.variable} = ({_type(found)})((uint64_t){whole} >> {at});")
        at += width or WIDTHS[emitter.type_of(source) or "b64"] // max(1, len(to.items))
    return lines


# -------------------------------------------------------------------------------------------------------------- masks


def _type(register: Register) -> str:
    width = WIDTHS[register.type]
    return "bool" if width == 1 else f"uint{width}_t"


def _register(emitter: Emitter, operand: Operand | None) -> Register | None:
    """The register that an operand is, where it is one that is followed."""
    name = operand.of if isinstance(operand, Not) else operand
    found = emitter.names.find(name.text) if isinstance(name, Name) else None
    return found if isinstance(found, Register) and found.variable in emitter.undefined.reached else None


def _mask(emitter: Emitter, operand: Operand) -> str:
    found = _register(emitter, operand)
    return f"u_{found.variable}" if found is not None else "0"


def _any(operands: list[Operand], emitter: Emitter) -> str:
    masks = [_mask(emitter, each) for operand in operands for each in leaves(operand)]
    return f"({' || '.join(mask for mask in masks if mask != '0') or 'false'})"


def _leaves(operands: Sequence[Operand]) -> list[Operand]:
    return [each for operand in operands for each in leaves(operand)]


def _tracked(statements: list[str]) -> str:
    return f"PTX_TRACKED({' '.join(statements)}) " if statements else ""
