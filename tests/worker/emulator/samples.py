"""The kernels of `kernels/`, each with its inputs and what numpy says about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]
KERNELS = Path(__file__).parent / "kernels"
CTYPES = {"float32": "float", "float16": "__half", "int32": "int", "uint32": "unsigned", "uint16": "__nv_bfloat16"}


@dataclass(frozen=True)
class Sample:
    """One kernel file. outputs: shape and dtype by parameter; expected: of the named outputs that are compared.

    tolerance: relative to the largest expected value; 0 asks for equality, which holds where the order of arithmetic is fixed.
    portable: whether a GPU gives the same answer; not where the kernel's values are the device's own.
    """

    name: str
    inputs: Callable[[np.random.Generator], Arrays]
    outputs: Mapping[str, tuple[int, str]]
    expected: Callable[[Arrays], Arrays]
    values: Mapping[str, float] = field(default_factory=dict)
    tolerance: float = 0.0
    portable: bool = True

    @property
    def source(self) -> str:
        return (KERNELS / f"{self.name}.cu").read_text()

    def signature(self, inputs: Arrays) -> str:
        """The seam's C++ signature: inputs, outputs, numbers, stream."""
        parts = [f"const {CTYPES[str(array.dtype)]}* {name}" for name, array in inputs.items()]
        parts += [f"{CTYPES[dtype]}* {name}" for name, (_, dtype) in self.outputs.items()]
        parts += [f"{'float' if isinstance(value, float) else 'int'} {name}" for name, value in self.values.items()]
        return f'extern "C" void {self.name}({", ".join([*parts, "cudaStream_t stream"])})'

    def made(self, seed: int = 7) -> Arrays:
        return self.inputs(np.random.default_rng(seed))

    def wrong(self, inputs: Arrays, written: Mapping[str, bytes]) -> str:
        """What differs from numpy, or ""."""
        for name, want in self.expected(inputs).items():
            got = np.frombuffer(written[name], dtype=self.outputs[name][1])[: want.size].reshape(want.shape)
            if self.tolerance == 0:
                bad = np.flatnonzero(got != want.astype(got.dtype))
            else:
                limit = self.tolerance * np.abs(want.astype(np.float64)).max()
                bad = np.flatnonzero(~(np.abs(got.astype(np.float64) - want) <= limit))
            if bad.size:
                at = bad[0]
                return f"{name}[{at}] is {got.flat[at]}, not {want.flat[at]}; {bad.size} of {want.size} differ"
        return ""


def normal(*shape: int) -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.standard_normal(shape).astype(np.float32)


def integers(low: int, high: int, *shape: int, dtype: str = "int32") -> Callable[[np.random.Generator], Array]:
    return lambda rng: rng.integers(low, high, shape).astype(dtype)


def arrays(**makers: Callable[[np.random.Generator], Array]) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: {name: make(rng) for name, make in makers.items()}


def bf16(values: Array) -> Array:
    """float32 values rounded to nearest even bfloat16, as their bits."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _softmax(x: Array) -> Array:
    shifted = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def _layer_norm(a: Arrays) -> Arrays:
    x = a["x"].astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return {"y": centred * scale * a["gain"] + a["shift"]}


def _stencil(a: Arrays) -> Arrays:
    padded = np.pad(a["in"].astype(np.float64), 1)
    sides = padded[1:-1, :-2] + padded[1:-1, 2:]
    ends = padded[:-2, 1:-1] + padded[2:, 1:-1]
    return {"out": 0.5 * padded[1:-1, 1:-1] + 0.125 * sides + 0.25 * ends}


def _bitonic(a: Arrays) -> Arrays:
    x = a["in"]
    return {"out": np.concatenate([np.sort(x[at : at + 512]) for at in range(0, x.size, 512)])}


def _sparse_inputs(rng: np.random.Generator) -> Arrays:
    lengths = rng.integers(0, 40, 50)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = rng.integers(0, 70, starts[-1]).astype(np.int32)
    values = rng.standard_normal(starts[-1]).astype(np.float32)
    return {"starts": starts, "columns": columns, "values": values, "x": rng.standard_normal(70).astype(np.float32)}


def _sparse(a: Arrays) -> Arrays:
    products = a["values"].astype(np.float64) * a["x"][a["columns"]]
    sums = [products[a["starts"][row] : a["starts"][row + 1]].sum() for row in range(50)]
    return {"y": np.array(sums)}


def _collatz(a: Arrays) -> Arrays:
    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v = 3 * v + 1 if v % 2 else v // 2
            count += 1
        return count

    return {"steps": np.array([steps(int(v)) for v in a["items"]])}


def _jacobi(a: Arrays) -> Arrays:
    x = a["start"].astype(np.float32)
    for _ in range(6):
        padded = np.pad(x, 1)
        x = np.float32(0.5) * (padded[:-2] + padded[2:])
    return {"a": x}


def _half2(a: Arrays) -> Arrays:
    exact = float(np.float16(0.7)) * a["x"].astype(np.float64) + a["y"].astype(np.float64)
    return {"out": exact.astype(np.float16)}


def _bf16_scale(a: Arrays) -> Arrays:
    product = from_bf16(bf16(from_bf16(a["x"]) * from_bf16(bf16(np.array([0.3])))))
    return {"y": bf16(product + np.float32(1.0))}


def _compaction(a: Arrays) -> Arrays:
    kept = a["x"][a["x"] > 0]
    return {"out": kept, "counts": np.array([kept.size, a["x"].size - kept.size])}


def _mix(a: Arrays) -> Arrays:
    """The hash of integer_functions.cu, value by value in Python's integers."""
    word = (1 << 32) - 1

    def signed(v: int) -> int:
        return v - (1 << 32) if v >> 31 else v

    def byte_perm(x: int, y: int, selector: int) -> int:
        both = x | y << 32
        return sum((both >> 8 * (selector >> 4 * i & 7) & 255) << 8 * i for i in range(4))

    def one(v: int) -> int:
        h = int(f"{v:032b}"[::-1], 2) ^ byte_perm(v, ~v & word, 0x3715)
        leading = 32 - v.bit_length()
        first = (v & -v).bit_length()
        h = h + v.bit_count() * 131 + leading * 17 + first & word
        h ^= ((h << 13 | v >> 19) & word) + (v * 2654435761 >> 32) & word
        low = v & 0xFFFFFF
        low = low - (1 << 24) if low >> 23 else low
        dots = sum((b - 256 if b > 127 else b) * c for b, c in zip(v.to_bytes(4, "little"), (4, 3, 2, 1), strict=True))
        h = h + low * 77 + dots + 5 & word
        h ^= int(np.rint(np.float32(v >> 8) * np.float32(0.37))) + (v & 0x7FFFFF) & word
        return h + min(v, 12345) - max(signed(v), -7) & word

    return {"out": np.array([one(int(v)) for v in a["x"]], dtype=np.uint32)}


def _votes(a: Arrays) -> Arrays:
    """votes.cu lane by lane, in numpy's wrapping 32-bit integers."""
    told = []
    for warp in np.pad(a["x"], (0, -a["x"].size % 32)).reshape(-1, 32).astype(np.int64):
        lane = np.arange(32)
        halves = warp.reshape(2, 16)
        h = np.full(32, 3 * int((warp > -90).all())) + 5 * np.repeat((halves > 80).any(axis=1), 16)
        parts = [
            np.full(32, warp.sum()),
            np.repeat(halves.max(axis=1) - halves.min(axis=1), 16),
            np.full(32, np.bitwise_xor.reduce(warp) & 0xFF),
            warp[5] + warp[lane // 8 * 8 + 3],
            np.where(lane >= 2, warp[lane - 2], warp) + np.where(lane % 4 >= 1, warp[lane - 1], warp),
            np.full(32, 1 + 16),
        ]
        for part in parts:
            h = h * 31 + part
        told.append(h)
    return {"out": np.concatenate(told)[: a["x"].size].astype(np.uint32).view(np.int32)}


def _pipeline(a: Arrays) -> Arrays:
    v = a["x"].astype(np.float64).reshape(-1, 32, 4)
    return {"y": (0.5 * (v[..., 0] - v[..., 1]) + v[..., 2] - v[..., 3]).sum(axis=0)}


SAMPLES = (
    Sample(
        "vector_add",
        arrays(a=normal(1003), b=normal(1003)),
        {"c": (1003, "float32")},
        lambda a: {"c": a["a"] + a["b"]},
        {"n": 1003},
    ),
    Sample(
        "reduce",
        arrays(x=normal(5000)),
        {"out": (1, "float32")},
        lambda a: {"out": a["x"].sum(dtype=np.float64)[None] + 0},
        {"n": 5000},
        2e-5,
    ),
    Sample(
        "scan",
        arrays(x=integers(-9, 99, 1500)),
        {"out": (1500, "int32")},
        lambda a: {"out": np.cumsum(a["x"])},
        {"n": 1500},
    ),
    Sample(
        "transpose",
        arrays(**{"in": normal(70, 45)}),
        {"out": (3150, "float32")},
        lambda a: {"out": a["in"].T},
        {"rows": 70, "columns": 45},
    ),
    Sample(
        "matmul",
        arrays(a=normal(70, 33), b=normal(33, 90)),
        {"c": (6300, "float32")},
        lambda a: {"c": a["a"].astype(np.float64) @ a["b"]},
        {"m": 70, "n": 90, "k": 33},
        1e-6,
    ),
    Sample(
        "wmma_matmul",
        lambda rng: {
            "a": rng.standard_normal((48, 64)).astype(np.float16),
            "b": rng.standard_normal((32, 64)).astype(np.float16),
        },
        {"c": (48 * 32, "float32")},
        lambda a: {"c": 0.5 * a["a"].astype(np.float64) @ a["b"].T},
        {"m": 48, "n": 32, "k": 64},
        2e-6,
    ),
    Sample(
        "softmax",
        arrays(x=normal(10, 77)),
        {"y": (770, "float32")},
        lambda a: {"y": _softmax(a["x"])},
        {"rows": 10, "columns": 77},
        1e-6,
    ),
    Sample(
        "layer_norm",
        arrays(x=normal(5, 130), gain=normal(130), shift=normal(130)),
        {"y": (650, "float32")},
        _layer_norm,
        {"rows": 5, "width": 130},
        1e-6,
    ),
    Sample(
        "histogram",
        arrays(x=integers(0, 64, 3000)),
        {"bins": (64, "uint32")},
        lambda a: {"bins": np.bincount(a["x"], minlength=64)},
        {"n": 3000},
    ),
    Sample(
        "producer_consumer",
        arrays(x=normal(7 * 96)),
        {"y": (7 * 96, "float32")},
        lambda a: {"y": a["x"] * a["x"]},
        {"chunks": 7},
    ),
    Sample(
        "stencil",
        arrays(**{"in": normal(37, 50)}),
        {"out": (1850, "float32")},
        _stencil,
        {"height": 37, "width": 50},
        1e-6,
    ),
    Sample(
        "bitonic_sort", arrays(**{"in": integers(-1000, 1000, 1200)}), {"out": (1200, "int32")}, _bitonic, {"n": 1200}
    ),
    Sample("sparse_product", _sparse_inputs, {"y": (50, "float32")}, _sparse, {"rows": 50}, 1e-6),
    Sample("work_queue", arrays(items=integers(1, 3000, 300)), {"steps": (300, "int32")}, _collatz, {"n": 300}),
    Sample(
        "half2_axpy",
        lambda rng: {
            "x": rng.standard_normal(301).astype(np.float16),
            "y": rng.standard_normal(301).astype(np.float16),
        },
        {"out": (301, "float16")},
        _half2,
        {"n": 301, "a": 0.7},
    ),
    Sample(
        "bf16_scale", lambda rng: {"x": bf16(rng.standard_normal(200))}, {"y": (200, "uint16")}, _bf16_scale, {"n": 200}
    ),
    Sample(
        "jacobi",
        arrays(start=normal(300)),
        {"a": (300, "float32"), "b": (300, "float32")},
        _jacobi,
        {"n": 300, "steps": 6},
    ),
    Sample(
        "async_copy",
        arrays(x=normal(9, 256)),
        {"sums": (256, "float32")},
        lambda a: {"sums": a["x"].sum(axis=0, dtype=np.float64)},
        {"rows": 9},
        1e-6,
    ),
    Sample(
        "look_back",
        arrays(x=integers(-50, 90, 1000)),
        {"out": (1000, "int32")},
        lambda a: {"out": np.cumsum(a["x"])},
        {"n": 1000},
    ),
    Sample(
        "big_shared", arrays(x=normal(9000)), {"out": (9000, "float32")}, lambda a: {"out": a["x"][::-1]}, {"n": 9000}
    ),
    Sample(
        "integer_functions",
        arrays(x=integers(0, 1 << 32, 400, dtype="uint32")),
        {"out": (400, "uint32")},
        _mix,
        {"n": 400},
    ),
    Sample(
        "streams",
        arrays(x=normal(333)),
        {"y": (333, "float32")},
        lambda a: {"y": a["x"] + np.where(np.arange(333) < 166, np.float32(1), np.float32(2))},
        {"n": 333},
    ),
    Sample(
        "compaction",
        arrays(x=integers(-50, 50, 700)),
        {"out": (700, "int32"), "counts": (2, "int32")},
        _compaction,
        {"n": 700},
    ),
    Sample("votes", arrays(x=integers(-99, 99, 200)), {"out": (200, "int32")}, _votes, {"n": 200}),
    Sample("pipeline", arrays(x=normal(7 * 32 * 4)), {"y": (32, "float32")}, _pipeline, {"tiles": 7}, 1e-6),
    Sample(
        "questions",
        lambda _: {},
        {"out": (8, "int32")},
        lambda _: {"out": np.array([9, 32, 16, 227 << 10, 2, 1, 1, 1024])},
        {"n": 8},
        portable=False,
    ),
)
