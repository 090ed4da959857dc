"""One function of a module as C++: its declarations, its labels as labels, its instructions one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import tracking
from .barriers import BARRIERS
from .butterflies import Chain, chains
from .clusters import CLUSTERS
from .control import ENDINGS, MOVES, call, ending, move
from .emitter import Emitter, Known, Place
from .floats import float_forms
from .forms import CTYPES, WIDTHS, Form, merged
from .guesses import guesses
from .integers import JOINS, integer_forms
from .matrices import MATRICES
from .memory import MEMORY, Handler
from .spares import spares
from .spelling import Pattern
from .tree import Close, Function, Instruction, Label, Name, Open, Operand, Pair, PtxError, Statement, Targets, Variable
from .undefined import undefined
from .warps import WARPS

FORMS = merged(integer_forms(), float_forms())
PATTERNS: tuple[tuple[Pattern, Handler], ...] = (*MEMORY, *WARPS, *MATRICES, *BARRIERS, *CLUSTERS)
MOST_STATEMENTS = 400_000
_WAITING = (".volatile", ".acquire", ".relaxed", "atom", "mbarrier")
"""Words of instructions by which a thread may wait for others in a loop."""


@dataclass(frozen=True)
class Translated:
    """text: C++ lines, each with the submitter's line it belongs to. serial: blocks have to run one after another."""

    lines: list[tuple[int, str]]
    serial: bool


@dataclass(frozen=True)
class Spot:
    """A label: its C++ name and the number of the statement it stands before."""

    name: str
    at: int


class FunctionWriter:
    """Writes one function. functions: C++ name, results and parameters of those that can be called.

    known: what an earlier writer of the same function has found.
    """

    def __init__(
        self,
        it: Function,
        name: str,
        module: dict[str, Place],
        functions: dict[str, tuple[str, int, int]],
        kernel: str,
        known: Known,
    ) -> None:
        self.it = it
        self.name = name
        self.functions = functions
        self.emitter = Emitter(module, kernel, known)
        self.shared: list[Variable] = []
        self.body: list[Statement] = it.body or []
        self.guesses = guesses(self.body)
        self.emitter.spares = {name: f"spare{at}" for at, name in enumerate(sorted(spares(self.body)))}
        self.labels: dict[tuple[int, str], Spot] = {}
        self.reached: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.scopes = [0]
        self.opened = 0
        self.waits = any(
            isinstance(each, Instruction) and any(word in each.opcode for word in _WAITING) for each in self.body
        )

    def write(self, waits: bool) -> Translated:
        """waits: whether some function of the module waits for memory, so that a loop around a call may."""
        if len(self.body) > MOST_STATEMENTS:
            raise PtxError(
                f"{len(self.body):,} PTX statements in one function; at most {MOST_STATEMENTS:,}",
                0,
                self.emitter.kernel,
            )
        calls = any(isinstance(each, Instruction) and each.opcode.startswith("call") for each in self.body)
        self.waits |= waits and calls
        self._parameters()
        self._find_labels()
        lines = [line for at, each in self._fused() for line in self._statement(at, each)]
        return Translated([*self._head(), *lines, (0, "return;"), (0, "}")], self.emitter.serial)

    def known(self) -> Known:
        """What this writer, which has written, knows of the whole function."""
        steps = self.emitter.steps
        unread = {name for step in steps for name in step.writes} - {name for step in steps for name in step.reads}
        return Known(self.emitter.kept(), frozenset(unread), undefined(steps, self.reached))

    def signature(self) -> str:
        if self.it.entry:
            return f"static void {self.name}(unsigned char* parameters)"
        given = [
            f"unsigned char* {kind}{at}"
            for kind, each in (("r", self.it.results), ("p", self.it.parameters))
            for at in range(len(each))
        ]
        return f"static void {self.name}({', '.join(given)})"

    # ------------------------------------------------------------------------------------------------ declarations

    def _parameters(self) -> None:
        names = self.emitter.names.scopes[0]
        offset = 0
        for at, each in enumerate(self.it.parameters):
            size, align = size_of(each), max(each.align, size_of(each, one=True))
            offset = -(-offset // align) * align
            names[each.name] = Place("param", f"(parameters + {offset})" if self.it.entry else f"p{at}", size)
            offset += size
        for at, each in enumerate(self.it.results):
            names[each.name] = Place("param", f"r{at}", size_of(each))

    def _head(self) -> Iterator[tuple[int, str]]:
        yield 0, f"{self.signature()} {{"
        emitter = self.emitter
        if emitter.arena or emitter.shared:
            yield 0, "char* const arena = ptx::arena();"
        for name in emitter.shared:
            yield 0, f"const uint32_t offset_{name} = ptx::shared_offset({name});"
        yield 0, "bool carry = false; (void)carry;"
        yield 0, " ".join([*emitter.declared(), tracking.declared(emitter)])

    def _declare(self, each: Variable) -> None:
        emitter = self.emitter
        if each.space == "reg":
            for name in (
                [f"{each.name}{at}" for at in range(min(each.count, MOST_STATEMENTS))] if each.numbered else [each.name]
            ):
                emitter.declare(name, each.type)
            return
        if each.values:
            raise PtxError(
                f"the initialised .{each.space} variable {each.name[:60]} inside a function", 0, emitter.kernel
            )
        if each.space in ("local", "param"):
            name = emitter.fresh("v")
            align = max(each.align, size_of(each, one=True), 8)
            emitter.declarations.append(f"alignas({align}) unsigned char {name}[{max(1, size_of(each))}];")
            emitter.names.scopes[-1][each.name] = Place(each.space, name, size_of(each))
            return
        if each.space != "shared":
            raise PtxError(f"the .{each.space} variable {each.name[:60]} inside a function", 0, emitter.kernel)
        name = "ptx::dynamic_offset()" if each.external else f"s_{self.name}_{len(self.shared)}"
        if not each.external:
            self.shared.append(each)
        emitter.names.scopes[-1][each.name] = Place("shared", name, size_of(each))

    # ------------------------------------------------------------------------------------------------------ labels

    def _find_labels(self) -> None:
        """Labels by the number of the scope that declares them: a block of inline assembly may repeat another's names."""
        scopes, opened = [0], 0
        last = ""
        for at, each in enumerate(self.body):
            if isinstance(each, Open):
                opened += 1
                scopes.append(opened)
            elif isinstance(each, Close):
                scopes = scopes[:-1] or [0]
            elif isinstance(each, Label):
                last = each.name
                self.labels[scopes[-1], each.name] = Spot(f"l{len(self.labels)}", at)
            elif isinstance(each, Targets):
                self.tables[last] = each.names

    def _label(self, name: str) -> Spot:
        for scope in reversed(self.scopes):
            if (scope, name) in self.labels:
                return self.labels[scope, name]
        raise self.emitter.error(f"there is no label {name[:60]}")

    # -------------------------------------------------------------------------------------------------- statements

    def _fused(self) -> Iterator[tuple[int, Statement | Chain]]:
        """The statements with their numbers; a chain stands where it begins, in the place of those that it does."""
        found = chains(self.body)
        at = 0
        while at < len(self.body):
            chain = found.get(at)
            if chain is None:
                yield at, self.body[at]
                at += 1
                continue
            yield from ((kept, self.body[kept]) for kept in chain.kept)
            yield at, chain
            at = chain.last + 1

    def _statement(self, at: int, each: Statement | Chain) -> Iterator[tuple[int, str]]:
        if isinstance(each, Chain):
            with self.emitter.instruction(each.start):
                text = tracking.folded(self.emitter, each) + self._butterfly(each)
                self.emitter.step.hands_on = True
            yield each.start.line, text
        elif isinstance(each, Open):
            self.opened += 1
            self.scopes.append(self.opened)
            self.emitter.names.scopes.append({})
        elif isinstance(each, Close):
            if len(self.scopes) > 1:
                self.scopes.pop()
                self.emitter.names.scopes.pop()
        elif isinstance(each, Variable):
            self._declare(each)
        elif isinstance(each, Label):
            spot = self._label(each.name)
            self.reached[spot.name] = len(self.emitter.steps)
            yield 0, f"{spot.name}:;"
        elif isinstance(each, Instruction):
            with self.emitter.instruction(each, guessing=at in self.guesses):
                self._noted(each)
                text = tracking.before(self.emitter, each) + self._instruction(at, each)
                if each.guard is not None:
                    asked = self.emitter.read(each.guard, "pred")
                    text = f"{tracking.choice(self.emitter, each, each.guard)}if ({asked}) {{ {text} }}"
            yield each.line, text

    def _noted(self, it: Instruction) -> None:
        """What the search for undefined registers has to know of an instruction beside what it reads and writes."""
        step, head = self.emitter.step, it.opcode.partition(".")[0]
        step.hands_on = tracking.hands_on(it.opcode)
        step.ends = head in ("bra", "brx", "ret", "exit", "trap")
        shared = not {"param", "local", "const"} & set(it.opcode.replace("::", ".").split("."))
        step.loads, step.stores = head == "ld" and shared, head == "st" and shared

    def _instruction(self, at: int, it: Instruction) -> str:
        emitter, opcode = self.emitter, it.opcode
        form = FORMS.get(opcode)
        if form is not None:
            return self._computed(it, form)
        if opcode.startswith("mov.") and opcode[4:] in MOVES:
            return move(emitter, it)
        if opcode in ("bra", "bra.uni"):
            (target,) = emitter.operands(it, 1)
            return self._jump(at, target.text if isinstance(target, Name) else "")
        if opcode in ("brx.idx", "brx.idx.uni"):
            return self._switch(at, it)
        if opcode in ("call", "call.uni"):
            return call(emitter, it, self.functions)
        if opcode in ENDINGS:
            return ending(emitter, it, self.it.entry)
        for pattern, handler in PATTERNS:
            match = pattern.fullmatch(opcode)
            if match:
                return handler(emitter, it, match)
        raise emitter.unknown()

    def _butterfly(self, chain: Chain) -> str:
        form = FORMS[chain.opcode]
        kind = form.result
        both = form.value.format(*(("b", "a") if chain.swapped else ("a", "b")))
        combine = f"[](const {CTYPES[kind]} a, const {CTYPES[kind]} b) -> {CTYPES[kind]} {{ return {both}; }}"
        steps = ", ".join(map(str, chain.steps))
        value = self.emitter.read(chain.value, kind)
        result = chain.result or Name("_")
        return self.emitter.assign(
            result, kind, f"ptx::butterfly<{CTYPES[kind]}, {steps}>({value}, {combine}, {chain.start.line})"
        )

    def _computed(self, it: Instruction, form: Form) -> str:
        emitter = self.emitter
        to, *read = emitter.operands(it, 1 + len(form.operands))
        converts = it.opcode.startswith("cvt.")
        values = [emitter.read(item, kind, wider=converts) for item, kind in zip(read, form.operands, strict=True)]
        value = form.value.format(*values)
        if not isinstance(to, Pair):
            return self._chosen(it, read) + emitter.assign(to, form.result, value, wider=converts)
        if form.result != "pred":
            raise emitter.error("it has one result")
        joined = ""
        if (
            len(form.operands) == 3
        ):  # the second result is of the comparison's opposite, joined with the same third operand
            head, relation, join, *rest = it.opcode.split(".")
            value = FORMS[".".join((head, relation, *rest))].value.format(*values[:2])
            joined = f" {JOINS[join]} {values[2]}"
        both = [emitter.assign(one, "pred", f"{no}outcome{joined}") for one, no in ((to.first, ""), (to.second, "!"))]
        return f"{{ const bool outcome = {value}; {' '.join(both)} }}"

    def _chosen(self, it: Instruction, read: list[Operand]) -> str:
        """C++ that says which of two values a `selp` takes, where one was read ahead of the choice."""
        if not it.opcode.startswith("selp."):
            return ""
        first, second = (isinstance(each, Name) and each.text in self.emitter.spares for each in read[:2])
        if not first and not second:
            return ""
        taken = self.emitter.read(read[2], "pred")
        names = [
            self.emitter.spare(each.text) if isinstance(each, Name) and spare else "nullptr"
            for each, spare in zip(read[:2], (first, second), strict=True)
        ]
        return f"ptx::spare_chosen({taken} ? {names[0]} : {names[1]}); "

    def _jump(self, at: int, name: str) -> str:
        spot = self._label(name)
        self.emitter.step.targets.append(spot.name)
        loop = "::emulator::loop(); " if self.waits and spot.at <= at else ""
        return f"{loop}goto {spot.name};"

    def _switch(self, at: int, it: Instruction) -> str:
        index, table = self.emitter.operands(it, 2)
        names = self.tables.get(table.text if isinstance(table, Name) else "", ())
        cases = " ".join(f"case {value}: {self._jump(at, name)}" for value, name in enumerate(names))
        lost = f'::emulator::device_trap("a branch to no label", {it.line});'
        ahead = tracking.choice(self.emitter, it, index)
        return f"{ahead}switch ({self.emitter.read(index, 'u32')}) {{ {cases} default: {lost} }}"


def size_of(each: Variable, *, one: bool = False) -> int:
    """Bytes of a variable, or of one element of it."""
    width = WIDTHS.get(each.type, 0)
    if width % 8 or not width:
        raise PtxError(f"PTX variables of type .{each.type[:20]} cannot be emulated")
    return width // 8 * (1 if one else each.count)
