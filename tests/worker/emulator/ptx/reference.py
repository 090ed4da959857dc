"""What each computing instruction gives, by the PTX ISA's words, on Python integers and exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tests.worker.emulator.ptx import numbers
from tests.worker.emulator.ptx.numbers import (
    FORMATS,
    Format,
    Value,
    flushed,
    number,
    product,
    ratio,
    root,
    rounded,
    total,
)

ROUNDINGS = (".rn", ".rz", ".rm", ".rp")
WHOLE = {".rni": ".rn", ".rzi": ".rz", ".rmi": ".rm", ".rpi": ".rp"}
Bits = tuple[int, ...]


def width_of(kind: str) -> int:
    return 1 if kind == "pred" else 32 if kind.endswith("x2") else int("".join(c for c in kind if c.isdigit()))


def signed(bits: int, width: int) -> int:
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> width - 1 else bits


def integer(kind: str, bits: int) -> int:
    return signed(bits, width_of(kind)) if kind[0] == "s" else bits & (1 << width_of(kind)) - 1


def limits(kind: str) -> tuple[int, int]:
    width = width_of(kind)
    return (-(1 << width - 1), (1 << width - 1) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def clamped(value: int, kind: str) -> int:
    low, high = limits(kind)
    return min(max(value, low), high)


# ------------------------------------------------------------------------------------------------------------ integers


def _permuted(mode: str, a: int, b: int, select: int) -> int:
    data = [(a | b << 32) >> 8 * at & 255 for at in range(8)]
    by = select & 3
    orders = {
        "f4e": [(by + at) % 8 for at in range(4)],
        "b4e": [(by - at) % 8 for at in range(4)],
        "rc8": [by] * 4,
        "ecl": [max(by, at) for at in range(4)],
        "ecr": [min(by, at) for at in range(4)],
        "rc16": [0, 1, 0, 1] if by % 2 == 0 else [2, 3, 2, 3],
    }
    if mode in orders:
        chosen = [data[at] for at in orders[mode]]
    else:
        picks = [select >> 4 * at & 15 for at in range(4)]
        chosen = [(255 if data[pick & 7] & 128 else 0) if pick & 8 else data[pick] for pick in picks]
    return sum(byte << 8 * at for at, byte in enumerate(chosen))


def _field(kind: str, value: int, start: int, count: int) -> int:
    width = width_of(kind)
    start, count = start & 255, count & 255
    if count == 0:
        return 0
    bits = value & (1 << width) - 1
    last = min(start + count - 1, width - 1)
    sign = bits >> last & 1 if kind[0] == "s" else 0
    return sum((bits >> start + at & 1 if at < count and start + at < width else sign) << at for at in range(width))


def _inserted(width: int, a: int, b: int, start: int, count: int) -> int:
    start, count = start & 255, count & 255
    for at in range(count):
        if start + at < width:
            b = b & ~(1 << start + at) | (a >> at & 1) << start + at
    return b


def _highest(kind: str, value: int, shift: bool) -> int:
    width = width_of(kind)
    value = value & (1 << width) - 1 if value >= 0 else ~value
    if not value:
        return 0xFFFFFFFF
    return width - value.bit_length() if shift else value.bit_length() - 1


def _nth(mask: int, base: int, n: int) -> int:
    places = range(base, 32) if n >= 0 else range(min(base, 31), -1, -1)
    if n == 0:
        return base if base < 32 and mask >> base & 1 else 0xFFFFFFFF
    if base > 31:
        return 0xFFFFFFFF
    found = [at for at in places if mask >> at & 1]
    return found[abs(n) - 1] if len(found) >= abs(n) else 0xFFFFFFFF


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _dot(parts: list[str], a: int, b: int, c: int) -> int:
    first, second = parts[-2], parts[-1]
    if parts[0] == "dp4a":
        pairs = [(a >> 8 * at & 255, b >> 8 * at & 255) for at in range(4)]
        wide = 8
    else:
        start = 2 if "hi" in parts else 0
        pairs = [(a >> 16 * at & 0xFFFF, b >> 8 * (start + at) & 255) for at in range(2)]
        wide = 16
    value = c
    for x, y in pairs:
        value += (signed(x, wide) if first == "s32" else x) * (signed(y, 8) if second == "s32" else y)
    return value


def _logic3(a: int, b: int, c: int, table: int) -> int:
    bits = [table >> (a >> at & 1) * 4 + (b >> at & 1) * 2 + (c >> at & 1) & 1 for at in range(32)]
    return sum(bit << at for at, bit in enumerate(bits))


def _shifted(name: str, kind: str, value: int, by: int) -> int:
    if name == "shl":
        return value << by if by < width_of(kind) else 0
    return value >> min(by, width_of(kind)) if kind[0] == "s" or by < width_of(kind) else 0


def _funnel(parts: list[str], a: int, b: int, c: int) -> int:
    by = min(c, 32) if "clamp" in parts else c & 31
    whole = b << 32 | a
    return whole << by >> 32 if "l" in parts else whole >> by


def _halves(value: int, kind: str) -> tuple[int, int]:
    return integer(f"{kind[0]}16", value), integer(f"{kind[0]}16", value >> 16)


def _paired(parts: list[str], kind: str, bits: Bits) -> int:
    operation = {"add": lambda x, y: x + y, "min": min, "max": max}[parts[0]]
    low, high = (operation(x, y) for x, y in zip(_halves(bits[0], kind), _halves(bits[1], kind), strict=True))
    if "relu" in parts:
        low, high = max(low, 0), max(high, 0)
    return (low & 0xFFFF) | (high & 0xFFFF) << 16


def _multiplied(parts: list[str], v: list[int], kind: str) -> int:
    width = width_of(kind)
    value = v[0] * v[1]
    if parts[0].endswith("24"):
        v = [integer(f"{kind[0]}24", it) for it in v[:2]] + v[2:]
        value = v[0] * v[1] >> (16 if "hi" in parts else 0)
        if "hi" not in parts:
            value &= 0xFFFFFFFF
        value = signed(value, 32) if kind[0] == "s" and "sat" not in parts else value
    elif "hi" in parts:
        value >>= width
    if parts[0].startswith("mad"):
        value += v[2]
    return clamped(value, kind) if "sat" in parts else value


def integer_value(opcode: str, bits: Bits, kinds: tuple[str, ...]) -> int:
    """The result of an integer instruction; only its lowest bits count."""
    parts = opcode.split(".")
    name, kind = parts[0], kinds[0] if parts[-1] == "relu" else parts[-1]
    if kind.endswith("x2"):
        return _paired(parts, kind, bits)
    v = [integer(each, value) for each, value in zip(kinds, bits, strict=True)]
    simple: dict[str, Callable[[], int]] = {
        "add": lambda: v[0] + v[1],
        "sub": lambda: v[0] - v[1],
        "mul": lambda: _multiplied(parts, v, kind),
        "mad": lambda: _multiplied(parts, v, kind),
        "mul24": lambda: _multiplied(parts, v, kind),
        "mad24": lambda: _multiplied(parts, v, kind),
        "sad": lambda: v[2] + abs(v[0] - v[1]),
        "div": lambda: _truncated(v[0], v[1]),
        "rem": lambda: v[0] - v[1] * _truncated(v[0], v[1]),
        "abs": lambda: abs(v[0]),
        "neg": lambda: -v[0],
        "min": lambda: min(v[0], v[1]),
        "max": lambda: max(v[0], v[1]),
        "and": lambda: v[0] & v[1],
        "or": lambda: v[0] | v[1],
        "xor": lambda: v[0] ^ v[1],
        "not": lambda: ~v[0],
        "cnot": lambda: int(v[0] == 0),
        "shl": lambda: _shifted(name, kind, v[0], v[1]),
        "shr": lambda: _shifted(name, kind, v[0], v[1]),
        "shf": lambda: _funnel(parts, v[0], v[1], v[2]),
        "lop3": lambda: _logic3(v[0], v[1], v[2], v[3]),
        "prmt": lambda: _permuted(parts[-1], v[0], v[1], v[2]),
        "popc": lambda: bin(v[0]).count("1"),
        "clz": lambda: width_of(kind) - v[0].bit_length(),
        "brev": lambda: int(f"{v[0]:0{width_of(kind)}b}"[::-1], 2),
        "bfind": lambda: _highest(kind, v[0], "shiftamt" in parts),
        "fns": lambda: _nth(v[0], v[1], v[2]),
        "bfe": lambda: _field(kind, v[0], v[1], v[2]),
        "bfi": lambda: _inserted(width_of(kind), v[0], v[1], v[2], v[3]),
        "szext": lambda: _field(kind, v[0], 0, min(v[1], 32) if "clamp" in parts else v[1] & 31),
        "bmsk": lambda: _mask(parts, v[0], v[1]),
        "dp4a": lambda: _dot(parts, bits[0], bits[1], v[2]),
        "dp2a": lambda: _dot(parts, bits[0], bits[1], v[2]),
        "vabsdiff2": lambda: _apart(parts, v, 16),
        "vabsdiff4": lambda: _apart(parts, v, 8),
        "cvt": lambda: _packed(parts, v) if "pack" in parts else clamped(v[0], parts[-2]) if "sat" in parts else v[0],
    }
    value = simple[name]()
    if "sat" in parts and name in ("add", "sub"):
        value = clamped(value, kind)
    return max(value, 0) if "relu" in parts else value


def _apart(parts: list[str], v: list[int], width: int) -> int:
    found = [abs((v[0] >> at & (1 << width) - 1) - (v[1] >> at & (1 << width) - 1)) for at in range(0, 32, width)]
    return v[2] + sum(found) if "add" in parts else sum(value << at * width for at, value in enumerate(found))


def _packed(parts: list[str], v: list[int]) -> int:
    width = width_of(parts[3])
    high, low = (clamped(value, parts[3]) & (1 << width) - 1 for value in v[:2])
    return (v[2] << 2 * width if len(v) > 2 else 0) | high << width | low


def _mask(parts: list[str], start: int, count: int) -> int:
    if "wrap" in parts:
        start, count = start & 31, count & 31
    return ((1 << min(count, 32)) - 1) << start if start < 32 else 0


def with_carry(opcode: str, bits: Bits, kinds: tuple[str, ...], carry: int) -> tuple[int, int]:
    """Result and carry, or borrow, of an extended-precision instruction."""
    parts = opcode.split(".")
    name, width = parts[0], width_of(parts[-1])
    mask = (1 << width) - 1
    taken = carry if name.endswith("c") else 0
    if name.startswith("sub"):
        value = (bits[0] & mask) - (bits[1] & mask) - taken
        return value & mask, int(value < 0)
    first = bits[0]
    if name.startswith("mad"):
        whole = integer(kinds[0], bits[0]) * integer(kinds[1], bits[1])
        first = whole >> width if "hi" in parts else whole
    value = (first & mask) + (bits[-1] & mask) + taken
    return value & mask, value >> width


# --------------------------------------------------------------------------------------------------------- comparisons


def compared(relation: str, kind: str, bits: Bits, *, flush: bool) -> bool:
    relation = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(relation, relation)
    if kind not in FORMATS:
        a, b = (integer(kind, it) for it in bits[:2])
        return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[relation]
    values = [FORMATS[kind].decode(it) for it in bits[:2]]
    if flush:
        values = [flushed(it, FORMATS[kind]) for it in values]
    if "nan" in values or relation in ("num", "nan"):
        return (
            (relation == "nan" and "nan" in values)
            or (relation == "num" and "nan" not in values)
            or relation.endswith("u")
        )
    a, b = (_ranked(it) for it in values)
    relation = relation.removesuffix("u")
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[relation]


def _ranked(value: Value) -> Fraction:
    return Fraction(2) ** 2000 * (1 if value == "inf" else -1) if value in ("inf", "-inf") else number(value)


# -------------------------------------------------------------------------------------------------------------- floats


def _least(form: Format, a: int, b: int, parts: list[str]) -> int:
    flush = "ftz" in parts
    values = [flushed(it, form) if flush else it for it in (form.decode(a), form.decode(b))]
    if "nan" in values:
        other = [it for it in values if it != "nan"]
        return form.encode(other[0] if other and "NaN" not in parts else "nan")
    order = sorted(values, key=lambda it: (_ranked(it), 0 if it == "-0" else 1))
    return form.encode(order[0 if parts[0] == "min" else 1])


def _finished(value: Value, form: Format, parts: list[str], how: str) -> int:
    """The bits of a result, rounded, then flushed and clamped as its modifiers say."""
    bits = form.encode(value, how)
    if "ftz" in parts:
        bits = form.encode(flushed(form.decode(bits), form))
    back = form.decode(bits)
    if "sat" in parts:
        inside = back != "nan" and not numbers.negative(back) and back != 0
        bits = form.encode(min(_ranked(back), Fraction(1))) if inside else 0
    if "relu" in parts and back != "nan" and (numbers.negative(back) or not number(back) if back != "inf" else False):
        bits = 0
    return bits


def _rounding(parts: list[str]) -> str:
    return next((f".{part}" for part in parts if f".{part}" in ROUNDINGS), ".rn")


def float_value(opcode: str, bits: Bits) -> int:
    """The exact result of a floating-point instruction on one format, as bits; NaN is the canonical one."""
    parts = opcode.split(".")
    name, kind = parts[0], parts[-1]
    if kind.endswith("x2"):
        one = opcode.removesuffix("x2")
        halves = [float_value(one, tuple(it >> shift & 0xFFFF for it in bits)) for shift in (0, 16)]
        return halves[0] | halves[1] << 16
    form, how = FORMATS[kind], _rounding(parts)
    sign = 1 << form.width - 1
    v = [flushed(it, form) if "ftz" in parts else it for it in map(form.decode, bits)]
    if name in ("min", "max"):
        return _least(form, bits[0], bits[1], parts)
    if name in ("abs", "neg"):
        plain = form.encode(v[0]) if "ftz" in parts and v[0] != "nan" else bits[0]
        return plain & ~sign if name == "abs" else plain ^ sign
    if name == "copysign":
        return bits[1] & ~sign | bits[0] & sign
    if name == "testp":
        return int(_tested(parts[1], v[0], form))
    if name == "sqrt":
        return _finished(form.decode(root(v[0], form, how)), form, parts, how)
    value = {
        "add": lambda: total(v[0], v[1], how),
        "sub": lambda: total(v[0], numbers.negated(v[1]), how),
        "mul": lambda: product(v[0], v[1]),
        "fma": lambda: total(product(v[0], v[1]), v[2], how),
        "mad": lambda: total(product(v[0], v[1]), v[2], how),
        "div": lambda: ratio(v[0], v[1]),
        "rcp": lambda: ratio(Fraction(1), v[0]),
    }[name]()
    return _finished(value, form, parts, how)


def _tested(test: str, value: Value, form: Format) -> bool:
    small = numbers.finite(value) and 0 < abs(number(value)) < form.smallest_normal
    return {
        "finite": numbers.finite(value),
        "infinite": value in ("inf", "-inf"),
        "number": value != "nan",
        "notanumber": value == "nan",
        "normal": numbers.finite(value) and number(value) != 0 and not small,
        "subnormal": small,
    }[test]


APPROXIMATE: dict[str, tuple[Callable[[float], float], float]] = {
    "rcp": (lambda x: 1 / x, 1),
    "sqrt": (math.sqrt, 1),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 2),
    "sin": (math.sin, 1),
    "cos": (math.cos, 1),
    "lg2": (math.log2, 1),
    "ex2": (lambda x: math.pow(2.0, x), 1),
    "tanh": (math.tanh, 2),
}
"""What a GPU approximates: the function in double precision, and how many units in the last place are allowed."""


# ---------------------------------------------------------------------------------------------------------- conversions


EIGHT = {"e4m3x2": (4, 7), "e5m2x2": (3, 15)}
"""Digits and bias of the eight-bit floats."""


def _eight_values(kind: str) -> dict[int, Value]:
    """Every code of an eight-bit float."""
    digits, bias = EIGHT[kind]
    found: dict[int, Value] = {}
    for code in range(256):
        exponent, fraction = (code & 127) >> digits - 1, code & (1 << digits - 1) - 1
        size = (fraction + (1 << digits - 1 if exponent else 0)) * numbers.power(max(exponent, 1) - bias - digits + 1)
        found[code] = ("-0" if not size else -size) if code & 128 else size
        if kind == "e4m3x2" and code & 127 == 127:
            found[code] = "nan"
        if kind == "e5m2x2" and exponent == 31:
            found[code] = "nan" if fraction else "-inf" if code & 128 else "inf"
    return found


def _to_eight(value: Value, kind: str) -> int:
    """The nearest code, the even one of two that are as near; what is too large becomes the largest number."""
    if value == "nan":
        return 0x7F
    sign = 128 if numbers.negative(value) else 0
    codes = {code: number(it) for code, it in _eight_values(kind).items() if code < 128 and numbers.finite(it)}
    if not numbers.finite(value):
        return max(codes) | sign
    size = abs(number(value))
    return min(codes, key=lambda code: (abs(codes[code] - size), code & 1)) | sign


def eight_bits(parts: list[str], bits: Bits) -> int:
    """cvt to and from pairs of eight-bit floats."""
    to, source = parts[-2], parts[-1]
    if source in EIGHT:
        values = [_eight_values(source)[bits[0] >> shift & 255] for shift in (0, 8)]
    elif source == "f16x2":
        values = [FORMATS["f16"].decode(bits[0] >> shift & 0xFFFF) for shift in (0, 16)]
    else:
        values = [FORMATS["f32"].decode(it) for it in (bits[1], bits[0])]
    if "relu" in parts:
        values = [Fraction(0) if it != "nan" and numbers.negative(it) else it for it in values]
    low, high = (FORMATS["f16"].encode(it) if source in EIGHT else _to_eight(it, to) for it in values)
    return low | high << (16 if source in EIGHT else 8)


def converted(opcode: str, bits: Bits) -> int:
    """cvt with a floating-point type on either side, as bits of the result's width."""
    parts = opcode.split(".")
    to, source = parts[-2], parts[-1]
    if to.endswith("x2"):
        low, high = (converted(opcode.replace("x2", ""), (it,)) for it in (bits[1], bits[0]))
        return low | high << 16
    how = _rounding(parts)
    if source not in FORMATS:
        value: Value = Fraction(integer(source, bits[0]))
        return _finished(value, FORMATS[to], parts, how)
    value = FORMATS[source].decode(bits[0])
    if "ftz" in parts and source == "f32":
        value = flushed(value, FORMATS[source])
    whole = next((WHOLE[f".{part}"] for part in parts if f".{part}" in WHOLE), None)
    if to == "tf32":
        if "relu" in parts and (value == "-0" or (value != "nan" and numbers.negative(value))):
            return 0
        return _tf32(value, bits[0], parts[1])
    if to not in FORMATS:
        return _to_integer(value, to, source, whole or ".rz") & (1 << width_of(to)) - 1
    if whole and numbers.finite(value):
        size = rounded(abs(number(value)), whole, negative=numbers.negative(value))
        value = (
            Fraction(-size if numbers.negative(value) else size)
            if size
            else "-0"
            if numbers.negative(value)
            else Fraction(0)
        )
    modifiers = [part for part in parts if part != "ftz" or to == "f32"]
    return _finished(value, FORMATS[to], modifiers, how)


def _to_integer(value: Value, to: str, source: str, how: str) -> int:
    if value == "nan":
        return 1 << width_of(to) - 1 if 64 in (width_of(to), FORMATS[source].width) else 0
    if not numbers.finite(value):
        return limits(to)[value == "inf"]
    size = rounded(abs(number(value)), how, negative=numbers.negative(value))
    return clamped(-size if numbers.negative(value) else size, to)


def _tf32(value: Value, bits: int, how: str) -> int:
    if value == "nan":
        return 0x7FFFFFFF
    if not numbers.finite(value):
        return bits
    kept = rounded(Fraction(bits & 0x7FFFFFFF, 1 << 13), {"rna": "away", "rn": ".rn", "rz": ".rz"}[how]) << 13
    return kept | bits & 0x80000000
