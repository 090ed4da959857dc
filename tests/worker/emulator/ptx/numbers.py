"""Floating-point formats in exact arithmetic: what an instruction must give, worked out with fractions and no float.

A value is a Fraction, or one of "nan", "inf", "-inf", "-0"; the number zero is +0. Bits are Python integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import isqrt

Value = Fraction | str
NEAREST, ZERO, DOWN, UP = ".rn", ".rz", ".rm", ".rp"


@dataclass(frozen=True)
class Format:
    """An IEEE format. width: bits in all; digits: bits of precision, the hidden one included."""

    width: int
    digits: int

    @property
    def bias(self) -> int:
        return (1 << self.width - self.digits - 1) - 1

    @property
    def infinity(self) -> int:
        return ((1 << self.width - self.digits) - 1) << self.digits - 1

    @property
    def smallest_normal(self) -> Fraction:
        return power(1 - self.bias)

    @lru_cache(1 << 14)  # noqa: B019 - four formats, which live as long as the tests
    def decode(self, bits: int) -> Value:
        sign = bits >> self.width - 1
        exponent = bits >> self.digits - 1 & (1 << self.width - self.digits) - 1
        fraction = bits & (1 << self.digits - 1) - 1
        if exponent == (1 << self.width - self.digits) - 1:
            return "nan" if fraction else "-inf" if sign else "inf"
        whole = fraction + (1 << self.digits - 1) if exponent else fraction
        value = whole * power(max(exponent, 1) - self.bias - self.digits + 1)
        return "-0" if sign and not value else -value if sign else value

    def encode(self, value: Value, how: str = NEAREST) -> int:
        """The bits of a value rounded as `how` says; NaN is the canonical one."""
        if isinstance(value, str):
            sign = 1 << self.width - 1
            return {"nan": (1 << self.width - 1) - 1, "inf": self.infinity, "-inf": self.infinity | sign, "-0": sign}[
                value
            ]
        sign = (1 << self.width - 1) if value < 0 else 0
        size = abs(value)
        if not size:
            return 0
        exponent = max(_exponent(size), 1 - self.bias)
        scaled = size * power(self.digits - 1 - exponent)
        whole = rounded(scaled, how, negative=value < 0)
        # A carry out of the fraction goes on into the exponent, as it does in hardware.
        bits = whole + (exponent + self.bias - 1 << self.digits - 1) if whole >= 1 << self.digits - 1 else whole
        if bits >= self.infinity:
            away = how == NEAREST or (how == UP and value > 0) or (how == DOWN and value < 0)
            bits = self.infinity if away else self.infinity - 1
        return bits | sign


@cache
def power(exponent: int) -> Fraction:
    """A power of two."""
    return Fraction(2) ** exponent


def _exponent(size: Fraction) -> int:
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if size >= power(guess) else guess - 1


def rounded(size: Fraction, how: str, *, negative: bool = False) -> int:
    """A positive number as a whole one; `negative` says which way down and up are. "away" breaks ties away from zero."""
    low, rest = divmod(size.numerator, size.denominator)
    if not rest or how == ZERO:
        return low
    if how in (DOWN, UP):
        return low + ((how == UP) != negative)
    twice = 2 * rest - size.denominator
    return low + (twice > 0 or (twice == 0 and (how == "away" or low & 1 == 1)))


F16, BF16, F32, F64 = Format(16, 11), Format(16, 8), Format(32, 24), Format(64, 53)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def negative(value: Value) -> bool:
    return value in ("-0", "-inf") if isinstance(value, str) else value < 0


def negated(value: Value) -> Value:
    if isinstance(value, str):
        return {"nan": "nan", "inf": "-inf", "-inf": "inf", "-0": Fraction(0)}[value]
    return -value if value else "-0"


def number(value: Value) -> Fraction:
    """A finite value as a fraction, -0 as 0."""
    return Fraction(0) if value == "-0" else Fraction(value)


def finite(value: Value) -> bool:
    return value not in ("nan", "inf", "-inf")


def total(a: Value, b: Value, how: str = NEAREST) -> Value:
    if "nan" in (a, b) or {a, b} == {"inf", "-inf"}:
        return "nan"
    if not finite(a) or not finite(b):
        return b if finite(a) else a
    found = number(a) + number(b)
    if found:
        return found
    if negative(a) and negative(b):
        return "-0"
    both_positive_zero = not negative(a) and not negative(b)
    return "-0" if how == DOWN and not both_positive_zero else Fraction(0)


def product(a: Value, b: Value) -> Value:
    sign = negative(a) != negative(b)
    if "nan" in (a, b):
        return "nan"
    if not finite(a) or not finite(b):
        zero = any(finite(it) and not number(it) for it in (a, b))
        return "nan" if zero else "-inf" if sign else "inf"
    found = number(a) * number(b)
    return found if found else "-0" if sign else found


def ratio(a: Value, b: Value) -> Value:
    sign = negative(a) != negative(b)
    if "nan" in (a, b) or (not finite(a) and not finite(b)):
        return "nan"
    if not finite(b):
        return "-0" if sign else Fraction(0)
    if not finite(a) or not number(b):
        return "nan" if finite(a) and not number(a) else "-inf" if sign else "inf"
    return number(a) / number(b) if number(a) else "-0" if sign else Fraction(0)


def root(value: Value, form: Format, how: str) -> int:
    """The bits of a square root."""
    if value in ("-0", "inf") or value == 0:
        return form.encode(value)
    if value == "nan" or negative(value):
        return form.encode("nan")
    exact = number(value)
    # Enough bits that what is left over decides every rounding: an odd last bit stands for it.
    shift = 2 * (form.digits + 4) + max(0, -2 * _exponent(exact)) + 60
    shift += shift & 1
    scaled = exact * 2**shift
    whole = isqrt(scaled.numerator // scaled.denominator)
    if whole * whole * scaled.denominator != scaled.numerator:
        whole = 2 * whole + 1
        return form.encode(Fraction(whole, 2 ** (shift // 2 + 1)), how)
    return form.encode(Fraction(whole, 2 ** (shift // 2)), how)


def flushed(value: Value, form: Format) -> Value:
    """A subnormal as a zero of its sign."""
    if isinstance(value, str) or not value or abs(value) >= form.smallest_normal:
        return value
    return "-0" if value < 0 else Fraction(0)
