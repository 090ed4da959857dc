"""tl.cumsum, tl.flip, tl.argmax, tl.gather, tl.static_range and tl.static_assert on the way to the same answer."""

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
    start = tl.program_id(0) * BM
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
        tl.static_assert(BN % 32 == 0)
        for twice in tl.static_range(2):
            p = tl.flip(p, 1)
        at = tl.argmax(p, 1)
        best = tl.max(p, 1)
        best = tl.where(at >= 0, best, 0.0)
        again = tl.reshape(tl.gather(p, at[:, None], 1), [BM])
        p = tl.where((again == best)[:, None], p, float("nan"))
        total = alpha * total + tl.max(tl.cumsum(p, 1), 1)
        a = alpha[:, None] * a + tl.dot(p.to(v.dtype), v)
        m = m_new
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], (a / total[:, None]).to(q.dtype), mask=real_row)


def streaming_attention(q, k, v, *, causal=False, block_n=32):
    check(q, k, v, block_n)
    n, d = q.shape
    out = torch.empty_like(q)
    _forward[(triton.cdiv(n, ROWS),)](q, k, v, out, n, LOG2_E / math.sqrt(d), CAUSAL=bool(causal), D=d, BM=ROWS, BN=block_n)
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
