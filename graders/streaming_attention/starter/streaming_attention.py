"""Tiled attention of one head, to be finished: softmax(q @ k.T / sqrt(D)) @ v without a score matrix.

What is here handles one tile of keys and no mask. Four steps lead to the rest:
1. loop over all tiles of keys, and carry m, l and a from one to the next;
2. rescale l and a whenever m moves;
3. mask keys past the end and, where CAUSAL, keys past the row; rows past the end are not stored already;
4. refuse what is outside of the contract with ValueError, before the launch."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """One program owns BM query rows; scale is 1 / sqrt(D)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :], mask=rows[:, None] < n, other=0.0)
    keys = tl.arange(0, BN)
    k = tl.load(k_ptr + keys[:, None] * D + dims[None, :], mask=keys[:, None] < n, other=0.0)
    v = tl.load(v_ptr + keys[:, None] * D + dims[None, :], mask=keys[:, None] < n, other=0.0)
    s = tl.dot(q, tl.trans(k)) * scale
    m = tl.max(s, 1)
    p = tl.exp(s - m[:, None])
    total = tl.sum(p, 1)
    a = tl.dot(p.to(v.dtype), v)
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], (a / total[:, None]).to(q.dtype), mask=rows[:, None] < n)


def streaming_attention(q, k, v, *, causal=False, block_n=32):
    n, d = q.shape
    out = torch.empty_like(q)
    _attention[(triton.cdiv(n, 16),)](q, k, v, out, n, 1 / math.sqrt(d), causal, d, 16, block_n)
    return out
