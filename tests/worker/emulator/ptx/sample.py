"""A kernel in PTX with the words that each of its threads must write."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

LANES = 32
RNG = random.Random(5)  # noqa: S311 - the same words in every run
GIVEN = [RNG.getrandbits(64) for _ in range(1024)]
GIVEN[0], GIVEN[9] = 0, GIVEN[8]  # for the edges of inc and dec
WORDS = 64
"""What each kernel may write, for every lane."""
Lanes = list[int]


def low(value: int, width: int) -> int:
    return value & (1 << width) - 1


def signed(value: int, width: int) -> int:
    value = low(value, width)
    return value - (1 << width) if value >> width - 1 else value


@dataclass(frozen=True)
class Sample:
    """A kernel's body and what word `at` of a lane must be. %in and %out point at the lane's first word; %t is its number.

    before: declarations outside the kernel. wanted: by lane, the words. launch: how it is started.
    """

    name: str
    body: str
    wanted: Callable[[int], Lanes]
    before: str = ""
    launch: tuple[int, int, bool] = (1, LANES, False)

    def text(self) -> str:
        return (
            f"{self.before}\n.visible .entry {self.name}(.param .u64 {self.name}_in, .param .u64 {self.name}_out) {{\n"
            ".reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<16>; .reg .f32 %f<8>; .reg .f64 %g<8>;\n"
            ".reg .b32 %t; .reg .b64 %in, %out;\n"
            f"ld.param.u64 %in, [{self.name}_in]; ld.param.u64 %out, [{self.name}_out];\n"
            f"mov.u32 %t, %tid.x; mul.wide.u32 %d0, %t, {8 * WORDS}; add.s64 %out, %out, %d0;\n"
            f"mul.wide.u32 %d0, %t, 64; add.s64 %in, %in, %d0;\n{self.body}\nret;\n}}\n"
        )


def given(lane: int, at: int) -> int:
    """Word `at` of the eight that belong to a lane."""
    return GIVEN[8 * lane + at]
