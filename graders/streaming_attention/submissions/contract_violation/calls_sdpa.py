"""torch's own attention instead of a kernel."""

import torch
import torch.nn.functional as F


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
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
