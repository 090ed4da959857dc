"""Tiles of 64 columns, three walks over the row: mean, variance, result. No row is too long for it."""

import torch
import triton
import triton.language as tl


@triton.jit
def walks(x_ptr, w_ptr, b_ptr, y_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * width + at, mask=at < width, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / width
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * width + at, mask=at < width, other=0.0).to(tl.float32)
        left = tl.where(at < width, x - mean, 0.0)
        squares += left * left
    scale = tl.rsqrt(tl.sum(squares, axis=0) / width + eps)
    for first in range(0, width, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < width
        x = tl.load(x_ptr + row * width + at, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * width + at, ((x - mean) * scale * w + b).to(y_ptr.dtype.element_ty), mask=inside)


def triton_layer_norm(x, w, b, eps):
    y = torch.empty_like(x)
    walks[(x.shape[0],)](x, w, b, y, x.shape[1], eps, BLOCK=64)
    return y
