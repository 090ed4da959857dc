"""Attention of one head in float64, by the definition: scores, mask, softmax over the whole row, weighted values.

q, k, v [N, D] and the result [N, D] are float64; scores are divided by sqrt(D), the subtracted maximum is that of the row, and
`causal` lets row i see the keys 0 to i. No tile, no recurrence: nothing of how kernels compute it is in here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
ROWS = 256
"""Rows at a time: a whole 2048 × 2048 score matrix need not be held."""


def attention(q: Float64, k: Float64, v: Float64, *, causal: bool) -> Float64:
    """softmax(q @ k.T / sqrt(D)) @ v, row by row exact to float64."""
    tokens, dim = q.shape
    out = np.empty((tokens, v.shape[1]))
    keys = np.arange(tokens)
    for first in range(0, tokens, ROWS):
        rows = np.arange(first, min(first + ROWS, tokens))
        scores = q[rows] @ k.T / np.sqrt(dim)
        if causal:
            scores = np.where(keys[None, :] <= rows[:, None], scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[rows] = weights @ v / weights.sum(axis=1, keepdims=True)
    return out
