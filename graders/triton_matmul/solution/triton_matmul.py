"""Tiled matrix product: a program makes one tile of C and walks along k, with the sum in float32."""

import torch
import triton
import triton.language as tl

BM, BN, BK = 32, 32, 16


@triton.jit
def _product(
    a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros([BM, BN], tl.float32)
    for first in range(0, k, BK):
        depth = first + tl.arange(0, BK)
        a_inside = (rows[:, None] < m) & (depth[None, :] < k)
        b_inside = (depth[:, None] < k) & (columns[None, :] < n)
        a = tl.load(a_ptr + rows[:, None] * k + depth[None, :], mask=a_inside, other=0.0)
        b = tl.load(b_ptr + depth[:, None] * n + columns[None, :], mask=b_inside, other=0.0)
        total = tl.dot(a, b, total)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total.to(c_ptr.dtype.element_ty), mask=inside)


def triton_matmul(a, b):
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty((m, n), dtype=a.dtype, device=a.device)
    _product[(triton.cdiv(m, BM), triton.cdiv(n, BN))](a, b, c, m, n, k, BM=BM, BN=BN, BK=BK)
    return c
