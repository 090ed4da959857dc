"""Scores, softmax and product as three kernels, with all scores in memory."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _scores(q_ptr, k_ptr, s_ptr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    keys = tl.program_id(1) * B + tl.arange(0, B)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :], mask=rows[:, None] < n, other=0.0)
    k = tl.load(k_ptr + keys[:, None] * D + dims[None, :], mask=keys[:, None] < n, other=0.0)
    s = tl.dot(q, tl.trans(k)) * scale
    if CAUSAL:
        s = tl.where(keys[None, :] <= rows[:, None], s, float("-inf"))
    tl.store(s_ptr + rows[:, None] * n + keys[None, :], s, mask=(rows[:, None] < n) & (keys[None, :] < n))


@triton.jit
def _mix(s_ptr, v_ptr, out_ptr, n, D: tl.constexpr, KEYS: tl.constexpr):
    row = tl.program_id(0)
    keys = tl.arange(0, KEYS)
    dims = tl.arange(0, D)
    s = tl.load(s_ptr + row * n + keys, mask=keys < n, other=float("-inf"))
    p = tl.exp(s - tl.max(s, 0))
    v = tl.load(v_ptr + keys[:, None] * D + dims[None, :], mask=keys[:, None] < n, other=0.0)
    out = tl.sum(p[:, None] * v, 0) / tl.sum(p, 0)
    tl.store(out_ptr + row * D + dims, out.to(out_ptr.dtype.element_ty))


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
    scores = torch.empty((n, n), dtype=torch.float32, device=q.device)
    out = torch.empty_like(q)
    blocks = triton.cdiv(n, 32)
    _scores[(blocks, blocks)](q, k, scores, n, 1 / math.sqrt(d), causal, d, 32)
    _mix[(n,)](scores, v, out, n, d, triton.next_power_of_2(n))
    return out
