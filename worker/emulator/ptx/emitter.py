"""One function on its way to C++: which names it has declared, and how operands are read, written and addressed."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from .forms import CTYPES, WIDTHS
from .specials import special
from .tree import Address, Group, Instruction, Name, Not, Number, Operand, PtxError, Real
from .undefined import Step, Undefined


@dataclass(frozen=True)
class Register:
    """A register: its C++ variable and its PTX type."""

    variable: str
    type: str


@dataclass(frozen=True)
class Place:
    """A variable in memory, or a function. base: C++ of its address, or of its offset in the arena for `shared`. size: bytes, 0
    unknown."""

    space: str
    base: str
    size: int = 0


@dataclass(frozen=True)
class Known:
    """What a first look at a whole function has found. held: the C++ type of each register's variable; unread: those that are
    written and never read."""

    held: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    undefined: Undefined = field(default_factory=Undefined)


@dataclass
class Names:
    """What a name stands for, in the innermost scope first."""

    outer: dict[str, Place]
    scopes: list[dict[str, Register | Place]] = field(default_factory=lambda: [{}])

    def find(self, name: str) -> Register | Place | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.outer.get(name)


class Emitter:
    """State of one function, and C++ for operands. Raises PtxError for an operand that does not fit its instruction."""

    def __init__(self, module: dict[str, Place], kernel: str, known: Known) -> None:
        self.names = Names(module)
        self.held = known.held
        self.undefined = known.undefined
        self.unread = known.unread
        self.kernel = kernel
        self.registers: list[Register] = []
        self.declarations: list[str] = []
        self.shared: dict[str, None] = {}
        self.floats: Counter[str] = Counter()
        self.waits = False
        self.serial = False
        self.arena = False
        self.spares: Mapping[str, str] = {}
        """Registers whose value is looked at only where it is chosen, with the variable that says so."""
        self.guessing = False
        """Whether the instruction in hand reads what a compare-and-swap will compare with."""
        self.it: Instruction | None = None
        self.step = Step()
        self.steps: list[Step] = []
        """What the instructions did so far, in the order in which they are written out: noted at the first look alone."""
        self.sites: dict[int, int] = {}
        self.count = 0

    # ------------------------------------------------------------------------------------------------------- errors

    def error(self, why: str) -> PtxError:
        it = self.it
        opcode, line = (it.opcode[:80], it.line) if it else ("", 0)
        return PtxError(f"the PTX instruction `{opcode}` cannot be emulated: {why}", line, self.kernel)

    def unknown(self) -> PtxError:
        it = self.it
        opcode, line = (it.opcode[:80], it.line) if it else ("", 0)
        return PtxError(f"the PTX instruction `{opcode}` is not known to the emulator", line, self.kernel)

    def site(self) -> int:
        """The number of the instruction in hand among all that were asked for, from 1."""
        return self.sites.setdefault(id(self.it), len(self.sites) + 1)

    # ------------------------------------------------------------------------------------------------- declarations

    def fresh(self, start: str) -> str:
        self.count += 1
        return f"{start}{self.count}"

    def declare(self, name: str, type_: str) -> None:
        if type_ not in WIDTHS or WIDTHS[type_] > 64 or WIDTHS[type_] == 8:
            raise PtxError(f"PTX registers of type .{type_[:20]} cannot be emulated", 0, self.kernel)
        made = Register(self.fresh("v"), type_)
        self.registers.append(made)
        self.names.scopes[-1][name] = made

    def spare(self, register: str) -> str:
        """The C++ variable that says from where a spare value was read, if nothing had written there."""
        name = self.spares[register]
        declaration = f"const char* {name} = nullptr;"
        if declaration not in self.declarations:
            self.declarations.append(declaration)
        return name

    def kept(self) -> dict[str, str]:
        """The C++ type of every register's variable; one that is mostly computed with as a float is held as one."""
        found = {}
        for register in self.registers:
            width = WIDTHS[register.type]
            found[register.variable] = "bool" if width == 1 else f"uint{width}_t"
            if self.floats[register.variable] > 0:
                found[register.variable] = {32: "float", 64: "double"}.get(width, found[register.variable])
        return found

    def declared(self) -> Iterator[str]:
        """C++ that declares every register and every variable of the function."""
        for kind in dict.fromkeys(self.held.values()):
            starts = (
                f"{name} = {_all_ones(kind) if name in self.undefined.first else '0'}"
                for name, held in self.held.items()
                if held == kind
            )
            yield f"{kind} {', '.join(starts)};"
        yield from self.declarations

    @contextmanager
    def instruction(self, it: Instruction, *, guessing: bool = False) -> Iterator[None]:
        self.it, self.guessing = it, guessing
        self.step = Step(guarded=it.guard is not None)
        if not self.held:
            self.steps.append(self.step)
        yield
        self.it = None

    # ---------------------------------------------------------------------------------------------------- operands

    def operands(self, it: Instruction, count: int) -> tuple[Operand, ...]:
        if len(it.operands) != count:
            raise self.error(f"it has {len(it.operands)} operands, not {count}")
        return it.operands

    def type_of(self, operand: Operand) -> str:
        """The type a register was declared with; "" for what is none."""
        name = operand.of if isinstance(operand, Not) else operand
        found = self.names.find(name.text) if isinstance(name, Name) else None
        return found.type if isinstance(found, Register) else ""

    def _used(self, register: Register, kind: str) -> None:
        if kind in ("f32", "f64"):
            self.floats[register.variable] += 1
        elif kind not in ("b32", "b64"):
            self.floats[register.variable] -= 1

    def read(self, operand: Operand, kind: str, *, wider: bool = False) -> str:
        """C++ of the operand as a value of PTX type `kind`. wider: the register may have more bits than that."""
        if isinstance(operand, Not):
            if kind != "pred":
                raise self.error("`!` stands before something that is no predicate")
            return f"!{self.read(operand.of, kind)}"
        if isinstance(operand, Number):
            return self._number(operand.value, kind)
        if isinstance(operand, Real):
            return self._real(operand, kind)
        if isinstance(operand, Name):
            return self._name(operand, kind, wider)
        raise self.error("one of its operands is of a kind that it does not take")

    def _number(self, value: int, kind: str) -> str:
        width = WIDTHS[kind]
        if kind == "pred":
            return "true" if value else "false"
        if kind in ("f32", "f64") or not -(1 << width) < value < 1 << width:
            raise self.error(f"the constant {value} is none of type .{kind}")
        bits = f"{value & (1 << width) - 1}u{'ll' if width == 64 else ''}"
        whole = f"uint{width}_t" if kind[0] == "b" else CTYPES[kind]
        text = f"({whole}){bits}"
        return (
            text
            if (kind[0] in "su" and kind in CTYPES and kind[1:].isdigit()) or (kind[0] == "b" and kind[1:].isdigit())
            else f"__builtin_bit_cast({CTYPES[kind]}, {text})"
        )

    def _real(self, operand: Real, kind: str) -> str:
        bits, width = operand.bits, operand.width
        wanted = {"f32": 32, "b32": 32, "f64": 64, "b64": 64}.get(kind)
        if wanted is None or (kind[0] == "b" and width != wanted):
            raise self.error(f"a floating-point constant is none of type .{kind}")
        if width != wanted:
            value = struct.unpack("<f" if width == 32 else "<d", bits.to_bytes(width // 8, "little"))[0]
            try:
                bits = int.from_bytes(struct.pack("<f" if wanted == 32 else "<d", value), "little")
            except OverflowError:
                raise self.error(f"the constant {value:g} is too large for .{kind}") from None
        text = f"(uint{wanted}_t)0x{bits:x}u{'ll' if wanted == 64 else ''}"
        return text if kind[0] == "b" else f"__builtin_bit_cast({CTYPES[kind]}, {text})"

    def _name(self, operand: Name, kind: str, wider: bool) -> str:
        found = self.names.find(operand.text)
        if isinstance(found, Register):
            if operand.offset:
                raise self.error(f"{operand.text[:40]} is a register, to which nothing can be added")
            self._fits(found, kind, wider)
            self._used(found, kind)
            self.step.reads.add(found.variable)
            return self._as(found, kind)
        if isinstance(found, Place):
            return f"({CTYPES[kind]})({self.place(found)} + ({operand.offset}))"
        text = special(operand.text)
        if text is None:
            raise self.error(f"{operand.text[:60]!r} is not known to the emulator")
        if "arena" in text:
            self.arena = True
        return f"({CTYPES[kind]})({text})"

    def _as(self, register: Register, kind: str) -> str:
        """C++ of a register's value; written out where it is simple, because templates take a compiler's time."""
        name, wanted = register.variable, CTYPES[kind]
        held = self.held.get(name, "")
        if held == wanted:
            return name
        if WIDTHS[register.type] != WIDTHS[kind]:
            return f"ptx::as<{wanted}>({name})"
        whole = held.startswith("uint") and kind[0] in "su" and kind[1:].isdigit()
        return f"({wanted}){name}" if whole else f"__builtin_bit_cast({wanted}, {name})"

    def _fits(self, register: Register, kind: str, wider: bool) -> None:
        have, need = WIDTHS[register.type], WIDTHS[kind]
        if have == need or (wider and have > need > 1):
            return
        raise self.error(f"a register of type .{register.type} is used as .{kind}")

    def assign(self, operand: Operand, kind: str, value: str, *, wider: bool = False) -> str:
        """A C++ statement that writes a value of type `kind` to a register; `_` takes anything."""
        if isinstance(operand, Name) and operand.text == "_":
            return f"(void)({value});"
        found = self.names.find(operand.text) if isinstance(operand, Name) else None
        if not isinstance(found, Register):
            raise self.error("its result goes to something that is no register")
        self._fits(found, kind, wider)
        self._used(found, kind)
        self.step.writes.add(found.variable)
        name, written = found.variable, CTYPES[kind]
        held = self.held.get(name, "")
        if held == written or (
            held.startswith("uint") and WIDTHS[found.type] == WIDTHS[kind] and kind[1:].isdigit() and kind[0] in "sub"
        ):
            return f"{name} = ({written})({value});"
        if WIDTHS[found.type] == WIDTHS[kind]:
            return f"{name} = __builtin_bit_cast({held or 'int'}, ({written})({value}));"
        return f"ptx::set({name}, ({written})({value}));"

    # --------------------------------------------------------------------------------------------------- addresses

    def place(self, found: Place) -> str:
        """C++ of an unsigned number: the variable's address, which for shared memory is its offset."""
        if found.space != "shared":
            return f"(uint64_t){found.base}"
        if found.base.startswith("s"):
            self.shared[found.base] = None
            return f"offset_{found.base}"
        return found.base

    def address(self, operand: Operand, space: str) -> str:
        """C++ of a `char*` for an operand in brackets. Raises PtxError where it lies in another space."""
        if not isinstance(operand, Address) or not operand.plain:
            raise self.error("its address has a form that is not known to the emulator")
        base, offset = operand.base, operand.offset
        if isinstance(base, Number):
            base, offset = Number(base.value), 0
        found = self.names.find(base.text) if isinstance(base, Name) else None
        if space == "shared::cluster" and not isinstance(found, Place):
            value = f"({self.read(base, 'u32', wider=True)} + (uint32_t)({offset}))"
            return f"ptx::cluster_place({value})"
        space = "shared" if space == "shared::cluster" else space
        if isinstance(found, Place):
            if space not in ("", found.space) or (space == "" and found.space == "shared"):
                raise self.error(
                    f"{base.text[:60] if isinstance(base, Name) else ''} lies in .{found.space}, not .{space or 'global'}"
                )
            if found.space == "shared":
                self.arena = True
                return f"(arena + (uint32_t)({self.place(found)} + ({offset})))"
            return f"((char*){found.base} + ({offset}))"
        if space == "param" and not isinstance(found, Register):
            raise self.error("it names a parameter that is not there")
        kind = "u32" if space == "shared" else "u64"
        value = f"({self.read(base, kind, wider=True)} + ({CTYPES[kind]})({offset}))"
        if space == "shared":
            self.arena = True
            return f"(arena + (uint32_t){value})"
        return f"ptx::address({value})"


def _all_ones(kind: str) -> str:
    """C++ of what an undefined register starts with: NaN, or the largest unsigned, so that it shows in a result."""
    bits = {"float": "0xffffffffu", "double": "0xffffffffffffffffull"}.get(kind)
    return f"__builtin_bit_cast({kind}, {bits})" if bits else f"({kind})-1"


__all__ = ["Emitter", "Group", "Place", "Register"]
