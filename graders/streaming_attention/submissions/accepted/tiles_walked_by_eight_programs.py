"""Eight programs walk all tiles: tl.range with num_stages, tl.num_programs, tl.assume, tl.multiple_of."""

import math

import torch
import triton
import triton.language as tl

ROWS = 16
LOG2_E = 1.4426950408889634


@triton.jit
def _forward(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    tl.assume(n > 0)
    for tile in tl.range(tl.program_id(0), tl.cdiv(n, BM), tl.num_programs(0), num_stages=2):
        _tile(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, tile, CAUSAL, D, BM, BN)


@triton.jit
def _tile(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, tile, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.multiple_of(tile * BM, BM)
    rows = start + tl.arange(0, BM)
    dims = tl.arange(0, D)
    real_row = rows[:, None] < n
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :], mask=real_row, other=0.0)
    m = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    a = tl.zeros([BM, D], tl.float32)
    stop = tl.minimum(n, start + BM) if CAUSAL else n
    for first in range(0, stop, BN):
        keys = first + tl.arange(0, BN)
        real_key = keys[:, None] < n
        k = tl.load(k_ptr + keys[:, None] * D + dims[None, :], mask=real_key, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        seen = keys[None, :] < n
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        alpha = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        v = tl.load(v_ptr + keys[:, None] * D + dims[None, :], mask=real_key, other=0.0)
        total = alpha * total + tl.sum(p, 1)
        a = alpha[:, None] * a + tl.dot(p.to(v.dtype), v)
        m = m_new
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], (a / total[:, None]).to(q.dtype), mask=real_row)


def streaming_attention(q, k, v, *, causal=False, block_n=32):
    check(q, k, v, block_n)
    n, d = q.shape
    out = torch.empty_like(q)
    _forward[(8,)](q, k, v, out, n, LOG2_E / math.sqrt(d), CAUSAL=bool(causal), D=d, BM=ROWS, BN=block_n)
    return out


def check(q, k, v, block_n):
    if not (q.ndim == k.ndim == v.ndim == 2 and q.shape == k.shape == v.shape):
        raise ValueError("one shape [N, D] is accepted")
    n, d = q.shape
    if not 1 <= n <= 2048 or d not in (16, 32, 64):
        raise ValueError("N from 1 to 2048 and D of 16, 32 or 64 are accepted")
    if q.dtype not in (torch.float16, torch.bfloat16) or not q.dtype == k.dtype == v.dtype:
        raise ValueError("one of float16 and bfloat16 for all is accepted")
    if not (q.is_contiguous() and k.is_contiguous() and v.is_contiguous()):
        raise ValueError("q, k and v have to be contiguous")
    if block_n not in (32, 64):
        raise ValueError("block_n of 32 and 64 are accepted")
