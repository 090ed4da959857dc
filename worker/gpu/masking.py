"""The host's side of kernels/measuring/guard.cu: the mask over a timed input, and the hash tree over an output.

A timed input is uploaded under a keystream and unmasked on the device when its call starts, so nothing that runs there before
can compute with it. The root of the tree over an output is known to the host when the clock stops; outputs that are fetched
afterwards must have it. Together they make the host's interval an upper bound of when the work was done, whatever device code
does to events, to completion marks of the driver or to a kernel that is thought to have ended.
"""

from __future__ import annotations

import secrets
from functools import cache

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 16
BLOCK = 32
"""Bytes that one Philox counter gives."""
LEAVES = 2048
"""Words under one node of the device's first kernel."""
_FACTOR, _STEP = np.uint64(0xD6E8FEB86659FD93), np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def padded(size: int) -> int:
    """Bytes of whole blocks that hold `size` bytes."""
    return -(-size // BLOCK) * BLOCK


def masked(arrays: list[NDArray[np.generic]], key: bytes) -> list[NDArray[np.uint8]]:
    """The bytes of each array under the keystream, one array after the other, each from a new block on."""
    total = sum(padded(array.nbytes) for array in arrays)
    words = np.random.Philox(key=np.frombuffer(key, np.uint64)).random_raw(total // 8)
    stream = words.view(np.uint8)
    made, at = [], 0
    for array in arrays:
        plain = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        made.append(plain ^ stream[at : at + plain.size])
        at += padded(plain.size)
    return made


def first_blocks(sizes: list[int]) -> list[int]:
    """The number of the keystream's block that each array of `sizes` bytes begins with."""
    starts = np.cumsum([0, *(padded(size) // BLOCK for size in sizes)])
    return [int(start) for start in starts[: len(sizes)]]


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x ^ (x >> _HALF)
    x *= _FACTOR
    x ^= x >> _HALF
    x *= _FACTOR
    x ^= x >> _HALF
    return x


@cache
def _positions(leaves: int) -> NDArray[np.uint64]:
    at = np.arange(leaves, dtype=np.uint64)
    return at ^ ((at >> _HALF) << np.uint64(1))


def leaf_count(size: int) -> int:
    """Leaves of the tree over `size` bytes: a power of two, at least 2048."""
    words = max(LEAVES, -(-size // 4))
    return 1 << (words - 1).bit_length()


def tree_root(output: NDArray[np.generic]) -> int:
    """The root of the tree over an output's bytes, as guard.cu computes it."""
    data = np.ascontiguousarray(output).reshape(-1).view(np.uint8)
    leaves = leaf_count(data.size)
    words = np.zeros(leaves, np.uint64)
    whole = data.size // 4
    words[:whole] = data[: 4 * whole].view("<u4")
    if data.size % 4:
        words[whole] = int.from_bytes(data[4 * whole :].tobytes(), "little")
    words <<= _HALF
    words ^= _positions(leaves)
    nodes = _mixed(words)
    while nodes.size > 1:
        nodes = _mixed(nodes[0::2] ^ _mixed(nodes[1::2] + _STEP))
    return int(nodes[0])
