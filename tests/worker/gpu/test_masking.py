"""The mask over a timed input and the hash tree over an output; the device's side of both is held against this one on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from worker.gpu.masking import first_blocks, leaf_count, masked, new_key, tree_root

RNG = np.random.default_rng(5)


def test_a_mask_is_taken_off_by_the_same_key_alone() -> None:
    array = RNG.standard_normal((37, 3)).astype(np.float32)
    key = new_key()
    (hidden,) = masked([array], key)
    assert masked([hidden], key)[0].tobytes() == array.tobytes()
    assert masked([hidden], new_key())[0].tobytes() != array.tobytes()


def test_arrays_under_one_key_share_no_part_of_the_keystream() -> None:
    zeros = [np.zeros(size, np.uint8) for size in (33, 32, 100)]
    streams = [part.tobytes() for part in masked(zeros, new_key())]
    blocks = [stream[at : at + 32] for stream in streams for at in range(0, len(stream), 32)]
    assert len({block for block in blocks if len(block) == 32}) == sum(len(block) == 32 for block in blocks)
    assert first_blocks([33, 32, 100]) == [0, 2, 3]


def philox_by_the_book(block: int, key: bytes) -> bytes:
    """Philox4x64-10 in whole numbers, from the paper's definition: what guard.cu computes for one counter."""
    mask = (1 << 64) - 1
    c0, c1, c2, c3 = block + 1, 0, 0, 0
    k0, k1 = (int.from_bytes(key[at : at + 8], "little") for at in (0, 8))
    for _ in range(10):
        high0, low0 = divmod(0xD2E7470EE14C6C93 * c0, 1 << 64)
        high1, low1 = divmod(0xCA5A826395121157 * c2, 1 << 64)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + 0x9E3779B97F4A7C15 & mask, k1 + 0xBB67AE8584CAA73B & mask
    return b"".join(word.to_bytes(8, "little") for word in (c0, c1, c2, c3))


def test_the_keystream_is_philox() -> None:
    key = bytes(range(16))
    (stream,) = masked([np.zeros(96, np.uint8)], key)
    assert stream.tobytes() == b"".join(philox_by_the_book(block, key) for block in range(3))


@pytest.mark.parametrize("size", [1, 4, 8191, 8192, 8196, 50_000])
def test_every_byte_of_an_output_changes_its_root(size: int) -> None:
    data = RNG.integers(0, 256, size, dtype=np.uint8)
    root = tree_root(data)
    assert leaf_count(size) * 4 >= size
    for at in {0, size // 2, size - 1}:
        other: NDArray[np.uint8] = data.copy()
        other[at] ^= 1
        assert tree_root(other) != root
    assert tree_root(data) == root


def test_outputs_that_change_places_have_another_root() -> None:
    data = RNG.integers(0, 1 << 32, 4096, dtype=np.uint32)
    assert tree_root(data) != tree_root(data[::-1].copy())
    assert tree_root(data) != tree_root(np.roll(data, 2048))
