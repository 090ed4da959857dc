"""The kernels of the folder `public`, in the manner of public ones, with their inputs and what numpy says about them.

Each file has one seam, `NAME(const float* x, float* y, int n, cudaStream_t stream)`. Where sums are of whole numbers, they are
exact in any order, and the answer has to be equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import erf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Wide = NDArray[np.float64]
FOLDER = Path(__file__).parent / "public"


@dataclass(frozen=True)
class Public:
    """One file. inputs: x. count: values of y. expected: what y must be; NaN: anything. tolerance: relative to the largest."""

    name: str
    inputs: Callable[[np.random.Generator], Floats]
    count: int
    expected: Callable[[Floats], Wide]
    tolerance: float = 0.0

    @property
    def source(self) -> str:
        return (FOLDER / f"{self.name}.cu").read_text()

    def wrong(self, x: Floats, y: Floats) -> str:
        """The first value that differs, or ""."""
        want = self.expected(x).reshape(-1)
        known = ~np.isnan(want)
        limit = self.tolerance * float(np.abs(want[known]).max())
        bad = np.flatnonzero(known & ~(np.abs(y.astype(np.float64) - want) <= limit))
        if not bad.size:
            return ""
        at = bad[0]
        return f"y[{at}] is {y[at]}, not {want[at]}; {bad.size} of {want.size} differ"


def whole(low: int, high: int, count: int) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: rng.integers(low, high, count).astype(np.float32)


def normal(count: int) -> Callable[[np.random.Generator], Floats]:
    return lambda rng: rng.standard_normal(count).astype(np.float32)


def joined(*parts: NDArray[np.generic]) -> Wide:
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])


# ---------------------------------------------------------------------------------------------------------------- answers


def reductions(x: Floats) -> Wide:
    def blocks(count: int, per: int) -> Wide:
        padded = np.zeros(count * per)
        padded[: min(x.size, padded.size)] = x[: padded.size]
        return padded.reshape(count, per).sum(axis=1)

    def strided(blocks: int, threads: int, each: int = 1) -> Wide:
        owner = np.arange(x.size) // (threads * each) % blocks
        return np.array([x[owner == block].sum(dtype=np.float64) for block in range(blocks)])

    per = strided(4, 128)
    return joined(
        blocks(8, 128),
        blocks(8, 128),
        blocks(4, 256),
        strided(4, 128, 2),
        per,
        per,
        per,
        per,
        [x.sum(dtype=np.float64)],
    )


def transposes(x: Floats) -> Wide:
    return np.tile(x.reshape(-1, 40).T.reshape(-1).astype(np.float64), 4)


def matmuls(x: Floats) -> Wide:
    a, b = x.astype(np.float64).reshape(2, 32, 32)
    product = a @ b
    return joined(product, product, product, 2 * product + 1, 2 * product + 1, product)


def mma_gemm(x: Floats) -> Wide:
    a, b = x.astype(np.float64).reshape(2, 64, 64)
    return joined(a @ b)


def cub_blocks(x: Floats) -> Wide:
    warps = x[:64].reshape(2, 32).astype(np.float64)
    before = np.cumsum(warps, axis=1) - warps
    return joined(np.cumsum(x), np.sort(x), [x.max()], warps.sum(axis=1), before)


def cub_device(x: Floats) -> Wide:
    return joined(np.cumsum(x), np.sort(x), 2 * x)


def groups(x: Floats) -> Wide:
    v = x[:64].astype(np.int64)
    tiles = x[:256].reshape(2, 128)
    parts: list[list[float]] = []
    for first in (0, 32):
        w = v[first : first + 32]
        for lane in range(32):
            odd = (w & 1) == (w[lane] & 1)
            parts.append(
                [
                    float(w[(w & 3) == (w[lane] & 3)].sum()),
                    float(odd.sum() * 1000 + odd[:lane].sum()),
                    float(w[:lane].sum()),
                    float(w[: lane + 1].sum() + (w > 90).any() + 10 * (w > 50).sum()),
                ]
            )
    turned = (x + 1)[::-1].astype(np.float64)
    turned[0] = -1
    positive = np.zeros(x.size)
    positive[: (x > 0).sum()] = 1
    pairs = np.stack([tiles.sum(axis=1), tiles.max(axis=1)], axis=1)
    return joined(pairs, positive, np.array(parts), x[:128][::-1], turned)


def histograms(x: Floats) -> Wide:
    return np.tile(np.bincount(x.astype(np.int64) % 64, minlength=64).astype(np.float64), 4)


def scans(x: Floats) -> Wide:
    before = np.cumsum(x[:128]) - x[:128]
    return joined(before, before, np.cumsum(x), np.cumsum(x))


def softmaxes(x: Floats) -> Wide:
    rows = x.astype(np.float64).reshape(-1, 128)
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.tile((powers / powers.sum(axis=1, keepdims=True)).reshape(-1), 4)


def norms(x: Floats) -> Wide:
    rows = x.astype(np.float64).reshape(-1, 192)
    layer = (rows - rows.mean(axis=1, keepdims=True)) / np.sqrt(rows.var(axis=1, keepdims=True) + 1e-5)
    return joined(layer, layer, layer, rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + 1e-5))


def flash(x: Floats) -> Wide:
    q, k, v = x.astype(np.float16).astype(np.float64).reshape(3, -1, 64)
    scores = np.where(np.tri(len(q), dtype=bool), q @ k.T / 8, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return joined(powers @ v / powers.sum(axis=1, keepdims=True))


def atomics(x: Floats) -> Wide:
    fours = x[: x.size // 4 * 4].reshape(-1, 4).sum(axis=0)
    first = [x.max(), x.min(), x.sum(), 0.0, *fours, *fours[:2], 1, 64, 500, 1, 1, 1]
    return joined(first[:10], first[10:], [0] * 4, [(x > 0).sum(), x.size / 2, 64, 128], [0] * 8)


def _nearest(x: Floats, digits: int, smallest: int, most: float) -> Wide:
    """Rounded to a format of that many digits, whose smallest exponent is stated; what is too large becomes the largest."""
    wide = np.abs(x.astype(np.float64))
    exponent = np.maximum(np.frexp(np.where(wide == 0, 1, wide))[1] - 1, smallest)
    step = 2.0 ** (exponent - digits + 1)
    return np.sign(x) * np.minimum(np.rint(wide / step) * step, most)


def _brain(x: Wide) -> Floats:
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def formats(x: Floats) -> Wide:
    e4m3, e5m2 = _nearest(x, 4, -6, 448), _nearest(x, 3, -14, 57344)
    a = x.astype(np.float16)
    b = np.roll(a, -1)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    fused = (wide_a * wide_b + (a * np.float16(2)).astype(np.float64)).astype(np.float16)
    half = (wide_a * 0.5 + wide_a).astype(np.float16)
    larger = np.maximum(a, b).astype(np.float64) + 100 * (a > b) + 1000
    powers = np.exp((a / np.float16(64)).astype(np.float64))
    whole = np.rint(wide_a) + np.trunc(np.abs(wide_b)) + (b > 0.5)
    roots = np.sqrt(np.abs(a)).astype(np.float64) + np.rint(b) + np.minimum(a, np.float16(0.5))
    p = _brain(x.astype(np.float64))
    q = (np.roll(x, -1).view(np.uint32) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    total = _brain(p.astype(np.float64) + q)
    product = _brain(p.astype(np.float64) * q + p)
    most = np.maximum(p, q).astype(np.float64) + 512 * (p < q)
    squares = _brain(p.astype(np.float64) ** 2).astype(np.float64) + _brain(q.astype(np.float64) ** 2)
    return joined(e4m3, e5m2, e4m3, fused, half, larger, powers, whole, roots, total, product, most, squares)


def async_copies(x: Floats) -> Wide:
    sums = x.reshape(-1, 64).sum(axis=0)
    return joined(sums[::-1], x + 1, sums)


def clustered(x: Floats) -> Wide:
    return joined(np.bincount(x.astype(np.int64) % 64, minlength=64), x[:256].reshape(2, 128).sum(axis=1))


def votes(x: Floats) -> Wide:
    kept = np.zeros(x.size)
    kept[: (x > 0).sum()] = x[x > 0]
    v, lane = x[:32], np.arange(32)
    inside = v > 0
    first = inside.sum() + 100 * inside.any() + 1000 * (not inside.any())
    peers = [float(sum(1 << int(it) for it in lane[lane // 5 == one // 5])) for one in lane]
    same = int(inside.all() or not inside.any())
    shuffled = v[lane ^ 1] * 0.5 + np.where(lane % 8 >= 3, lane - 3, lane) + np.where(lane < 30, lane + 2, lane)
    elected = np.where(lane == 0, 7, 9)
    floats = np.array(peers).astype(np.float32)
    return joined(
        kept, [(x > 0).sum()], [first] * 32, floats, elected, [v.max()] * 32, [same + 2 + 4 + 56] * 32, shuffled
    )


def functions(x: Floats) -> Wide:
    at = np.arange(x.size)
    by = np.array([1.0, 2.0, -3.0, 4.0])[at % 4]
    called = np.choose(at % 3, [x + by, x - by, x * by])
    areas = np.where(at % 2, x * x, 3 * x)
    numbers = np.array([0, 1, 1, 2, 3, 5, 8, 13, 21, 34])[at % 10]
    return joined(called, areas, numbers, ((np.arange(64) + 7.0) ** 2 + 5) * 0.5)


def numerics(x: Floats) -> Wide:
    wide = x.astype(np.float64)
    bodies = wide[:256].reshape(64, 4)
    apart = bodies[None, :, :3] - bodies[:, None, :3]
    strength = bodies[None, :, 3] * ((apart**2).sum(axis=2) + 0.1) ** -1.5
    pulls = (apart * strength[:, :, None]).sum(axis=1)
    prices = 20 + np.abs(wide[:256])
    d1 = (np.log(prices / 25) + (0.02 + 0.045) * 1.5) / (0.3 * 1.5**0.5)
    called = prices * _normal(d1) - 25 * np.exp(-0.03) * _normal(d1 - 0.3 * 1.5**0.5)
    spectrum = np.fft.fft(wide[:64])
    weights = np.array([1, 2, 3, 4, 3, 2, 1.0])
    smooth = np.stack([np.convolve(row, weights, "same") for row in wide[:200].reshape(2, 100)])
    counts = np.array([[_escape(-2 + 3 * i / 32, -1 + 2 * j / 32) for i in range(32)] for j in range(32)])
    return joined(pulls, called, np.stack([spectrum.real, spectrum.imag], 1), smooth, np.sort(x[:256]), counts)


def _normal(d: Wide) -> Wide:
    return np.array([0.5 * (1 + erf(it / 2**0.5)) for it in d])


def _escape(cx: float, cy: float) -> int:
    z, k = 0j, 0
    while k < 50 and z.real * z.real + z.imag * z.imag < 4:
        z, k = complex(z.real * z.real - z.imag * z.imag + cx, 2 * z.real * z.imag + cy), k + 1
    return k


PUBLIC = [
    Public("reductions", whole(-50, 50, 1000), 41, reductions),
    Public("transposes", whole(-1000, 1000, 40 * 37), 4 * 40 * 37, transposes),
    Public("matmuls", whole(-4, 5, 2 * 32 * 32), 6 * 32 * 32, matmuls),
    Public("mma_gemm", whole(-4, 5, 2 * 64 * 64), 64 * 64, mma_gemm),
    Public("cub_blocks", whole(0, 100, 256), 2 * 256 + 1 + 2 + 64, cub_blocks),
    Public("cub_device", whole(0, 100, 1500), 3 * 1500, cub_device),
    Public("groups", whole(-99, 100, 300), 4 + 300 + 256 + 128 + 300, groups),
    Public("histograms", whole(0, 1000, 1000), 4 * 64, histograms),
    Public("scans", whole(-50, 50, 1024), 256 + 2 * 1024, scans),
    Public("softmaxes", normal(9 * 128), 4 * 9 * 128, softmaxes, 2e-6),
    Public("norms", normal(5 * 192), 4 * 5 * 192, norms, 1e-5),
    Public("flash", normal(3 * 96 * 64), 96 * 64, flash, 2e-3),
    Public("atomics", whole(-20, 20, 200), 32, atomics),
    Public("formats", normal(200), 13 * 200, formats, 5e-4),
    Public("async_copies", whole(-50, 50, 1024), 64 + 1024 + 64, async_copies),
    Public("clustered", whole(0, 1000, 500), 66, clustered),
    Public("votes", whole(-50, 50, 300), 301 + 6 * 32, votes),
    Public("functions", whole(-50, 50, 150), 3 * 150 + 64, functions),
    Public("numerics", normal(300), 192 + 256 + 128 + 200 + 256 + 1024, numerics, 2e-6),
]
BY_NAME: Mapping[str, Public] = {it.name: it for it in PUBLIC}
