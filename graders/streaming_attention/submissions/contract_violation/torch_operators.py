"""Matrix products and a softmax of torch's."""

import math

import torch


def _check(q, k, v, block_n):
    if not (q.ndim == k.ndim == v.ndim == 2 and q.shape == k.shape == v.shape):
        raise ValueError("q, k and v have one shape [N, D]")
    if not 1 <= q.shape[0] <= 2048 or q.shape[1] not in (16, 32, 64) or block_n not in (32, 64):
        raise ValueError("N is 1 to 2048, D is 16, 32 or 64, block_n is 32 or 64")
    if q.dtype not in (torch.float16, torch.bfloat16) or not q.dtype == k.dtype == v.dtype:
        raise ValueError("one dtype, float16 or bfloat16")
    if not (q.is_contiguous() and k.is_contiguous() and v.is_contiguous()):
        raise ValueError("q, k and v are contiguous")


def streaming_attention(q, k, v, *, causal=False, block_n=32):
    _check(q, k, v, block_n)
    scores = q @ k.T / math.sqrt(q.shape[1])
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), float("-inf"))
    return torch.softmax(scores.float(), -1).to(v.dtype) @ v
