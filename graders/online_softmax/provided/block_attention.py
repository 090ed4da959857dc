"""Exact attention, tile by tile, over the `online_softmax_update` of `online_softmax.py` beside this file.

The update is looked up when `block_attention` is called, so either file may import the other.
"""

import math

import online_softmax
import torch


def block_attention(q, k, v, block_size):
    """Attention of q [Nq, D] over k [Nk, D] and v [Nk, Dv], `block_size` queries by `block_size` keys at a time.

    Returns (output [Nq, Dv], logsumexp [Nq]): the softmax-weighted values, and the natural logarithm of the sum over keys
    of exp(q·k / sqrt(D)). Both keep dtype and device of the inputs and are differentiable with respect to q, k and v. The
    last tile of either side is smaller where block_size does not divide it. No mask, no dropout.

    Raises TypeError or ValueError for a block size that is not a positive whole number and for shapes that do not match.
    """
    _check(q, k, v, block_size)
    tiles = [_attend(rows, k, v, block_size) for rows in q.split(block_size)]
    return torch.cat([output for output, _ in tiles]), torch.cat([logsumexp for _, logsumexp in tiles])


def passed_on(*arguments):
    """The arguments of an update as it gets them. Who wants to look at each of them puts a function of their own here."""
    return arguments


def _attend(q, k, v, block_size):
    """One tile of queries against all keys."""
    row_max = q.new_full((q.shape[0],), -math.inf)
    normalizer = q.new_zeros(q.shape[0])
    numerator = q.new_zeros(q.shape[0], v.shape[1])
    for keys, values in zip(k.split(block_size), v.split(block_size), strict=True):
        scores = q @ keys.T / math.sqrt(q.shape[1])
        arguments = passed_on(row_max, normalizer, numerator, scores, values)
        row_max, normalizer, numerator = online_softmax.online_softmax_update(*arguments)
    return numerator / normalizer[:, None], row_max + torch.log(normalizer)


def _check(q, k, v, block_size):
    if isinstance(block_size, bool) or not isinstance(block_size, int):
        raise TypeError(f"block_size is {block_size!r}; a positive int is accepted")
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}; a positive int is accepted")
    shapes = [tuple(tensor.shape) for tensor in (q, k, v)]
    if any(len(shape) != 2 or 0 in shape for shape in shapes) or q.shape[1] != k.shape[1] or len(k) != len(v):
        raise ValueError(
            "q, k, v have shapes {}, {}, {}; [Nq, D], [Nk, D], [Nk, Dv] are accepted, none of them empty".format(
                *shapes
            )
        )
