"""What PTX text is read into: a module of variables, functions and statements; and the error for what cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


class PtxError(ValueError):
    """What cannot be read or cannot be emulated. line: of the submitter's file, 0 where it is not known."""

    def __init__(self, message: str, line: int = 0, kernel: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.kernel = kernel


@dataclass(frozen=True)
class Name:
    """A register, a special register, a variable, a function or a label, as written; `offset` bytes are added to it."""

    text: str
    offset: int = 0


@dataclass(frozen=True)
class Number:
    """An integer constant."""

    value: int


@dataclass(frozen=True)
class Real:
    """A floating-point constant by its bits; width: 32 or 64."""

    bits: int
    width: int


@dataclass(frozen=True)
class Not:
    """A predicate's opposite."""

    of: Operand


@dataclass(frozen=True)
class Pair:
    """`a|b`: two results of one instruction."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Group:
    """Operands in braces or parentheses."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Address:
    """Operands in brackets: a base with an offset; more than one for the forms that name a tensor."""

    base: Name | Number
    offset: int
    plain: bool


Operand = Name | Number | Real | Not | Pair | Group | Address


@dataclass(frozen=True)
class Instruction:
    """One instruction. guard: the predicate it runs under, or None. line: of the submitter's file."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Operand | None
    line: int


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Open:
    """`{`: names declared from here on end with the matching Close."""


@dataclass(frozen=True)
class Close:
    """`}`."""


@dataclass(frozen=True)
class Targets:
    """`.branchtargets`: a label's list of labels."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Variable:
    """A declared variable, register or parameter. count: elements; 0: of unstated size. values: its initialiser, flat.

    numbered: `%r<count>` declares that many registers `%r0` and so on.
    """

    space: str
    type: str
    name: str
    align: int = 0
    count: int = 1
    values: tuple[Operand, ...] = ()
    external: bool = False
    numbered: bool = False


Statement = Instruction | Label | Open | Close | Targets | Variable


@dataclass
class Function:
    """An entry or a device function. body is None for a declaration."""

    name: str
    entry: bool
    results: list[Variable]
    parameters: list[Variable]
    body: list[Statement] | None = None
    line: int = 0
    cluster: tuple[int, ...] = ()
    """Blocks a cluster, where the function states them."""


@dataclass
class Module:
    variables: list[Variable] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)


def leaves(operand: Operand) -> Iterator[Operand]:
    """What stands in groups and pairs, or the operand itself."""
    match operand:
        case Group(items):
            for item in items:
                yield from leaves(item)
        case Pair(first, second):
            yield from leaves(first)
            yield from leaves(second)
        case _:
            yield operand


def names(it: Instruction) -> Iterator[str]:
    """Every name that an instruction reads or writes, as often as it stands there."""
    for operand in (*it.operands, *((it.guard,) if it.guard is not None else ())):
        for leaf in leaves(operand):
            name = leaf.of if isinstance(leaf, Not) else leaf.base if isinstance(leaf, Address) else leaf
            if isinstance(name, Name):
                yield name.text
