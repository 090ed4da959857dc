"""Cases that one grading draws: traces, updates, attention and gradients of shapes and magnitudes that no list knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelgate.drawing import sizes
from kernelgate.stages import Case, Params, Tolerance

ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
MOST = 48
"""The largest size that is drawn; the contract has none. Blocks of one key then make 48 x 48 calls at most."""
SHAPES: dict[str, Callable[[np.random.Generator], list[float]]] = {
    "rising": lambda rng: sorted(rng.uniform(-1, 1, 4)),
    "falling": lambda rng: sorted(rng.uniform(-1, 1, 4), reverse=True),
    "anywhere": lambda rng: list(rng.uniform(-1, 1, 5)),
    "large throughout": lambda rng: list(rng.uniform(0.99, 1, 3)),
    "low throughout": lambda rng: list(rng.uniform(-1, -0.99, 3)),
}
"""Where the scores of successive blocks lie, in units of their magnitude."""


def drawn(rng: np.random.Generator) -> list[Case]:
    """Traces of every course that a maximum can take, one of them beyond scores of 3000; then updates, attention, gradients.

    A listed size, magnitude or course tells a submission nothing about these.
    """
    shapes = iter(sizes(rng, 28, 1, MOST, 8))
    courses = [str(name) for name in rng.permutation(list(SHAPES))]
    magnitudes = [10.0 ** rng.uniform(0, 2), 10.0 ** rng.uniform(2, 3), rng.uniform(3100, 9000)]
    make: list[Case] = [
        _drawn_trace(rng, courses[at], magnitude, (next(shapes), next(shapes)))
        for at, magnitude in enumerate(magnitudes)
    ]
    for kind, data in (("update", "mid_stream"), ("reuse", "reused")):
        level = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(0, 3.9))
        size = {"queries": next(shapes), "keys": next(shapes), "value_width": next(shapes)}
        make.append(
            _drawn_case(
                rng, {"kind": kind}, {"kind": data, **size, "level": level}, abs(level), f"scores near {level:.4g}"
            )
        )
    for kind, data in (("attention", "tokens"), ("attention_gradient", "tokens_weighted")):
        size = {"queries": next(shapes), "keys": next(shapes), "width": next(shapes), "value_width": next(shapes)}
        block = next(shapes)
        make.append(
            _drawn_case(rng, {"kind": kind, "block_size": block}, {"kind": data, **size}, 32, f"blocks of {block}")
        )
    reach = int(rng.integers(64, 512))
    far: Params = {
        "queries": next(shapes),
        "keys": 2 * next(shapes),
        "width": 4,
        "value_width": next(shapes),
        "reach": reach,
    }
    block = next(shapes)
    params: Params = {"kind": "attention", "block_size": block}
    what = f"scores up to {16 * reach}, blocks of {block}"
    return [*make, _drawn_case(rng, params, {"kind": "far_tokens", **far}, 16 * reach, what)]


def _drawn_trace(rng: np.random.Generator, course: str, magnitude: float, shape: tuple[int, int]) -> Case:
    levels = [float(level) * magnitude for level in SHAPES[course](rng)]
    blocks = [int(size) for size in rng.integers(1, 9, len(levels))]
    data: Params = {
        "kind": "levels", "queries": shape[0], "value_width": shape[1], "levels": levels, "spread": float(rng.uniform(0.1, 2)),
    }  # fmt: skip
    what = f"blocks of {', '.join(map(str, blocks))}, scores {course} (up to about {magnitude:.4g})"
    return _drawn_case(rng, {"kind": "trace", "blocks": blocks}, data, magnitude, what)


def _drawn_case(rng: np.random.Generator, params: Params, data: Params, magnitude: float, what: str) -> Case:
    """One drawn case. Its tolerance: 4 roundings of each of 48 blocks with values of 4, and 8 of the largest score."""
    dtype = str(rng.choice(["float32", "float64"]))
    allowed = ROUNDOFF[dtype] * (4 * MOST * 4 + 8 * magnitude)
    keys = f", {data['keys']} keys" if "keys" in data else ""
    kind = str(params["kind"]).replace("_", " ")
    title = f"{kind}: {data['queries']} queries{keys}, value width {data['value_width']}, {what}"
    tolerance = Tolerance(absolute=allowed, relative=allowed, why="4 * 48 * 4 roundings, and 8 of the largest score")
    return Case(name="drawn", title=title, group="", dtype=dtype, params=params, data=data, tolerance=tolerance)
