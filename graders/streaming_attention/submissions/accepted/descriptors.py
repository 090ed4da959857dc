"""Tensor descriptors made in the kernel; their memory comes from an allocator."""

import math

import torch
import triton
import triton.language as tl


def _allocate(size, alignment, stream):
    return torch.empty(size, dtype=torch.int8, device="cuda")


triton.set_allocator(_allocate)


@triton.jit
def _attention(q_ptr, k_ptr, v_ptr, out_ptr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0) * BM
    q_desc = tl.make_tensor_descriptor(q_ptr, [n, D], [D, 1], [BM, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [n, D], [D, 1], [BN, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [n, D], [D, 1], [BN, D])
    out_desc = tl.make_tensor_descriptor(out_ptr, [n, D], [D, 1], [BM, D])
    rows = start + tl.arange(0, BM)
    q = q_desc.load([start, 0])
    m = tl.full([BM], float("-inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    a = tl.zeros([BM, D], tl.float32)
    for first in range(0, n, BN):
        keys = first + tl.arange(0, BN)
        k = k_desc.load([first, 0])
        v = v_desc.load([first, 0])
        seen = keys[None, :] < n
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None])
        s = tl.where(seen, tl.dot(q, tl.trans(k)) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1))
        alpha = tl.exp(m - m_new)
        p = tl.exp(s - m_new[:, None])
        l = alpha * l + tl.sum(p, 1)
        a = alpha[:, None] * a + tl.dot(p.to(v.dtype), v)
        m = m_new
    out_desc.store([start, 0], (a / l[:, None]).to(q.dtype))


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
    out = torch.empty_like(q)
    _attention[(triton.cdiv(n, 16),)](q, k, v, out, n, 1 / math.sqrt(d), causal, d, 16, block_n)
    return out
