"""Reductions over a warp that nvcc has unrolled: `value = op(value, shfl.bfly(value, step))` for one step after another.

Each step makes 32 lanes wait for one another, which is what emulated shuffles cost. Such a chain becomes one instruction of
ours, done for all lanes by the last that arrives: the same operations on the same values in the same order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .tree import Instruction, Name, Number, Operand, Pair, Statement, leaves, names

COMBINING = re.compile(r"(add|min|max)(\.rn)?(\.ftz)?\.(f32|s32|u32)|(and|or|xor)\.b32")
SHUFFLE = "shfl.sync.bfly.b32"
MOVES = ("mov.b32", "mov.u32", "mov.s32", "mov.f32")
FULL = 0xFFFFFFFF
BEFORE = 8
"""How many statements before the first shuffle may hold the value's other name."""


@dataclass
class Chain:
    """Statements `first` to `last`, of which `start` is the first.

    value, result: operands; opcode: what combines them; swapped: the shuffled value comes first.

    kept: statements between that do something else, constants, and are written as they are.
    """

    first: int
    start: Instruction
    value: Operand
    last: int = 0
    result: Operand | None = None
    opcode: str = ""
    swapped: bool = False
    steps: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)


def chains(body: Sequence[Statement]) -> dict[int, Chain]:
    """The chains of at least two steps in a function, by their first statement."""
    if not any(isinstance(each, Instruction) and each.opcode == SHUFFLE for each in body):
        return {}
    names = [Counter(_names(each)) for each in body]
    total = Counter[str]()
    for each in names:
        total.update(each)
    constants = dict(_constants(body))
    found: dict[int, Chain] = {}
    at = 0
    while at < len(body):
        chain = _Matcher(body, constants, at).chain()
        if chain is not None and _closed(chain, body, names, total):
            found[at] = chain
            at = chain.last
        at += 1
    return found


def _names(statement: Statement) -> Iterator[str]:
    return names(statement) if isinstance(statement, Instruction) else iter(())


def _constants(body: Sequence[Statement]) -> Iterator[tuple[str, int]]:
    """Registers that are written once, with a number."""
    written = Counter(
        operand.text
        for each in body
        if isinstance(each, Instruction) and each.operands
        for operand in leaves(each.operands[0])
        if isinstance(operand, Name)
    )
    for each in body:
        if isinstance(each, Instruction) and each.opcode in MOVES and each.guard is None and len(each.operands) == 2:
            to, value = each.operands
            if isinstance(to, Name) and isinstance(value, Number) and written[to.text] == 1:
                yield to.text, value.value


def _closed(chain: Chain, body: Sequence[Statement], names: Sequence[Counter[str]], total: Mapping[str, int]) -> bool:
    """Whether nothing outside reads what the chain computes on its way."""
    inside = Counter[str]()
    for at in range(chain.first, chain.last + 1):
        inside.update(names[at])
    result = set(_names(body[chain.last])) & {chain.result.text} if isinstance(chain.result, Name) else set()
    made = {
        target.text
        for at in range(chain.first, chain.last + 1)
        if at not in chain.kept
        for each in [body[at]]
        if isinstance(each, Instruction)
        for target in leaves(each.operands[0])
        if isinstance(target, Name)
    }
    return all(inside[name] == total[name] for name in made - result - {"_"})


class _Matcher:
    """Reads one chain from a statement on. known: what a register holds, as (whether it is shuffled, after how many steps)."""

    def __init__(self, body: Sequence[Statement], constants: Mapping[str, int], first: int) -> None:
        self.body = body
        self.constants = constants
        self.first = first
        self.known: dict[str, tuple[bool, int]] = {}
        self.done = 0

    def chain(self) -> Chain | None:
        start = self._instruction(self.first)
        step = self._step(start) if start is not None else None
        if start is None or step is None or not isinstance(start.operands[1], Name):
            return None
        chain = Chain(self.first, start, start.operands[1], steps=[step])
        self._name_value(start.operands[1].text)
        self._take_shuffle(start)
        at = self.first + 1
        while (it := self._instruction(at)) is not None and self._take(it, at, chain):
            at += 1
        del chain.steps[self.done :]
        chain.kept = [each for each in chain.kept if each < chain.last]
        return chain if self.done >= 2 else None

    def _instruction(self, at: int) -> Instruction | None:
        each = self.body[at] if at < len(self.body) else None
        return each if isinstance(each, Instruction) and each.guard is None and each.operands else None

    def _number(self, operand: Operand) -> int | None:
        if isinstance(operand, Number):
            return operand.value
        return self.constants.get(operand.text) if isinstance(operand, Name) and not operand.offset else None

    def _step(self, it: Instruction) -> int | None:
        """The step of a butterfly over a whole warp whose lanes all find their partner; None for any other instruction."""
        if it.opcode != SHUFFLE or len(it.operands) != 5:
            return None
        step, segment, mask = (self._number(operand) for operand in it.operands[2:])
        if step is None or segment is None or mask is None or mask & FULL != FULL:
            return None
        fits = 0 < step < 32 and segment & 31 == 31 and not step & segment >> 8
        return step if fits else None

    def _name_value(self, name: str) -> None:
        """Takes the value by all its names: a float is moved into an untyped register before it is shuffled."""
        self.known[name] = (False, 0)
        for at in range(self.first - 1, max(-1, self.first - BEFORE), -1):
            it = self._instruction(at)
            if it is None:
                return
            if it.opcode in MOVES and [*leaves(it.operands[0])] == [Name(name)]:
                if isinstance(it.operands[1], Name):
                    self.known[it.operands[1].text] = (False, 0)
                return

    def _take_shuffle(self, it: Instruction) -> None:
        to = it.operands[0].first if isinstance(it.operands[0], Pair) else it.operands[0]
        if isinstance(to, Name):
            self.known[to.text] = (True, self.done)

    def _take(self, it: Instruction, at: int, chain: Chain) -> bool:
        if it.opcode in MOVES and len(it.operands) == 2:
            return self._take_move(it, at, chain)
        if it.opcode == SHUFFLE:
            step, value = self._step(it), it.operands[1]
            if step is None or not isinstance(value, Name) or self.known.get(value.text) != (False, self.done):
                return False
            if len(chain.steps) > self.done:
                return False
            chain.steps.append(step)
            self._take_shuffle(it)
            return True
        return COMBINING.fullmatch(it.opcode) is not None and self._take_combination(it, at, chain)

    def _take_move(self, it: Instruction, at: int, chain: Chain) -> bool:
        to, value = it.operands
        if not isinstance(to, Name):
            return False
        if isinstance(value, Number):
            chain.kept.append(at)
            return self.constants.get(to.text) == value.value
        held = self.known.get(value.text) if isinstance(value, Name) and not value.offset else None
        if held is None:
            return False
        self.known[to.text] = held
        return True

    def _take_combination(self, it: Instruction, at: int, chain: Chain) -> bool:
        if len(it.operands) != 3:
            return False
        to, *read = it.operands
        held = [self.known.get(each.text) if isinstance(each, Name) and not each.offset else None for each in read]
        own, other = (False, self.done), (True, self.done)
        if not isinstance(to, Name) or held not in ([own, other], [other, own]):
            return False
        swapped = held == [other, own]
        if self.done and (it.opcode, swapped) != (chain.opcode, chain.swapped):
            return False
        chain.opcode, chain.swapped = it.opcode, swapped
        self.done += 1
        chain.last, chain.result = at, to
        self.known[to.text] = (False, self.done)
        return True
