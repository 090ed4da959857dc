"""Triton kernels with numpy's answers, for the interpreter: one for each group of operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float16]
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n@triton.jit\n"


@dataclass(frozen=True)
class Sample:
    """`kernel(x, y, out, n)` over fp16 x, y and out [n, 16]; `grid` programs; `want` is what out should be."""

    body: str
    want: Callable[[Array, Array], NDArray[np.float64]]
    grid: str = "(1,)"


def source(sample: Sample) -> str:
    lines = "\n".join("    " + line for line in sample.body.strip("\n").splitlines())
    return (
        f"{HEAD}def kernel(x, y, out, n, N: tl.constexpr):\n"
        "    at = tl.arange(0, N)[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
        f"{lines}\n\n\n"
        "def streaming_attention(q, k, v, *, causal=False, block_n=32):\n"
        "    out = torch.zeros_like(q)\n"
        "    n = q.shape[0]\n"
        f"    kernel[{sample.grid}](q, k, out, n, triton.next_power_of_2(n))\n"
        "    return out\n"
    )


def _parted(x: Array, _y: Array) -> NDArray[np.float64]:
    """Each program takes its own way: row r is multiplied by 2 r times, at most four times, and odd rows change sign."""
    rows = np.arange(len(x))
    return np.where(rows % 2 == 1, -1.0, 1.0)[:, None] * x.astype(np.float64) * 2.0 ** np.minimum(rows, 4)[:, None]


SAMPLES = {
    "fold along an axis": Sample(
        "a = tl.load(x + at)\n"
        "b = tl.load(y + at)\n"
        "highest = tl.max(a, 1)[:, None]\n"
        "lowest = tl.min(b, 0)[None, :]\n"
        "tl.store(out + at, highest + lowest + 0.0 * a)\n",
        lambda x, y: x.max(1, keepdims=True).astype(float) + y.min(0, keepdims=True).astype(float),
    ),
    "positions of the largest": Sample(
        "a = tl.load(x + at).to(tl.float32)\n"
        "place = tl.argmax(a, 1)[:, None].to(tl.float32)\n"
        "tl.store(out + at, (place + 0.0 * a).to(tl.float16))\n",
        lambda x, _: np.broadcast_to(x.argmax(1)[:, None], x.shape).astype(float),
    ),
    "running sums": Sample(
        "tl.store(out + at, tl.cumsum(tl.load(x + at).to(tl.float32), 1).to(tl.float16))\n",
        lambda x, _: x.astype(np.float32).cumsum(1).astype(float),
    ),
    "products, transposed and reshaped": Sample(
        "a = tl.load(x + at)\n"
        "b = tl.load(y + at)\n"
        "g = tl.dot(tl.trans(a), b)\n"
        "c = tl.dot(a, g.to(tl.float16))\n"
        "tl.store(out + tl.arange(0, N * 16), tl.reshape(c, (N * 16,)).to(tl.float16))\n",
        lambda x, y: x.astype(float) @ (x.astype(np.float32).T @ y.astype(np.float32)).astype(np.float16).astype(float),
    ),
    "whole numbers": Sample(
        "i = tl.arange(0, N)[:, None] * 16 + tl.arange(0, 16)[None, :] - 200\n"
        "r = (i // 7) + (i % 5) + ((i >> 2) & 3) + tl.where(i < 0, -i, i * 2) % 11\n"
        "tl.store(out + at, r.to(tl.float16))\n",
        lambda x, _: _whole(np.arange(x.size).reshape(x.shape) - 200),
    ),
    "programs that part": Sample(
        "row = tl.program_id(0)\n"
        "d = tl.arange(0, 16)\n"
        "a = tl.load(x + row * 16 + d)\n"
        "for turn in range(0, tl.minimum(row, 4)):\n"
        "    a = a * 2\n"
        "if row % 2 == 1:\n"
        "    a = -a\n"
        "i = row\n"
        "while i > 0:\n"
        "    i -= 1\n"
        "tl.store(out + (row + i) * 16 + d, a)\n",
        _parted,
        grid="(n,)",
    ),
    "several rows a program": Sample(
        "d = tl.arange(0, 16)\n"
        "for row in range(tl.program_id(0), n, tl.num_programs(0)):\n"
        "    tl.store(out + row * 16 + d, tl.load(x + row * 16 + d) + row)\n",
        lambda x, _: x.astype(float) + np.arange(len(x))[:, None],
        grid="(5,)",
    ),
    "atomic sums": Sample(
        "row = tl.program_id(0)\n"
        "d = tl.arange(0, 16)\n"
        "positive = (tl.load(x + row * 16 + d) > 0).to(tl.float16)\n"
        "tl.atomic_add(out + d, positive, mask=d < 8)\n",
        lambda x, _: np.vstack([np.where(np.arange(16) < 8, (x > 0).sum(0), 0.0), np.zeros((len(x) - 1, 16))]),
        grid="(n,)",
    ),
    "taken by index": Sample(
        "a = tl.load(x + at)\n"
        "tl.assume(n > 0)\n"
        "tl.assume(True)\n"
        "back = 15 - tl.arange(0, 16)[None, :] + tl.zeros([N, 16], tl.int32)\n"
        "tl.store(out + at, tl.gather(a, back, 1) + tl.gather(a, tl.argmax(a, 1)[:, None], 1))\n",
        lambda x, _: x[:, ::-1].astype(float) + x.max(1, keepdims=True).astype(float),
    ),
    "undefined lanes": Sample(
        "loaded = tl.load(x + at, mask=at < 8)\ntl.store(out + at, tl.where(loaded == loaded, loaded, 3.0))\n",
        lambda x, _: np.vstack(
            [np.concatenate([x[0, :8].astype(float), np.full(8, 3.0)]), np.full((len(x) - 1, 16), 3.0)]
        ),
    ),
    "functions": Sample(
        "a = tl.load(x + at).to(tl.float32)\n"
        "r = tl.exp(a) + tl.exp2(a) + tl.log(tl.abs(a) + 1.0) + tl.sqrt(tl.abs(a)) + tl.sin(a) * tl.cos(a)\n"
        "tl.store(out + at, tl.clamp(r, -3.0, 5.0).to(tl.float16))\n",
        lambda x, _: _functions(x.astype(float)),
    ),
}


def _whole(i: NDArray[np.int64]) -> NDArray[np.float64]:
    def remainder(a: NDArray[np.int64], b: int) -> NDArray[np.int64]:
        return np.fmod(a, b)

    quotient = (np.sign(i) * (np.abs(i) // 7)).astype(np.int64)
    return (quotient + remainder(i, 5) + ((i >> 2) & 3) + remainder(np.where(i < 0, -i, i * 2), 11)).astype(float)


def _functions(a: NDArray[np.float64]) -> NDArray[np.float64]:
    r = np.exp(a) + 2.0**a + np.log(np.abs(a) + 1) + np.sqrt(np.abs(a)) + np.sin(a) * np.cos(a)
    return np.clip(r, -3, 5)
