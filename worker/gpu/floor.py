"""The least time that a call can take on a card: its operations on the fastest pipe that its dtype permits, its inputs read
once.

A time below is no speed. It is kept from every board until an administrator has looked at it.
"""

from __future__ import annotations

from dataclasses import dataclass

TENSOR_FLOPS = {
    70: (1024, 128, 64),
    72: (1024, 128, 64),
    75: (1024, 128, 4),
    80: (2048, 1024, 128),
    86: (1024, 512, 4),
    87: (2048, 1024, 4),
    89: (2048, 512, 4),
    90: (4096, 2048, 256),
    100: (8192, 4096, 256),
    103: (8192, 4096, 256),
    120: (2048, 512, 4),
}
"""Dense floating-point operations a multiprocessor ends in a clock at best: with 16-bit operands, with float32 (as TF32 where
tensor cores take it), and with float64. NVIDIA's architecture white papers; the higher figure where a family has two."""
UNKNOWN = (16384, 8192, 512)
"""A card newer than the table: above every figure in it, so that no honest time is held back."""
SLACK = 0.95
"""Clocks may be a little above what the driver calls the highest."""
_COLUMN = {"float16": 0, "bfloat16": 0, "float32": 1, "float64": 2}


@dataclass(frozen=True)
class Card:
    """capability: 90 for 9.0. clock_hz: the highest SM clock. bandwidth: bytes a second; 0 where it is not known."""

    capability: int
    multiprocessors: int
    clock_hz: float
    bandwidth: float


def floor_ms(card: Card, dtype: str, flops: float, read: int) -> float:
    """Milliseconds below which no call of `flops` operations that reads `read` bytes of inputs can be; 0 where nothing is
    known.
    """
    rate = TENSOR_FLOPS.get(card.capability, UNKNOWN)[_COLUMN[dtype]] if dtype in _COLUMN else 0
    speed = rate * card.multiprocessors * card.clock_hz
    computing = flops / speed if speed else 0.0
    reading = read / card.bandwidth if card.bandwidth else 0.0
    return 1e3 * SLACK * max(computing, reading)


def impossible(ms: float, floor: float) -> str:
    """Why a time is held back, or ''."""
    if ms >= floor:
        return ""
    return (
        f"A call took {ms:.5f} ms; this card cannot do the stage's operations, or read its inputs, in less than "
        f"{floor:.5f} ms. An administrator looks at it before it counts."
    )
