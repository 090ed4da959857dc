"""Moves, branches, calls and endings (PTX ISA, "Control Flow", "mov")."""

from __future__ import annotations

from .emitter import Emitter
from .forms import WIDTHS
from .tree import Group, Instruction, Name, Operand

MOVES = ("pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
"""The types of mov."""


def move(emitter: Emitter, it: Instruction) -> str:
    kind = it.opcode.removeprefix("mov.")
    to, source = emitter.operands(it, 2)
    if isinstance(source, Group):
        return emitter.assign(to, kind, _packed(emitter, source, kind))
    if isinstance(to, Group):
        return _unpacked(emitter, to, source, kind)
    return emitter.assign(to, kind, emitter.read(source, kind))


def _part(emitter: Emitter, group: Group, kind: str) -> int:
    """Bits of each element of a vector operand that together make a value of `kind`."""
    width = WIDTHS[kind] // max(1, len(group.items))
    if kind[0] != "b" or width * len(group.items) != WIDTHS[kind] or width not in (16, 32):
        raise emitter.unknown()
    return width


def _packed(emitter: Emitter, group: Group, kind: str) -> str:
    width, total = _part(emitter, group, kind), WIDTHS[kind]
    parts = [f"(uint{total}_t){emitter.read(item, f'b{width}')} << {at * width}" for at, item in enumerate(group.items)]
    return " | ".join(f"({part})" for part in parts)


def _unpacked(emitter: Emitter, group: Group, source: Operand, kind: str) -> str:
    width, total = _part(emitter, group, kind), WIDTHS[kind]
    taken = [emitter.assign(item, f"b{width}", f"whole >> {at * width}") for at, item in enumerate(group.items)]
    return f"{{ const uint{total}_t whole = {emitter.read(source, kind)}; {' '.join(taken)} }}"


def _bytes(emitter: Emitter, operand: Operand) -> str:
    """C++ of the bytes of a `.param` variable that is handed to a call."""
    found = emitter.names.find(operand.text) if isinstance(operand, Name) else None
    if found is None or getattr(found, "space", "") != "param":
        raise emitter.error("a call takes and returns .param variables only")
    return str(getattr(found, "base", ""))


def call(emitter: Emitter, it: Instruction, functions: dict[str, tuple[str, int, int]]) -> str:
    """functions: C++ name, results and parameters of every function that has a body."""
    operands = list(it.operands)
    results = _list(emitter, operands)
    target = operands.pop(0) if operands else None
    arguments = _list(emitter, operands)
    name = target.text if isinstance(target, Name) else ""
    given = ", ".join([*results, *arguments])
    if len(operands) == 1 and target is not None:  # a prototype, or a list of targets: the call goes by a pointer
        types = ", ".join(["unsigned char*"] * (len(results) + len(arguments)))
        found = f"ptx::callable({emitter.read(target, 'u64')}, {len(results)}, {len(arguments)}, {it.line})"
        return f"((void (*)({types})){found})({given});"
    if operands:
        raise emitter.error("its operands are not known to the emulator")
    if name == "vprintf" and len(arguments) == 2 and len(results) == 1:
        text = ", ".join(f"ptx::address(ptx::load<uint64_t>({item}))" for item in arguments)
        return f"ptx::print({text}); ptx::store<uint32_t>({results[0]}, 0);"
    if name == "__assertfail" and len(arguments) == 5:
        return f"ptx::assertion_failed(ptx::address(ptx::load<uint64_t>({arguments[0]})), ptx::load<uint32_t>({arguments[2]}));"
    known = functions.get(name)
    if known is None or known[1:] != (len(results), len(arguments)):
        raise emitter.error(f"the function {name[:80]} is not in the module")
    return f"{known[0]}({given});"


def _list(emitter: Emitter, operands: list[Operand]) -> list[str]:
    """C++ of the list in parentheses that comes next, which is taken; empty where none does."""
    if not operands or not isinstance(operands[0], Group):
        return []
    items = operands[0].items
    del operands[0]
    return [_bytes(emitter, item) for item in items]


def ending(emitter: Emitter, it: Instruction, entry: bool) -> str:
    """ret, exit, trap and brkpt."""
    name = it.opcode.removesuffix(".uni")
    emitter.operands(it, 0)
    if name == "trap":
        return f'::emulator::device_trap("trap", {it.line});'
    if name == "brkpt":
        return ";"
    return "return;" if entry or name == "ret" else "::emulator::leave();"


ENDINGS = ("ret", "ret.uni", "exit", "trap", "brkpt")
