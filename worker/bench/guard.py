"""The trusted kernels around a timed call (kernels/measuring/guard.cu), launched on a stream."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from worker.bench.driver import Handle, check
from worker.bench.replay import Module
from worker.gpu.masking import BLOCK, KEY_BYTES, LEAVES, leaf_count

THREADS = 256
STRETCH = 1 << 12
"""Bytes that one block of `differs` looks at, about."""


class Launch:
    """A kernel with its arguments laid out: launching it is one call of the driver, which takes about as long each time."""

    def __init__(self, function: Handle, blocks: int, stream: Handle, *arguments: int | np.uint32) -> None:
        self.values = [
            np.array([value], np.uint32 if isinstance(value, np.uint32) else np.uint64) for value in arguments
        ]
        self.pointers = np.array([each.ctypes.data for each in self.values], np.uint64)
        self.order = (function, blocks, 1, 1, THREADS, 1, 1, 0, stream, self.pointers.ctypes.data, 0)

    def __call__(self) -> None:
        check(cu.cuLaunchKernel(*self.order), "trusted kernel")


def pinned(words: int) -> NDArray[np.uint64]:
    """Words of the host's memory that the device reads and writes at the same address; kept until the process ends."""
    address = int(check(cu.cuMemHostAlloc(8 * words, cu.CU_MEMHOSTALLOC_DEVICEMAP), "allocate"))
    array: NDArray[np.uint64] = np.ctypeslib.as_array((ctypes.c_uint64 * words).from_address(address))
    array[:] = 0
    return array


class Release:
    """Holds the stream until keys are given: `hold` queues it, and what is queued behind it runs from `give` on.

    Keys come to stand in the host's memory when they are given; until then a kernel that outlived its call finds none.
    """

    def __init__(self, guard: Guard, keys: int) -> None:
        self.words = pinned(1 + 2 * keys)
        self.keys = int(check(cu.cuMemAlloc(KEY_BYTES * keys), "allocate"))
        here = self.words.ctypes.data
        self.launch = Launch(guard.functions["released"], 1, guard.stream, here, 0, here + 8, 2 * keys, self.keys)
        self.turn = 0

    def hold(self) -> None:
        self.turn += 1
        self.launch.values[1][0] = self.turn
        self.launch()

    def give(self, keys: bytes) -> None:
        self.words[1:] = np.frombuffer(keys, np.uint64)
        self.words[0] = self.turn  # after the keys: the device takes them once it sees the turn

    def again(self) -> None:
        """Brings the keys that were given last once more, from the host's memory."""
        self.launch()


class Guard:
    """The kernels of one context, and the little memory that they answer in."""

    def __init__(self, image: bytes, stream: Handle) -> None:
        self.functions = Module(image).functions
        self.stream = stream
        self.count = check(cu.cuMemAlloc(4), "allocate")

    def unmask(self, address: int, size: int, first_block: int, key: int) -> Launch:
        """Gives `size` masked bytes at `address` their content; once more, and they are masked again. key: its address."""
        blocks = -(-size // (BLOCK * THREADS))
        return Launch(self.functions["unmask"], blocks, self.stream, address, size, first_block, key)

    def roots(self, spans: Sequence[tuple[int, int]]) -> Roots:
        """The roots of the trees over stretches of memory, each (address, bytes)."""
        return Roots(self, spans)

    def differing(self, address: int, size: int, byte: int) -> int:
        """How many of `size` bytes are not `byte`. Waits for the stream."""
        check(cu.cuMemsetD32Async(self.count, 0, 1, self.stream), "fill")
        blocks = max(1, min(1024, size // STRETCH))
        Launch(self.functions["differs"], blocks, self.stream, address, size, np.uint32(byte), int(self.count))()
        answer = np.empty(1, np.uint32)
        check(cu.cuMemcpyDtoHAsync(answer.ctypes.data, self.count, 4, self.stream), "download")
        check(cu.cuStreamSynchronize(self.stream), "kernel")
        return int(answer[0])


class Roots:
    """The roots of the trees over some stretches of memory, as they were when `launch` was last through."""

    def __init__(self, guard: Guard, spans: Sequence[tuple[int, int]]) -> None:
        self.stream = guard.stream
        nodes = int(check(cu.cuMemAlloc(max(8 * leaf_count(size) // LEAVES for _, size in spans)), "allocate"))
        self.there = int(check(cu.cuMemAlloc(8 * len(spans)), "allocate"))
        self.here = pinned(len(spans))  # a copy to other memory would wait for the stream, which may be held
        self.launches: list[Launch] = []
        for number, (address, size) in enumerate(spans):
            count = leaf_count(size) // LEAVES
            result = self.there + 8 * number
            self.launches += [
                Launch(guard.functions["leaves"], count, self.stream, address, size, nodes),
                Launch(guard.functions["root"], 1, self.stream, nodes, count, result),
            ]

    def launch(self) -> None:
        """Computes them on the stream and copies them to `here`, which is all zeros until they are."""
        self.here[:] = 0
        for launch in self.launches:
            launch()
        check(cu.cuMemcpyDtoHAsync(self.here.ctypes.data, self.there, self.here.nbytes, self.stream), "download")
