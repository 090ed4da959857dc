"""Keys split between programs: partial states in a workspace, joined by a second kernel."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _partial(
    q_ptr, k_ptr, v_ptr, a_ptr, m_ptr, l_ptr, n, share, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    split = tl.program_id(1)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    real = rows[:, None] < n
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :], mask=real, other=0.0)
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    a = tl.zeros([BM, D], tl.float32)
    for first in range(split * share, tl.minimum(n, (split + 1) * share), BN):
        keys = first + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[:, None] * D + dims[None, :], mask=keys[:, None] < n, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * D + dims[None, :], mask=keys[:, None] < n, other=0.0)
        seen = keys[None, :] < n
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        s = tl.where(seen, tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        base = tl.where(m_new == float("-inf"), 0.0, m_new)
        alpha = tl.exp(m - base)
        p = tl.exp(s - base[:, None])
        l = alpha * l + tl.sum(p, 1)
        a = alpha[:, None] * a + tl.dot(p.to(v.dtype), v)
        m = m_new
    at = split * n + rows
    tl.store(a_ptr + at[:, None] * D + dims[None, :], a, mask=real)
    tl.store(m_ptr + at, m, mask=rows < n)
    tl.store(l_ptr + at, l, mask=rows < n)


@triton.jit
def _join(a_ptr, m_ptr, l_ptr, out_ptr, n, SPLITS: tl.constexpr, D: tl.constexpr, BM: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    dims = tl.arange(0, D)
    real = rows < n
    highest = tl.full([BM], float("-inf"), tl.float32)
    for split in tl.static_range(SPLITS):
        highest = tl.maximum(highest, tl.load(m_ptr + split * n + rows, mask=real, other=0.0))
    total = tl.zeros([BM], tl.float32)
    a = tl.zeros([BM, D], tl.float32)
    for split in tl.static_range(SPLITS):
        weight = tl.exp(tl.load(m_ptr + split * n + rows, mask=real, other=0.0) - highest)
        total += weight * tl.load(l_ptr + split * n + rows, mask=real, other=1.0)
        at = (split * n + rows)[:, None] * D + dims[None, :]
        a += weight[:, None] * tl.load(a_ptr + at, mask=real[:, None], other=0.0)
    out = a / total[:, None]
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], out.to(out_ptr.dtype.element_ty), mask=real[:, None])


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
    n, d = q.shape
    splits = 3
    share = triton.cdiv(triton.cdiv(n, splits), block_n) * block_n
    out = torch.empty_like(q)
    a = torch.empty((splits, n, d), dtype=torch.float32, device=q.device)
    m, l = torch.empty((2, splits, n), dtype=torch.float32, device=q.device)
    blocks = triton.cdiv(n, 16)
    _partial[(blocks, splits)](q, k, v, a, m, l, n, share, 1 / math.sqrt(d), causal, d, 16, block_n)
    _join[(blocks,)](a, m, l, out, n, splits, d, 16)
    return out
