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
CTYPES = {"float32": "float", "float16": "__half", "int32": "int", "uint32": "unsigned"}


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


def _softmax(x: Array) -> Array:
    shifted = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


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


def _compaction(a: Arrays) -> Arrays:
    kept = a["x"][a["x"] > 0]
    return {"out": kept, "counts": np.array([kept.size, a["x"].size - kept.size])}


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
        "matmul",
        arrays(a=normal(70, 33), b=normal(33, 90)),
        {"c": (6300, "float32")},
        lambda a: {"c": a["a"].astype(np.float64) @ a["b"]},
        {"m": 70, "n": 90, "k": 33},
        1e-6,
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
        "producer_consumer",
        arrays(x=normal(7 * 96)),
        {"y": (7 * 96, "float32")},
        lambda a: {"y": a["x"] * a["x"]},
        {"chunks": 7},
    ),
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
