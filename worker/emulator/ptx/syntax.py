"""Reads PTX text: tokens, then modules of variables, functions and statements. Nothing here knows what an instruction does.

The text is a compiler's, but inline assembly puts a submitter's words into it: every token is one of a few kinds, every
bracket is checked, and what cannot be read raises PtxError with the line of the submitter's file where it stands.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from .tree import (
    Address,
    Close,
    Function,
    Group,
    Instruction,
    Label,
    Module,
    Name,
    Not,
    Number,
    Open,
    Operand,
    Pair,
    PtxError,
    Real,
    Statement,
    Targets,
    Variable,
    leaves,
)

LIMIT = 8 << 20
"""Characters of PTX that are read; a kernel of a thousand lines has a tenth of a million."""


_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<real>0[fF][0-9a-fA-F]{8}(?!\w)|0[dD][0-9a-fA-F]{16}(?!\w)|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
    |(?P<number>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
    |(?P<word>[%$_A-Za-z][\w$]*(?:(?:\.|::)\w+)*)
    |(?P<dot>\.[A-Za-z_]\w*)
    |(?P<mark>[][{}(),;:+\-!|@<>=])""",
    re.X | re.S,
)
_SPACES = (".global", ".const", ".shared", ".local", ".param", ".reg")
_LINKING = (".visible", ".extern", ".weak", ".common")
_SKIPPED = (".maxntid", ".minnctapersm", ".maxnreg", ".reqntid", ".maxnctapersm", ".reqnctapercluster", ".maxclusterrank",
            ".explicitcluster", ".noreturn", ".abi_preserve", ".abi_preserve_control", ".unified")  # fmt: skip
Token = tuple[str, str]


def parse(text: str, file: str) -> Module:
    """A module. `file`: the submitter's file as `.file` names it at the end; lines of other files are not told."""
    if len(text) > LIMIT:
        raise PtxError(f"the PTX takes {len(text):,} characters; at most {LIMIT:,} are translated")
    return _Parser(_tokens(text), file).module()


def _tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise PtxError(f"the PTX text {text[at : at + 40]!r} cannot be read")
        at = match.end()
        kind = match.lastgroup or ""
        if kind != "space":
            found.append((kind, match.group()))
    return found


def _files(tokens: list[Token]) -> Iterator[tuple[int, str]]:
    """The files by number: nvcc names them at the end, behind the lines that are in them."""
    for at, (kind, text) in enumerate(tokens):
        if kind == "dot" and text == ".file" and tokens[at + 1][0] == "number" and tokens[at + 2][0] == "string":
            yield int(tokens[at + 1][1]), tokens[at + 2][1].strip('"')


class _Parser:
    def __init__(self, tokens: list[Token], file: str) -> None:
        self.tokens = [*tokens, ("end", "")]
        self.at = 0
        self.file = file
        self.files = dict(_files(self.tokens))
        self.line = 0
        self.function = ""

    # ------------------------------------------------------------------------------------------------------ tokens

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def text(self) -> str:
        return self.tokens[self.at][1]

    def take(self) -> str:
        text = self.text
        if self.kind == "end":
            raise self.error("the PTX ends in the middle of a statement")
        self.at += 1
        return text

    def accept(self, *texts: str) -> bool:
        kind, text = self.tokens[self.at]
        if text in texts and kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"{text!r} was expected before {self.text[:40]!r} in the PTX")

    def number(self) -> int:
        if self.kind != "number":
            raise self.error(f"a number was expected before {self.text[:40]!r} in the PTX")
        return (
            int(self.take().rstrip("U"), 0)
            if not re.fullmatch(r"0[0-7]+U?", self.text)
            else int(self.take().rstrip("U"), 8)
        )

    def word(self) -> str:
        if self.kind != "word":
            raise self.error(f"a name was expected before {self.text[:40]!r} in the PTX")
        return self.take()

    def error(self, message: str) -> PtxError:
        return PtxError(message, self.line, self.function)

    # ------------------------------------------------------------------------------------------------------ module

    def module(self) -> Module:
        found = Module()
        while self.kind != "end":
            if self._noted() or self.accept(";"):
                continue
            linking = self._linking()
            if self.text in (".entry", ".func"):
                found.functions.append(self._function())
            elif self.text in _SPACES:
                found.variables += self._variables(external=".extern" in linking)
            elif self.accept(".pragma"):
                self._skip_statement()
            else:
                raise self.error(f"the PTX directive {self.text[:60]!r} is not known")
        return found

    def _linking(self) -> set[str]:
        found: set[str] = set()
        while self.text in _LINKING:
            found.add(self.take())
        return found

    def _skip_statement(self) -> None:
        while not self.accept(";"):
            self.take()

    def _noted(self) -> bool:  # noqa: C901 - a word each
        """Takes a directive that says something about the text: where a line came from, which version, debug sections."""
        if self.kind != "dot":
            return False
        if self.accept(".version"):
            self.take()
        elif self.accept(".target"):
            self.take()
            while self.accept(","):
                self.take()
        elif self.accept(".address_size"):
            if self.number() != 64:
                raise self.error("PTX for 32-bit addresses is not translated")
        elif self.accept(".file"):
            self.number()
            self.take()
            while self.accept(","):
                self.take()
        elif self.accept(".loc"):
            self._location()
        elif self.accept(".section"):
            while self.take() != "{":
                pass
            while self.take() != "}":
                pass
        else:
            return False
        return True

    def _location(self) -> None:
        places = [(self.number(), self.number(), self.number())]
        while self.accept(","):
            if self.word() == "function_name":
                self.take()
                if self.accept("+"):
                    self.number()
            else:
                places.append((self.number(), self.number(), self.number()))
        for index, line, _ in places:
            if self.files.get(index, "").rpartition("/")[2] == self.file and line:
                self.line = min(line, 9_999_999)
                return

    def _variables(self, *, external: bool = False) -> list[Variable]:
        """The variables of one declaration, its `;` taken."""
        space, kind, align = self._declared()
        found = [self._variable(space, kind, align, external)]
        while self.accept(","):
            found.append(self._variable(space, kind, align, external))
        self.expect(";")
        return found

    def _declared(self) -> tuple[str, str, int]:
        """What stands before a variable's or a parameter's name: its space, type and alignment."""
        space, kind, align = self.take()[1:], "", 0
        while self.kind == "dot":
            word = self.take()
            if word == ".align":
                align = self.number()
            elif word == ".ptr":
                self._pointer()
            elif word in (".v2", ".v4"):
                raise self.error(f"variables of the vector type {word} are not translated")
            elif word not in (".attribute",):
                kind = word[1:]
        return space, kind, align

    def _pointer(self) -> None:
        while self.text in (".global", ".const", ".shared", ".local", ".align"):
            if self.take() == ".align":
                self.number()

    def _variable(self, space: str, kind: str, align: int, external: bool) -> Variable:
        name, count, numbered = self.word(), 1, False
        if self.accept("<"):
            count, numbered = self.number(), True
            self.expect(">")
        while self.accept("["):
            count *= self.number() if self.kind == "number" else 0
            self.expect("]")
        values: tuple[Operand, ...] = ()
        if self.accept("="):
            values = tuple(leaves(self._operand()))
        return Variable(space, kind, name, align, count, values, external, numbered)

    # --------------------------------------------------------------------------------------------------- functions

    def _function(self) -> Function:
        entry = self.take() == ".entry"
        results = self._parameters() if self.text == "(" else []
        made = Function(self.word(), entry, results, [])
        self.function = made.name
        if self.text == "(":
            made.parameters = self._parameters()
        while self.text in _SKIPPED:
            clusters, numbers = self.take() == ".reqnctapercluster", []
            while self.kind == "number" or self.text == ",":
                numbers += [self.number()] if self.kind == "number" else []
                self.accept(",")
            if clusters:
                made.cluster = tuple(numbers)
        if not self.accept(";"):
            self.expect("{")
            made.line = self.line
            made.body = list(self._body())
        self.function = ""
        return made

    def _parameters(self) -> list[Variable]:
        self.expect("(")
        found: list[Variable] = []
        while not self.accept(")"):
            space, kind, align = self._declared()
            found.append(self._variable(space, kind, align, False))
            self.accept(",")
        return found

    def _body(self) -> Iterator[Statement]:
        depth = 1
        while depth:
            if self._noted() or self.accept(";"):
                continue
            if self.accept("{"):
                depth += 1
                yield Open()
            elif self.accept("}"):
                depth -= 1
                yield Close()
            elif self.kind == "dot":
                yield from self._directive()
            elif self.kind == "word" and self.tokens[self.at + 1][1] == ":":
                yield Label(self.take())
                self.take()
            else:
                yield self._instruction()

    def _directive(self) -> Iterator[Statement]:
        external = ".extern" in self._linking()
        if self.text in _SPACES:
            yield from self._variables(external=external)
        elif self.accept(".branchtargets"):
            names = [self.word()]
            while self.accept(","):
                names.append(self.word())
            self.expect(";")
            yield Targets(tuple(names))
        elif self.text in (".pragma", ".callprototype", ".calltargets"):
            self._skip_statement()
        else:
            raise self.error(f"the PTX directive {self.text[:60]!r} is not known inside a function")

    def _instruction(self) -> Instruction:
        guard: Operand | None = None
        if self.accept("@"):
            guard = Not(Name(self.word())) if self.accept("!") else Name(self.word())
        opcode, line = self.word(), self.line
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self._operand())
            if not self.accept(",") and self.text != ";":
                raise self.error(
                    f"{self.text[:40]!r} in the operands of the PTX instruction `{opcode[:60]}` cannot be read"
                )
        return Instruction(opcode, tuple(operands), guard, line)

    # ---------------------------------------------------------------------------------------------------- operands

    def _operand(self) -> Operand:
        first = self._single()
        return Pair(first, self._single()) if self.accept("|") else first

    def _single(self) -> Operand:
        if self.accept("!"):
            return Not(self._single())
        if self.accept("{"):
            return self._group("}")
        if self.accept("("):
            return self._group(")")
        if self.accept("["):
            return self._address()
        return self._constant()

    def _group(self, closing: str) -> Group:
        items: list[Operand] = []
        while not self.accept(closing):
            items.append(self._operand())
            if not self.accept(",") and self.text != closing:
                raise self.error(f"{self.text[:40]!r} in a list of PTX operands cannot be read")
        return Group(tuple(items))

    def _address(self) -> Address:
        base, plain = self._constant(), True
        if isinstance(base, Real):
            raise self.error("an address is no floating-point number")
        offset = 0
        if isinstance(base, Name):
            base, offset = Name(base.text), base.offset
        while not self.accept("]"):
            plain = False
            self.take()
        return Address(base, offset, plain)

    def _constant(self) -> Name | Number | Real:
        sign = -1 if self.accept("-") else 1
        if self.kind == "real":
            return self._real(sign)
        if self.kind == "number":
            return Number(sign * self.number())
        name = self.word()
        if name == "generic" and self.accept("("):
            inner = self._constant()
            self.expect(")")
            if isinstance(inner, Name):
                name = inner.text
        offset = 0
        while self.text in ("+", "-"):
            plus = 1 if self.take() == "+" else -1
            while self.accept("-"):
                plus = -plus
            offset += plus * self.number()
        return Name(name, offset)

    def _real(self, sign: int) -> Real:
        text = self.take()
        if text[:2] in ("0f", "0F"):
            return Real(int(text[2:], 16) ^ (0x80000000 if sign < 0 else 0), 32)
        if text[:2] in ("0d", "0D"):
            return Real(int(text[2:], 16) ^ (1 << 63 if sign < 0 else 0), 64)
        return Real(int.from_bytes(struct.pack("<d", sign * float(text)), "little"), 64)
