"""Attention as a student writes it, in float32 and tile by tile, with one thing wrong: what a wrong file computes.

Written apart from the stages' own variants: by rows and tiles, with a mask of its own and what an underflow or an overflow
does in float32. Each mistake is a few of the keywords.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Mask = Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.bool_]]


def causal(row: NDArray[np.intp], key: NDArray[np.intp]) -> NDArray[np.bool_]:
    return key <= row


@dataclass(frozen=True)
class Kernel:
    """rescale_acc, rescale_l: whether the old sums follow the maximum. maximum: how the new one is made of the old one and the
    tile's. scale: in place of 1 / sqrt(dim). padded: zeros behind the last key are counted. reset_at: sums begin anew there.
    """

    tile: int = 32
    mask: Mask = causal
    rescale_acc: bool = True
    rescale_l: bool = True
    maximum: str = "running"
    scale: float | None = None
    divide: bool = True
    padded: bool = False
    exp2: bool = False
    reset_at: int = -1
    rounds: Callable[[Float32], Float32] = lambda values: values

    def __call__(self, q: Float32, k: Float32, v: Float32) -> Float32:
        """q, k, v [tokens, dim] → [tokens, dim]."""
        tokens, dim = q.shape
        one = np.float32(1 / np.sqrt(dim) if self.scale is None else self.scale)
        m = np.full(tokens, -np.inf, np.float32)
        l = np.zeros(tokens, np.float32)  # noqa: E741
        acc = np.zeros((tokens, v.shape[1]), np.float32)
        exp = np.exp2 if self.exp2 else np.exp
        row = np.arange(tokens)
        with np.errstate(all="ignore"):
            for first in range(0, tokens, self.tile):
                key = np.arange(first, min(first + self.tile, tokens))
                live = np.flatnonzero(self.mask(row[:, None], key[None, :]).any(axis=1))
                if not len(live):
                    continue
                if self.reset_at == first:
                    m[live], l[live], acc[live] = -np.inf, 0, 0
                seen = self.mask(live[:, None], key[None, :])
                score = np.where(seen, self.rounds(q[live]) @ self.rounds(k[key]).T * one, -np.inf).astype(np.float32)
                extra = first + self.tile - tokens if self.padded else 0
                own = score.max(axis=1)
                if extra > 0:
                    own = np.maximum(own, 0)
                new = {"running": np.maximum(m[live], own), "own": own, "none": np.zeros_like(own)}[self.maximum]
                alpha = exp(m[live] - new) if self.maximum != "none" else np.ones_like(own)
                alpha = np.where(np.isneginf(m[live]), 0, alpha).astype(np.float32) if self.maximum != "none" else alpha
                p = exp(score - new[:, None]).astype(np.float32)
                total = p.sum(axis=1) + max(extra, 0) * exp(-new)
                l[live] = l[live] * (alpha if self.rescale_l else 1) + total
                acc[live] = acc[live] * (alpha[:, None] if self.rescale_acc else 1) + p @ v[key]
                m[live] = new
            return (acc / l[:, None] if self.divide else acc).astype(np.float32)
