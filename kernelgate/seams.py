"""A seam in one line: `rmsNorm(x: f32[rows, width], w: f32[width], rows: int, width: int) -> y: f32[rows, width]`.

Everything else that speaks of the seam is derived from it: the signature in C++ or Python, the rows of the contract table,
the shapes of what comes back. `inout x: …` is read and written in place; what it holds afterwards is judged as `x_after`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from kernelgate import python_text

DTYPES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "bool": "bool",
}
"""Short names of dtypes, as a seam writes them."""
OF_THE_CASE = "T"
"""The dtype that each case names for itself."""
C_TYPES = {
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned",
    "uint64": "unsigned long long",
    "bool": "bool",
}
NUMBERS = ("int", "float", "bool", "list")
"""What an argument without sizes may be; the last two in Python languages. A list stands for its length in a formula."""
AFTER = "_after"
"""What is judged of an array that is changed in place has the array's name and this."""


CHANGED = "_changed"
"""A second value of an input, for a second run of the same call, and what that run gives."""


class SeamError(ValueError):
    """A seam that cannot be understood; the text says which part and what is accepted."""


class Role(StrEnum):
    """What an argument of the seam is to the function."""

    INPUT = "input"
    INOUT = "inout"
    RESULT = "result"
    NUMBER = "number"


@dataclass(frozen=True)
class Argument:
    """One argument or result. dtype: numpy's name, `T`, or a word of `NUMBERS`. dims: sizes as they are written.

    default, keyword: of a Python function, what stands behind `=`, and whether it is given by its name alone.
    """

    name: str
    role: Role
    dtype: str
    dims: tuple[str, ...] = ()
    default: str = ""
    keyword: bool = False

    @property
    def judged(self) -> str:
        """The name under which it is judged, if it is."""
        return self.name + AFTER if self.role is Role.INOUT else self.name

    def shape(self, sizes: Mapping[str, object]) -> tuple[int, ...]:
        """Raises SeamError where a size is missing or negative."""
        return tuple(size_of(dim, sizes) for dim in self.dims)


@dataclass(frozen=True)
class SeamLine:
    """A parsed seam: its function's name, its arguments in the order they are written, and its results."""

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[Argument, ...]

    @property
    def arrays(self) -> tuple[Argument, ...]:
        """What is given: inputs, and what is changed in place."""
        return tuple(each for each in self.arguments if each.role is not Role.NUMBER)

    @property
    def numbers(self) -> tuple[Argument, ...]:
        return tuple(each for each in self.arguments if each.role is Role.NUMBER)

    @property
    def judged(self) -> tuple[Argument, ...]:
        """What comes back, in the order it is judged: results, then what was changed in place."""
        return (*self.results, *(each for each in self.arguments if each.role is Role.INOUT))

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names in dimensions, in the order they first stand."""
        found = [name for each in (*self.arrays, *self.results) for dim in each.dims for name in names_in(dim)]
        lists = [each.name for each in self.numbers if each.dtype == "list"]
        return tuple(name for name in dict.fromkeys(found) if name not in lists)

    def c_signature(self) -> str:
        """Inputs, results, numbers, the stream. Raises SeamError for what a C function cannot have."""
        named = {each.name for each in self.numbers}
        missing = [size for size in self.sizes if size not in named]
        if missing:
            raise SeamError(
                f"a CUDA seam writes its sizes out, in the order it wants them: {missing[0]}: int is missing"
            )
        for each in self.numbers:
            if each.dtype not in ("int", "float") or each.default or each.keyword:
                raise SeamError(f"{each.name}: a CUDA seam's numbers are int or float, without a default")
        parts = [_pointer(each) for each in (*self.arrays, *self.results)]
        parts += [f"{each.dtype} {each.name}" for each in self.numbers]
        return f'extern "C" void {self.name}({", ".join([*parts, "cudaStream_t stream"])})'

    def python_signature(self) -> str:
        results = ", ".join(each.name for each in self.results) or "None"
        return f"{self.name}({', '.join(self.python_arguments())}) -> {results}"

    def python_arguments(self) -> list[str]:
        """As a `def` has them: a bare `*` before the first that is given by its name alone."""
        written = [f"{each.name}={each.default}" if each.default else each.name for each in self.arguments]
        by_name = next((at for at, each in enumerate(self.arguments) if each.keyword), len(written))
        return [*written[:by_name], *(["*"] if by_name < len(written) else []), *written[by_name:]]

    def contract(self, *, cuda: bool) -> dict[str, str]:
        """Rows of the contract table: what → how it must be."""
        rows = {each.name: f"{_form(each)}, read-only" for each in self.arrays if each.role is Role.INPUT}
        rows |= {each.name: f"{_form(each)}, changed in place" for each in self.arguments if each.role is Role.INOUT}
        rows |= {each.name: f"{_form(each)}; every value must be written" for each in self.results}
        sizes = [each.name for each in self.numbers if each.name in self.sizes]
        rows |= {", ".join(sizes): "1 and up; not multiples of anything"} if sizes else {}
        if cuda:
            rows |= {"stream": "everything launched is on it, or joined to it by events before the function returns"}
        return rows


def _form(each: Argument) -> str:
    dtype = "the case's dtype" if each.dtype == OF_THE_CASE else each.dtype
    return f"{dtype} [{', '.join(each.dims)}], row-major"


def _pointer(each: Argument) -> str:
    if each.dtype == OF_THE_CASE:
        raise SeamError(f"{each.name}: T has no meaning in a CUDA seam; accepted are {', '.join(DTYPES)}")
    const = "const " if each.role is Role.INPUT else ""
    return f"{const}{C_TYPES[each.dtype]}* {each.name}"


# --- sizes --------------------------------------------------------------------------------------------------------------

_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


SUM = "sum"
"""The one function that a formula may call, on the name of a list."""
_KNOWN = (ast.Name, ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop, ast.Load)


def names_in(formula: str) -> list[str]:
    """The names that a formula of sizes speaks of. Raises SeamError where it is none."""
    return [node.id for node in ast.walk(_tree(formula)) if isinstance(node, ast.Name) and node.id != SUM]


@lru_cache(4096)
def _tree(formula: str) -> ast.expr:
    wrong = f"{formula[:80]!r} is no formula of sizes; accepted are names, numbers, + - * // / ** () and sum(a list)"
    try:
        tree = python_text.expression(formula)
    except SyntaxError:
        raise SeamError(wrong) from None
    for node in ast.walk(tree):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == SUM
        if not called and not isinstance(node, _KNOWN):
            raise SeamError(wrong)
    return tree


def value_of(formula: str, sizes: Mapping[str, object]) -> float:
    """A formula of sizes and numbers, e.g. "4 * rows * width". Raises SeamError for a name that is not there."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if isinstance(known := sizes.get(name), int | float):
                return known
            case ast.Name(id=name) if isinstance(known := sizes.get(name), list):
                return len(known)
            case ast.Call(args=[ast.Name(id=name)]) if isinstance(known := sizes.get(name), list):
                return sum(known)
            case ast.Name(id=name):
                raise SeamError(f"{formula!r}: the case has no number {name!r}; it has {', '.join(sizes) or 'none'}")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                return _OPERATIONS[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
        raise SeamError(f"{formula[:80]!r} is no formula of sizes")

    return value(_tree(formula))


def size_of(dim: str, sizes: Mapping[str, object]) -> int:
    """A dimension's size. Raises SeamError unless it is a whole number, 0 or more."""
    size = value_of(dim, sizes)
    if size != int(size) or size < 0:
        raise SeamError(f"the size {dim} is {size:g}; sizes are whole numbers, 0 and up")
    return int(size)


# --- reading ------------------------------------------------------------------------------------------------------------

_WHOLE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*\((?P<arguments>.*)\)\s*(?:->\s*(?P<results>.*?)\s*)?", re.DOTALL)
_PART = re.compile(
    r"(?P<inout>inout\s+)?(?P<name>[A-Za-z_]\w*)\s*:\s*(?P<dtype>\w+)\s*(?:\[(?P<dims>[^\[\]]*)\])?"
    r"\s*(?:=\s*(?P<default>[\w.+-]+))?",
    re.DOTALL,
)


def parse(text: str) -> SeamLine:
    """Reads a seam. Raises SeamError that quotes the part and says what is accepted."""
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        raise SeamError(f"seam {text[:120]!r}: accepted is name(x: f32[rows], rows: int) -> y: f32[rows]")
    arguments = tuple(_arguments(_split(whole["arguments"])))
    results = tuple(_result(part) for part in _split((whole["results"] or "").removeprefix("None")))
    line = SeamLine(whole["name"], arguments, results)
    _check(line)
    return line


def _check(line: SeamLine) -> None:
    names = [each.name for each in (*line.arguments, *line.results)]
    for name in names:
        if names.count(name) > 1:
            raise SeamError(f"{name!r} stands twice in the seam; every name stands once")
    if not line.judged:
        raise SeamError("the seam gives nothing back; write results behind -> or inout before an argument")
    for each in line.numbers:
        if each.name in line.sizes and each.dtype not in ("int", "list"):
            raise SeamError(f"{each.name} is a size and {each.dtype}; sizes are int")


def _split(text: str) -> list[str]:
    """At the commas that stand in no bracket."""
    parts = re.split(r",(?![^\[]*\])", text)
    return [part.strip() for part in parts if part.strip()]


def _part(text: str) -> re.Match[str]:
    part = _PART.fullmatch(text)
    if part is None:
        raise SeamError(
            f"seam part {text[:80]!r}: accepted are x: f32[rows, width], inout x: f32[rows], eps: float, n: int"
        )
    return part


def _arguments(texts: list[str]) -> Iterator[Argument]:
    """In their order; those behind a bare `*` are given by their names."""
    keyword = False
    for text in texts:
        if text == "*":
            keyword = True
        else:
            yield replace(_argument(text), keyword=keyword)


def _argument(text: str) -> Argument:
    part = _part(text)
    if part["dims"] is None:
        if part["dtype"] not in NUMBERS or part["inout"]:
            raise SeamError(f"seam part {text[:80]!r}: what has no [sizes] is a number: {', '.join(NUMBERS)}")
        return Argument(part["name"], Role.NUMBER, part["dtype"], default=part["default"] or "")
    if part["default"]:
        raise SeamError(f"seam part {text[:80]!r}: an array has no default")
    return _array(part, Role.INOUT if part["inout"] else Role.INPUT)


def result(text: str) -> Argument:
    """A result as a seam writes it, `y: f32[rows, width]`. Raises SeamError."""
    return _result(text)


def _result(text: str) -> Argument:
    part = _part(text)
    if part["dims"] is None or part["inout"] or part["default"]:
        raise SeamError(f"seam result {text[:80]!r}: a result is an array, as in y: f32[rows, width]")
    return _array(part, Role.RESULT)


def _array(part: re.Match[str], role: Role) -> Argument:
    short = part["dtype"]
    if short != OF_THE_CASE and short not in DTYPES:
        raise SeamError(f"{part['name']}: no dtype {short!r}; accepted are {', '.join(DTYPES)} and {OF_THE_CASE}")
    dims = tuple(dim.strip() for dim in part["dims"].split(",") if dim.strip())
    for dim in dims:
        names_in(dim)
    return Argument(part["name"], role, DTYPES.get(short, OF_THE_CASE), dims)
