"""Cases that one grading draws, and the distributions of each timed call."""

from __future__ import annotations

import numpy as np

from kernelgate.drawing import sizes
from kernelgate.stages import Case, Params, Tolerance

WITHOUT_GPU, MOST, KV_HEADS = 320, 2048, 2
MIXTURE = {"plain": 8.0, "rising": 23.0, "needles": 20.0, "falling": 138.0, "large": 138.0}
"""What is drawn for a KV head, and about the largest score that each brings about at its listed height."""
PLANTED = [name for name in MIXTURE if name != "plain"]


def drawn(rng: np.random.Generator) -> list[Case]:
    """Lengths of every kind with every plant: up to 320 tokens, and with a GPU up to the length that is timed."""
    lengths = [*sizes(rng, 2, 1, 40), *sizes(rng, 5, 41, WITHOUT_GPU), *sizes(rng, 2, WITHOUT_GPU + 1, MOST - 1), MOST]
    names = rng.permutation(["plain", *PLANTED, *PLANTED])
    overflowing = [(str(rng.choice(["falling", "large"])), str(name)) for name in names]
    return [
        _drawn(rng, tokens, plants)
        for tokens, plants in zip(lengths, [*overflowing, ("large", "needles")], strict=True)
    ]


def _drawn(rng: np.random.Generator, tokens: int, plants: tuple[str, str]) -> Case:
    mixed = [str(name) for name in rng.permutation(plants)]
    height, tile = float(rng.uniform(1.0, 2.5)), int(rng.choice([8, 16, 24, 32, 48, 64, 100]))
    return Case(
        name="drawn",
        title=f"{tokens} tokens, scores of the KV heads {' and '.join(mixed)} ({height:.3g} high, tiles of {tile})",
        group="",
        params={"tokens": tokens},
        data={"plants": mixed, "height": height, "tile": tile},
        needs_gpu=tokens > WITHOUT_GPU,
        tolerance=_tolerance(mixed, height),
    )


def timed(case: Case, rng: np.random.Generator) -> Case:
    """The case with each KV head's plant drawn from all there are, ordinary scores among them."""
    mixed = [str(name) for name in rng.choice(list(MIXTURE), KV_HEADS)]
    height, tile = float(rng.uniform(1.0, 2.5)), int(rng.choice([16, 32, 48, 64]))
    data: Params = {"plants": mixed, "height": height, "tile": tile, "slab_alone": True}
    return case.model_copy(update={"data": data, "tolerance": _tolerance(mixed, height)})


def _tolerance(plants: list[str], height: float) -> Tolerance:
    """As stage.toml has it for scores of 16 and of 106, and in proportion for others."""
    allowed = 2e-5 + 8e-6 * height * max(MIXTURE[name] for name in plants)
    return Tolerance(absolute=allowed, relative=allowed, why="8e-6 of the largest score on top of the ordinary 2e-5")
