"""Cases that one grading draws, and the distribution of each timed call."""

from __future__ import annotations

import numpy as np

from kernelgate.drawing import sizes
from kernelgate.stages import Case, Params, Tolerance

MOST = 2048
MIXTURE = {"plain": 8.0, "rising": 32.0, "falling": 118.0, "large": 122.0, "negative": 68.0, "needles": 20.0}
"""The distributions that are drawn, and about the largest score of each at its listed height."""
BASE = {"float16": (2e-3, 5e-4), "bfloat16": (1.6e-2, 4e-3)}


def drawn(rng: np.random.Generator) -> list[Case]:
    """Rows of every kind with every distribution, most of them few, for where kernels are interpreted; more with a GPU."""
    here = [*sizes(rng, 2, 1, 40, 16), *sizes(rng, 5, 41, 260, 16), *sizes(rng, 1, 261, 1024, 16)]
    on_a_gpu = [*sizes(rng, 2, 261, MOST - 1, 16), MOST]
    plants = [str(name) for name in rng.permutation(list(MIXTURE))]
    high = [str(name) for name in rng.permutation(["large", "falling", "needles", "large", "falling"])]
    chosen = zip([*here, *on_a_gpu], [*high[:1], *plants, *high[1:]], strict=True)
    return [_drawn(rng, n, plant, needs_gpu=at >= len(here)) for at, (n, plant) in enumerate(chosen)]


def _drawn(rng: np.random.Generator, n: int, plant: str, *, needs_gpu: bool) -> Case:
    d, block_n, causal = int(rng.choice([16, 32, 64])), int(rng.choice([32, 64])), bool(rng.integers(2))
    dtype = str(rng.choice(["float16", "bfloat16"]))
    data = _mixed(rng, plant)
    rows = f"{n} row{'s' if n > 1 else ''}, head size {d}, {dtype}, tiles of {block_n}{', causal' if causal else ''}"
    return Case(
        name="drawn",
        title=f"{rows}, scores {plant} ({data['height']:.3g} high, steps of {data['tile']})",
        group="",
        dtype=dtype,
        params={"kind": "values", "block_n": block_n, "causal": causal},
        data={"n": n, "d": d, **data},
        needs_gpu=needs_gpu,
        tolerance=_tolerance(dtype, data),
    )


def timed(case: Case, rng: np.random.Generator) -> Case:
    """The case with another distribution of the mixture."""
    data = _mixed(rng, str(rng.choice(list(MIXTURE))))
    return case.model_copy(update={"data": {**case.data, **data}, "tolerance": _tolerance(case.dtype, data)})


def _mixed(rng: np.random.Generator, plant: str) -> Params:
    """A plant with a height of 1 to 8 where scores are large anyway, else of 1 to 2."""
    high = 8.0 if MIXTURE[plant] > 60 else 2.0
    return {"plant": plant, "height": float(high ** rng.uniform()), "tile": int(rng.choice([16, 24, 32, 48, 64]))}


def _tolerance(dtype: str, data: Params) -> Tolerance:
    """The dtype's, and 64 roundings of float32 of the largest score, which weights of values up to 4 inherit."""
    absolute, relative = BASE[dtype]
    largest = MIXTURE[str(data["plant"])] * float(str(data["height"]))
    return Tolerance(
        absolute=absolute + 64 * 2.0**-24 * largest, relative=relative, why="64 * 2^-24 of the largest score"
    )
