"""Matrix products and their loads and stores: mma.sync, wmma, ldmatrix, stmatrix.

PTX ISA, "Warp-Level Matrix Instructions": 9.7.14.4 (wmma, whose fragments may lie anyhow) and 9.7.14.5 (mma.sync, ldmatrix and
stmatrix, whose fragments lie as stated there).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .emitter import Emitter
from .spelling import Chosen
from .tree import Group, Instruction, Operand

_BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s8": 8, "u8": 8, "e4m3": 8, "e5m2": 8,
         "s4": 4, "u4": 4, "b1": 1}  # fmt: skip
_FACTORS: dict[str, dict[str, str]] = {
    "f16": {"m16n8k8": "f16 f32", "m16n8k16": "f16 f32"},
    "bf16": {"m16n8k8": "f32", "m16n8k16": "f32"},
    "tf32": {"m16n8k4": "f32", "m16n8k8": "f32"},
    "f64": {"m8n8k4": "f64", "m16n8k4": "f64", "m16n8k8": "f64", "m16n8k16": "f64"},
    **{key: {"m8n8k16": "s32", "m16n8k16": "s32", "m16n8k32": "s32"} for key in ("s8", "u8")},
    **{key: {"m8n8k32": "s32", "m16n8k32": "s32", "m16n8k64": "s32"} for key in ("s4", "u4")},
    **{key: {"m16n8k16": "f16 f32", "m16n8k32": "f16 f32"} for key in ("e4m3", "e5m2")},
    "b1": {"m8n8k128": "s32", "m16n8k128": "s32", "m16n8k256": "s32"},
}
"""For each type of the factors its shapes in mma.sync, and the types of the sums that each has."""
_BESIDE = {"s8": "u8", "u8": "s8", "s4": "u4", "u4": "s4", "e4m3": "e5m2", "e5m2": "e4m3"}
"""The types that may stand as the other factor."""
_WMMA: dict[str, tuple[str, str]] = {
    "f16": ("m16n16k16 m32n8k16 m8n32k16", "f16 f32"),
    "bf16": ("m16n16k16 m32n8k16 m8n32k16", "f32"),
    "tf32": ("m16n16k8", "f32"),
    "f64": ("m8n8k4", "f64"),
    "s8": ("m16n16k16 m32n8k16 m8n32k16", "s32"),
    "u8": ("m16n16k16 m32n8k16 m8n32k16", "s32"),
}
"""For each type of the factors in wmma its shapes and the types of its sums."""
_TYPES = "|".join(_BITS)
_SHAPE = r"m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)"
MULTIPLY = re.compile(
    rf"mma\.sync\.aligned\.{_SHAPE}\.row\.col(?P<limit>\.satfinite)?"
    rf"\.(?P<d>{_TYPES})\.(?P<a>{_TYPES})\.(?P<b>{_TYPES})\.(?P<c>{_TYPES})(?P<bits>\.(and|xor)\.popc)?"
)
WMMA_MULTIPLY = re.compile(
    rf"wmma\.mma\.sync\.aligned\.(row|col)\.(row|col)\.{_SHAPE}(\.rn)?"
    rf"\.(?P<d>{_TYPES})(\.(?P<a>{_TYPES})\.(?P<b>{_TYPES}))?\.(?P<c>{_TYPES})(?P<limit>\.satfinite)?"
)
WMMA_LOAD = re.compile(
    rf"wmma\.load\.(?P<which>[abc])\.sync\.aligned\.(?P<layout>row|col)\.{_SHAPE}"
    rf"(?P<space>\.global|\.shared|\.shared::cta)?\.(?P<type>{_TYPES})"
)
WMMA_STORE = re.compile(
    rf"wmma\.store\.(?P<which>d)\.sync\.aligned\.(?P<layout>row|col)\.{_SHAPE}"
    rf"(?P<space>\.global|\.shared|\.shared::cta)?\.(?P<type>{_TYPES})"
)
MOVE = re.compile(
    r"(?P<name>ld|st)matrix\.sync\.aligned\.m8n8\.x(?P<count>[124])(?P<turned>\.trans)?(\.shared|\.shared::cta)\.b16"
    r"|(?P<early>ld|st)matrix\.sync\.aligned\.x(?P<many>[124])(?P<swapped>\.trans)?\.m8n8(\.shared|\.shared::cta)\.b16"
)


@dataclass(frozen=True)
class Product:
    """The shape of a product and the types of its four matrices."""

    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    c: str

    @classmethod
    def of(cls, match: Chosen, factors: str | None = None) -> Product:
        a, b = (factors, factors) if factors else (match["a"], match["b"])
        m, n, k = (int(match[it] or 0) for it in "mnk")
        return cls(m, n, k, match["d"] or "", a or "", b or "", match["c"] or "")

    @property
    def shape(self) -> str:
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def text(self) -> str:
        """C++ of the template arguments."""
        kinds = ", ".join(f"ptx::Element::{kind}" for kind in (self.d, self.a, self.b, self.c))
        return f"{self.m}, {self.n}, {self.k}, {kinds}"


def _counts(product: Product, *, fragments: bool) -> dict[str, int]:
    """Registers of each matrix. fragments: of wmma, which holds f16 factors more than once."""
    sizes = {"a": product.m * product.k, "b": product.k * product.n, "c": product.m * product.n}
    sizes["d"] = sizes["c"]
    kinds = {name: getattr(product, name) for name in "abcd"}
    found = {name: sizes[name] * _BITS[kinds[name]] // (32 * max(32, _BITS[kinds[name]])) for name in "abcd"}
    return found | ({"a": 8, "b": 8} if fragments and product.a == "f16" else {})


def _register(kind: str) -> str:
    return {"f64": "f64", "f32": "f32"}.get(kind, "b32")


def _word(kind: str) -> str:
    return "uint64_t" if kind == "f64" else "uint32_t"


def _read(emitter: Emitter, operand: Operand, count: int, kind: str) -> str:
    """C++ of the initialiser of an array that holds a fragment."""
    items = operand.items if isinstance(operand, Group) else (operand,)
    if len(items) != count:
        raise emitter.error(f"{len(items)} registers where a fragment has {count}")
    word, register = _word(kind), _register(kind)
    return ", ".join(f"__builtin_bit_cast({word}, {emitter.read(item, register)})" for item in items)


def _taken(emitter: Emitter, operand: Operand, count: int, kind: str, name: str) -> str:
    """C++ that writes an array's words to the registers of a fragment."""
    items = operand.items if isinstance(operand, Group) else (operand,)
    if len(items) != count:
        raise emitter.error(f"{len(items)} registers where a fragment has {count}")
    register = _register(kind)
    value = "{}" if register == "b32" else f"__builtin_bit_cast({'float' if register == 'f32' else 'double'}, {{}})"
    return " ".join(emitter.assign(it, register, value.format(f"{name}[{at}]")) for at, it in enumerate(items))


def _multiplied(emitter: Emitter, it: Instruction, product: Product, options: str, *, fragments: bool) -> str:
    d, a, b, c = emitter.operands(it, 4)
    counts = _counts(product, fragments=fragments)
    arrays = "".join(
        f"const {_word(kind)} {name}[] = {{{_read(emitter, operand, counts[name], kind)}}}; "
        for name, operand, kind in (("a", a, product.a), ("b", b, product.b), ("c", c, product.c))
    )
    kind = "Fragments" if fragments else "Registers"
    call = f"ptx::multiply<ptx::{kind}, {product.text}, {options}>(d, a, b, c, {it.line});"
    return (
        f"{{ {arrays}{_word(product.d)} d[{counts['d']}]; {call} {_taken(emitter, d, counts['d'], product.d, 'd')} }}"
    )


def multiply(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    product = Product.of(match)
    sums = _FACTORS.get(product.a, {}).get(product.shape, "").split()
    whole = product.a in ("s8", "u8", "s4", "u4")
    if (
        product.c not in sums
        or product.d != product.c
        or product.b not in (product.a, _BESIDE.get(product.a))
        or (product.a == "b1") != bool(match["bits"])
        or (match["limit"] and not whole)
    ):
        raise emitter.unknown()
    join = {".and.popc": "And", ".xor.popc": "Xor", None: "Times"}[match["bits"]]
    options = f"ptx::Joined::{join}, {str(bool(match['limit'])).lower()}"
    return _multiplied(emitter, it, product, options, fragments=False)


def multiply_fragments(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    product = Product.of(match, None if match["a"] else "f16")
    shapes, sums = _WMMA.get(product.a, ("", ""))
    if (
        product.shape not in shapes.split()
        or {product.c, product.d} - set(sums.split())
        or product.a != product.b
        or (match["limit"] and product.c != "s32")
    ):
        raise emitter.unknown()
    options = f"ptx::Joined::Times, {str(bool(match['limit'])).lower()}"
    return _multiplied(emitter, it, product, options, fragments=True)


def move_fragment(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    """wmma.load and wmma.store: each lane reads or writes the elements of its own fragment."""
    which, kind = match["which"] or "", match["type"] or ""
    loads = which != "d"
    m, n, k = (int(match[name] or 0) for name in "mnk")
    rows, columns = {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[which]
    known = any(
        f"m{m}n{n}k{k}" in shapes.split() and kind in ((factor,) if which in "ab" else sums.split())
        for factor, (shapes, sums) in _WMMA.items()
    )
    if not known or not 2 <= len(it.operands) <= 3:
        raise emitter.unknown()
    fragment, place = it.operands[:2] if loads else (it.operands[1], it.operands[0])
    address = emitter.address(place, (match["space"] or "").removeprefix(".").partition("::")[0])
    across = match["layout"] == "row"
    stride = emitter.read(it.operands[2], "u32") if len(it.operands) == 3 else f"{columns if across else rows}u"
    count = 8 if kind == "f16" and which in "ab" else rows * columns * _BITS[kind] // (32 * max(32, _BITS[kind]))
    name = "load_fragment" if loads else "store_fragment"
    sums = "true" if which in "cd" else "false"
    call = f"ptx::{name}<{rows}, {columns}, ptx::Element::{kind}, {count}, {str(across).lower()}, {sums}>"
    if loads:
        return f"{{ {_word(kind)} d[{count}]; {call}(d, {address}, {stride}); {_taken(emitter, fragment, count, kind, 'd')} }}"
    return (
        f"{{ const {_word(kind)} d[] = {{{_read(emitter, fragment, count, kind)}}}; {call}(d, {address}, {stride}); }}"
    )


def move_matrices(emitter: Emitter, it: Instruction, match: Chosen) -> str:
    count, turned = int(match["count"] or match["many"] or 0), bool(match["turned"] or match["swapped"])
    first, second = emitter.operands(it, 2)
    options = f"{count}, {str(turned).lower()}"
    if (match["name"] or match["early"]) == "ld":
        taken = _taken(emitter, first, count, "b32", "d")
        return (
            f"{{ uint32_t d[{count}]; "
            f"ptx::load_matrices<{options}>(d, {emitter.address(second, 'shared')}, {it.line}); {taken} }}"
        )
    given = _read(emitter, second, count, "b32")
    place = emitter.address(first, "shared")
    return f"{{ const uint32_t d[] = {{{given}}}; ptx::store_matrices<{options}>(d, {place}, {it.line}); }}"


MATRICES = (
    (MULTIPLY, multiply),
    (WMMA_MULTIPLY, multiply_fragments),
    (WMMA_LOAD, move_fragment),
    (WMMA_STORE, move_fragment),
    (MOVE, move_matrices),
)
"""Spellings with the functions that write their C++."""
