"""Reads Triton's own IR (TTIR): a function in SSA form over tensors, with structured loops and branches.

The IR comes from a process that ran submitted code, so it may say anything; what is not understood is refused by name, and all
of this runs in a sandbox that has nothing but one case's inputs.
"""

import re
from dataclasses import dataclass, field

LOC = re.compile(r"\s*loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\"|\((?:[^()]|\([^()]*\))*\))*\))*\)")
VALUE = re.compile(r"%[\w.$-]+(?:#\d+)?")
RESULTS = re.compile(r"(%[\w.$-]+(?::\d+)?(?:, %[\w.$-]+(?::\d+)?)*) = ")
TENSOR = re.compile(r"tensor<((?:\d+x)*)([^,]+?)(?:, #.*)?>")
POINTER = re.compile(r"!tt\.ptr<([^,>]+)(?:, \d+)?>")
NOTHING = {"tt.print", "gpu.barrier", "ttg.barrier", "ttg.local_barrier", "llvm.intr.assume"}


class NotInterpretedError(Exception):
    """An operation or a form that is not understood; the text names it and, where known, its line."""


@dataclass(frozen=True)
class Type:
    """A scalar (shape ()) or a tensor. element: f16, bf16, f32, f64, i1 to i64, or `ptr:` and what it points to."""

    shape: tuple[int, ...]
    element: str


@dataclass
class Op:
    """One operation. results: SSA names; text: all between its name and its types; types: what stands behind the colon."""

    name: str
    results: list[str]
    operands: list[str]
    text: str
    types: str
    line: int
    regions: list["Region"] = field(default_factory=list)


@dataclass
class Region:
    arguments: list[str]
    ops: list[Op]


def type_of(text):
    """The Type that a text names. Raises NotInterpretedError."""
    text = text.strip()
    whole = TENSOR.fullmatch(text)
    if whole:
        return Type(tuple(int(size) for size in whole[1].split("x") if size), _element(whole[2]))
    return Type((), _element(text))


def _element(text):
    pointer = POINTER.fullmatch(text)
    if pointer:
        return "ptr:" + _element(pointer[1])
    if text in ("f16", "bf16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index"):
        return text
    raise NotInterpretedError(f"values of type {text[:80]}")


def split(text):
    """A list of texts at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += letter in "<([{"
        depth -= letter in ")]}" or (letter == ">" and text[at - 1] != "-")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


class Reader:
    """Parses one module that holds one kernel."""

    def __init__(self, text, file):
        self.file = file
        self.lines, self.locations = [], {}
        for line in text.splitlines():
            if line.startswith("#loc"):
                name, _, said = line.partition(" = ")
                self.locations[name] = said
            elif line.strip() and not line.startswith("#"):
                self.lines.append(line.strip())
        self.at = 0

    def kernel(self):
        """(argument names, their Types, operations)."""
        while not self.lines[self.at].startswith("tt.func"):
            self.at += 1
        head = LOC.sub("", self.lines[self.at])
        if sum(line.startswith("tt.func") for line in self.lines) > 1:
            raise NotInterpretedError("functions that are not inlined (noinline=True)")
        inside = head[head.index("(") + 1 : head.rindex(")")]
        arguments = [re.sub(r"\s*\{.*\}$", "", part) for part in split(inside)]
        names = [part.split(":")[0].strip() for part in arguments]
        kinds = [type_of(part.split(":", 1)[1]) for part in arguments]
        self.at += 1
        return names, kinds, self._block()

    def _block(self):
        """Operations up to the line that closes their region; that line stays the current one."""
        ops = []
        while not self.lines[self.at].startswith("}"):
            ops.append(self._op())
        return ops

    def _line_of(self, text):
        found = LOC.findall(text)
        return self._resolve(found[-1], 0) if found else 0

    def _resolve(self, said, depth):
        """The line of the submitted file that a location leads to; 0 if to none."""
        here = re.search(r'"([^"]*)":(\d+):\d+', said)
        if here and here[1].rsplit("/", 1)[-1] == self.file:
            return int(here[2])
        if depth < 12:
            for name in reversed(re.findall(r"#loc\d*", said)):
                line = self._resolve(self.locations.get(name, ""), depth + 1)
                if line:
                    return line
        return 0

    def _op(self):
        raw = self.lines[self.at]
        line = self._line_of(raw)
        text = LOC.sub("", raw)
        self.at += 1
        named = RESULTS.match(text)
        results = _results(named[1]) if named else []
        body = text[named.end() :] if named else text
        if body.startswith("^"):
            raise NotInterpretedError("control flow that is not structured, as a return inside a branch is")
        name = re.match(r'"?([\w.]+)"?', body)
        if name is None:
            raise NotInterpretedError(f"the line {body[:80]!r}")
        rest = body[name.end() :]
        op = Op(name[1], results, [], "", "", line)
        if name[1] in ("scf.for", "scf.if", "scf.while"):
            self._structured(op, rest)
        elif rest.endswith("({"):
            self._with_region(op, rest)
        else:
            op.text, op.types = _halves(rest)
            op.operands = VALUE.findall(op.text)
        op.line = op.line or line
        return op

    def _structured(self, op, rest):
        head = rest.rstrip(" {")
        op.text = head
        region = self._region(_bound(head) if op.name != "scf.if" else [])
        op.regions.append(region)
        while "else" in self.lines[self.at - 1] or re.match(r"\} do \{", self.lines[self.at - 1]):
            op.regions.append(self._region([]))
        op.line = self._line_of(self.lines[self.at - 1])

    def _region(self, arguments):
        first = LOC.sub("", self.lines[self.at])
        if first.startswith("^"):
            arguments = [part.split(":")[0].strip() for part in split(first[first.index("(") + 1 : first.rindex(")")])]
            self.at += 1
        ops = self._block()
        self.at += 1
        return Region(arguments, ops)

    def _with_region(self, op, rest):
        op.text = rest
        op.operands = VALUE.findall(rest[: rest.index(")")])
        op.regions.append(self._region([]))
        op.types = LOC.sub("", self.lines[self.at - 1]).partition(":")[2]


def _results(text):
    names = []
    for part in text.split(", "):
        name, _, count = part.partition(":")
        names += [f"{name}#{index}" for index in range(int(count))] if count else [name]
    return names


def _bound(head):
    """Names that a loop's head binds: of `for` the counter and the carried values, of `while` its arguments."""
    return [pair[0] for pair in re.findall(r"(%[\w.$-]+) = (%[\w.$#-]+)", head)]


def _halves(rest):
    """(before, after) the last ` : ` outside of braces and brackets."""
    depth, found = 0, -1
    for at, letter in enumerate(rest):
        depth += letter in "{[<"
        depth -= letter in "}]" or (letter == ">" and rest[at - 1] != "-")
        if depth == 0 and rest.startswith(" : ", at):
            found = at
    return (rest, "") if found < 0 else (rest[:found], rest[found + 3 :])
