"""Raw arrays that came out of a sandbox, turned into numbers on the trusted side.

A tensor travels as its name, dtype, shape and bytes. All four are the submission's word: the shape is bounded before
anything is allocated, and the bytes must be exactly as many as shape and dtype say. There is no pickle anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

STORED: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in ("float64", "float32", "float16", "bool")},
    **{f"{sign}{bits}": np.dtype(f"{sign}{bits}") for sign in ("int", "uint") for bits in (8, 16, 32, 64)},
    "bfloat16": np.dtype("uint16"),
}
"""What numpy keeps the values of a dtype in; it has no bfloat16, whose bits travel."""
ITEM_SIZE = {name: stored.itemsize for name, stored in STORED.items()}
MAX_RANK = 8

Float64 = NDArray[np.float64]
Array = NDArray[Any]
"""Of whatever dtype a case gives it."""


class MalformedTensorError(ValueError):
    """A tensor whose name, dtype, shape and bytes do not fit together; the text says how."""


@dataclass(frozen=True)
class RawTensor:
    """A tensor as it came: little-endian, row-major bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        expected = byte_count(self.dtype, self.shape)
        if len(self.data) != expected:
            raise MalformedTensorError(f"{self.dtype}{list(self.shape)} takes {expected} bytes; {len(self.data)} came")

    def numbers(self) -> Float64:
        """The values in float64 [shape]; exact for every dtype but whole numbers of 64 bits beyond 2^53."""
        stored = np.frombuffer(self.data, dtype=STORED[self.dtype].newbyteorder("<")).reshape(self.shape)
        return numbers_of(stored, self.dtype)


def numbers_of(stored: Array, dtype: str) -> Float64:
    """The float64 values of an array that is stored as `STORED` says."""
    if dtype == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return stored.astype(np.float64)


def stored_as(values: Array, dtype: str) -> Array:
    """Values rounded to a dtype, as `STORED` keeps them; to bfloat16 to the nearest, ties to even."""
    if dtype != "bfloat16":
        return values.astype(STORED[dtype])
    single = np.ascontiguousarray(values, np.float32)
    bits = single.view(np.uint32)
    rounded = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)
    return np.where(np.isnan(single), np.uint16(0x7FC0), rounded)


def byte_count(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor. Raises MalformedTensorError for an unknown dtype, a negative size or more than 8 dimensions."""
    if dtype not in ITEM_SIZE:
        raise MalformedTensorError(f"dtype {dtype[:40]!r}: known are {', '.join(ITEM_SIZE)}")
    if len(shape) > MAX_RANK or any(size < 0 for size in shape):
        raise MalformedTensorError(f"shape {list(shape)[:20]}: at most {MAX_RANK} sizes, none negative")
    return math.prod(shape) * ITEM_SIZE[dtype]
