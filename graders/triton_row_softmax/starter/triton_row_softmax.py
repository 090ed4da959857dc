"""Rows are loaded and stored, masks and all. What is missing is the softmax between the two."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside).to(tl.float32)
    tl.store(y_ptr + row * columns + at, x.to(y_ptr.dtype.element_ty), mask=inside)


def triton_row_softmax(x):
    y = torch.empty_like(x)
    _softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
