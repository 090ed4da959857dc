"""Plain reads that only make a guess: `old = *p; do { assumed = old; old = atomicCAS(p, assumed, ...); } while (...)`.

The guess is compared with what lies there before anything is stored, so a stale one costs another round and no more: such a
read is one of the atomic accesses to its address, as a relaxed load would be. It has to be the same address by the same
register, and what was read has to reach the comparison by moves alone; a plain write to the address remains a race.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .tree import Address, Instruction, Name, Number, Operand, Statement

MOST_STEPS = 16
"""Moves and additions that an address or a value is followed through."""


@dataclass
class _Written:
    """What writes the registers: for each its statements' numbers and those that only copy another register into it."""

    at: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    copies: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


def guesses(body: Sequence[Statement]) -> frozenset[int]:
    """The numbers of the plain loads in a function whose value a compare-and-swap of the same address is given to compare."""
    swaps = [(at, it) for at, it in _instructions(body) if it.opcode.startswith("atom") and ".cas" in it.opcode]
    if not swaps:
        return frozenset()
    written = _written(body)
    found: set[int] = set()
    for last, swap in swaps:
        place = _place(swap.operands[1:2], body, written)
        if place is None or len(swap.operands) < 4:
            continue
        for register in _sources(swap.operands[2], written):
            for at in written.at.get(register, ()):
                it = body[at]
                if isinstance(it, Instruction) and _plain(it) and _place(it.operands[1:2], body, written) == place:
                    low, high = min(at, last), max(at, last)
                    if not any(low < other < high for other in written.at.get(place[0], ())):
                        found.add(at)
    return frozenset(found)


def _instructions(body: Sequence[Statement]) -> Iterator[tuple[int, Instruction]]:
    return ((at, each) for at, each in enumerate(body) if isinstance(each, Instruction))


def _plain(it: Instruction) -> bool:
    words = it.opcode.split(".")
    return words[0] == "ld" and not {"volatile", "relaxed", "acquire", "v2", "v4", "param", "const", "local"} & set(
        words
    )


def _written(body: Sequence[Statement]) -> _Written:
    found = _Written()
    for at, it in _instructions(body):
        if it.opcode.startswith(("st", "red", "bra", "bar")) or not it.operands or not isinstance(it.operands[0], Name):
            continue
        to = it.operands[0].text
        found.at[to].append(at)
        if it.opcode.startswith("mov.") and len(it.operands) == 2 and isinstance(it.operands[1], Name):
            found.copies[to].append(it.operands[1].text)
    return found


def _sources(operand: Operand, written: _Written) -> set[str]:
    """The registers whose value may have come into the operand by moves alone."""
    reached = {operand.text} if isinstance(operand, Name) and not operand.offset else set()
    fresh = list(reached)
    while fresh and len(reached) < MOST_STEPS:
        fresh = [source for name in fresh for source in written.copies.get(name, ()) if source not in reached]
        reached.update(fresh)
    return reached


def _place(operand: Sequence[Operand], body: Sequence[Statement], written: _Written) -> tuple[str, int] | None:
    """An address as the register that it begins with, followed to where it is computed, and the bytes behind."""
    if not operand or not isinstance(operand[0], Address) or not isinstance(operand[0].base, Name):
        return None
    name, offset = operand[0].base.text, operand[0].offset + operand[0].base.offset
    for _ in range(MOST_STEPS):
        step = _step(name, body, written.at)
        if step is None:
            break
        name, offset = step[0], offset + step[1]
    return name, offset


def _step(name: str, body: Sequence[Statement], written: Mapping[str, Sequence[int]]) -> tuple[str, int] | None:
    """What a register that is written once is a copy of, and how many bytes are added."""
    at = written.get(name, ())
    it = body[at[0]] if len(at) == 1 else None
    if not isinstance(it, Instruction) or it.guard is not None:
        return None
    match it.operands:
        case [_, Name(source, 0)] if it.opcode.startswith(("mov.", "cvta.")):
            return source, 0
        case [_, Name(source, 0), Number(value)] if it.opcode in ("add.s64", "add.s32", "add.u64", "add.u32"):
            return source, value
        case _:
            return None
