"""Raw arrays that came out of a sandbox, turned into numbers on the trusted side.

A tensor travels as its name, dtype, shape and bytes. All four are the submission's word: the shape is bounded before
anything is allocated, and the bytes must be exactly as many as shape and dtype say. There is no pickle anywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ITEM_SIZE = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "uint32": 4,
    "uint8": 1,
    "bool": 1,
}
MAX_RANK = 8

Float64 = NDArray[np.float64]


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
        """The values in float64 [shape]; exact for every dtype but int64 beyond 2^53."""
        if self.dtype == "bfloat16":
            high = np.frombuffer(self.data, dtype="<u2").astype(np.uint32) << 16
            values = high.view(np.float32)
        else:
            values = np.frombuffer(self.data, dtype=np.dtype(self.dtype).newbyteorder("<"))
        return values.astype(np.float64).reshape(self.shape)


def byte_count(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor. Raises MalformedTensorError for an unknown dtype, a negative size or more than 8 dimensions."""
    if dtype not in ITEM_SIZE:
        raise MalformedTensorError(f"dtype {dtype[:40]!r}: known are {', '.join(ITEM_SIZE)}")
    if len(shape) > MAX_RANK or any(size < 0 for size in shape):
        raise MalformedTensorError(f"shape {list(shape)[:20]}: at most {MAX_RANK} sizes, none negative")
    return math.prod(shape) * ITEM_SIZE[dtype]
