"""The decoder block in float64: what every operator of this folder must compute, one function an operator.

A Llama-style pre-norm block: d_model 512, 8 query heads, 2 key/value heads, head dim 64, feed-forward width 1408. Weights are
[outputs, inputs], as the kernels read them. Everything here is numpy and trusted; nothing of it ever reaches a submission.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

WIDTH = 512
HEADS = 8
KV_HEADS = 2
HEAD_DIM = 64
QKV_WIDTH = 768
FEED_FORWARD = 1408
EPSILON = 1e-5
ROPE_BASE = 10000.0
KEY = HEADS * HEAD_DIM
VALUE = KEY + KV_HEADS * HEAD_DIM
ROWS_AT_ONCE = 256


@dataclass(frozen=True)
class Weights:
    """float32, [outputs, inputs]; the two norms are [512]. Drawn so that activations keep a variance near one."""

    norm1: Float32
    qkv: Float32
    out: Float32
    norm2: Float32
    gate: Float32
    up: Float32
    down: Float32


@cache
def weights() -> Weights:
    """The block's weights: fixed by a constant seed, so that every grading speaks of the same block."""
    rng = np.random.default_rng(0x6B65726E)

    def matrix(outputs: int, inputs: int) -> Float32:
        drawn = rng.standard_normal((outputs, inputs), dtype=np.float32)
        return drawn / np.float32(np.sqrt(inputs))

    def norm() -> Float32:
        return (1 + 0.1 * rng.standard_normal(WIDTH)).astype(np.float32)

    return Weights(
        norm1=norm(),
        qkv=matrix(QKV_WIDTH, WIDTH),
        out=matrix(WIDTH, WIDTH),
        norm2=norm(),
        gate=matrix(FEED_FORWARD, WIDTH),
        up=matrix(FEED_FORWARD, WIDTH),
        down=matrix(WIDTH, FEED_FORWARD),
    )


@cache
def wide() -> dict[str, Float64]:
    """The weights in float64, converted once."""
    return {name: values.astype(np.float64) for name, values in vars(weights()).items()}


def rms_norm(x: NDArray[np.floating], gain: NDArray[np.floating]) -> Float64:
    """x / sqrt(mean(x^2) + 1e-5) * gain along the last axis; x [tokens, 512], gain [512]."""
    values = x.astype(np.float64)
    return values / np.sqrt(np.mean(values**2, axis=-1, keepdims=True) + EPSILON) * gain


def packed_qkv(normed: Float64) -> Float64:
    """One projection over 768 slab rows: [tokens, 512] → [tokens, 768] as Q 512 | K 128 | V 128."""
    return normed @ wide()["qkv"].T


def rope(packed: Float64, first: int = 0) -> Float64:
    """Rotary embedding of Q and K, half-split convention: dim i is paired with dim i + 32, base 10000; V untouched.

    packed: [tokens, 768]; row t stands at position first + t.
    """
    rotated = packed.astype(np.float64).copy()
    half = HEAD_DIM // 2
    angles = (first + np.arange(len(packed)))[:, None] * ROPE_BASE ** (-np.arange(half) / half)
    cosine, sine = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    heads = rotated[:, :VALUE].reshape(len(packed), HEADS + KV_HEADS, HEAD_DIM)
    low, high = heads[..., :half].copy(), heads[..., half:].copy()
    heads[..., :half] = low * cosine - high * sine
    heads[..., half:] = high * cosine + low * sine
    rotated[:, :VALUE] = heads.reshape(len(packed), VALUE)
    return rotated


def heads_of(qkv: NDArray[np.floating], kv_head: NDArray[np.intp] | None = None) -> tuple[Float64, Float64, Float64]:
    """Q, K and V as [8, tokens, 64] in float64; `kv_head` [8] says which key/value head each query head reads."""
    chosen = np.arange(HEADS) // (HEADS // KV_HEADS) if kv_head is None else kv_head
    tokens = len(qkv)
    values = qkv.astype(np.float64)
    query = values[:, :KEY].reshape(tokens, HEADS, HEAD_DIM).transpose(1, 0, 2)
    key = values[:, KEY:VALUE].reshape(tokens, KV_HEADS, HEAD_DIM).transpose(1, 0, 2)[chosen]
    value = values[:, VALUE:].reshape(tokens, KV_HEADS, HEAD_DIM).transpose(1, 0, 2)[chosen]
    return query, key, value


def causal_attention(qkv: NDArray[np.floating]) -> Float64:
    """softmax(Q K^T / 8, causal) V by the book, [tokens, 768] → [tokens, 512] with the heads side by side.

    Rows go in blocks that end at their last visible key; all scores of a row are at hand.
    """
    query, key, value = heads_of(qkv)
    tokens = len(qkv)
    result = np.empty((tokens, KEY))

    hidden = np.triu(np.ones((ROWS_AT_ONCE, ROWS_AT_ONCE), dtype=bool), 1)
    for head in range(HEADS):
        columns = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
        for first in range(0, tokens, ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, tokens)
            score = query[head, first:last] @ key[head, :last].T
            score *= 1 / np.sqrt(HEAD_DIM)
            score[:, first:][hidden[: last - first, : last - first]] = -np.inf
            score -= score.max(axis=1, keepdims=True)
            weight = np.exp(score, out=score)
            result[first:last, columns] = weight @ value[head, :last] / weight.sum(axis=1, keepdims=True)
    return result


def projection(x: Float64, name: str, residual: NDArray[np.floating] | None = None) -> Float64:
    """x W^T, plus the residual where there is one; `name` is a field of Weights."""
    product: Float64 = x @ wide()[name].T
    return product if residual is None else product + residual


def swiglu(gate: Float64, up: Float64) -> Float64:
    """silu(gate) * up, with silu(x) = x / (1 + exp(-x)); both [tokens, 1408]."""
    return gate / (1 + np.exp(-gate)) * up


def slab(hidden: Float32) -> Float64:
    """The head of the block, up to the seam: norm, packed projection, RoPE; [tokens, 512] → [tokens, 768]."""
    return rope(packed_qkv(rms_norm(hidden, weights().norm1)))


def tail(attention: NDArray[np.floating], hidden: Float32) -> Float64:
    """What follows the seam: output projection, residual, norm, SwiGLU, down projection, residual; [tokens, 512]."""
    middle = projection(attention.astype(np.float64), "out", hidden)
    normed = rms_norm(middle, weights().norm2)
    return projection(swiglu(projection(normed, "gate"), projection(normed, "up")), "down", middle)
