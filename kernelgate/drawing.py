"""Sizes for cases that a stage draws: of every kind that a kernel or a formula could treat apart."""

from __future__ import annotations

import math

from numpy.random import Generator

KINDS = ("any", "odd", "even", "prime", "one below", "one above", "multiple")


def _prime(size: int) -> int:
    """The largest prime up to `size`; 2 where there is none."""
    return next((n for n in range(size, 2, -1) if all(n % d for d in range(2, math.isqrt(n) + 1))), 2)


def _near(size: int, kind: str, tile: int) -> int:
    """A size near `size` of a kind; the last three kinds speak of multiples of `tile`."""
    match kind:
        case "odd":
            return size | 1
        case "even":
            return size & ~1
        case "prime":
            return _prime(size)
        case "one below":
            return -(-size // tile) * tile - 1
        case "one above":
            return size // tile * tile + 1
        case "multiple":
            return -(-size // tile) * tile
        case _:
            return size


def sizes(rng: Generator, count: int, least: int, most: int, tile: int = 32) -> list[int]:
    """`count` sizes from `least` (at least 1) to `most`, small ones as likely as large ones; any seven are of all kinds."""
    kinds = [kind for _ in range(0, count, len(KINDS)) for kind in rng.permutation(KINDS)]
    drawn = [round(math.exp(rng.uniform(math.log(least), math.log(most)))) for _ in range(count)]
    return [min(max(_near(size, str(kind), tile), least), most) for size, kind in zip(drawn, kinds, strict=False)]
