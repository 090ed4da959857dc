"""The mean is made and subtracted, w and b are applied. What is missing: the variance."""

import torch
import triton
import triton.language as tl


@triton.jit
def _layer_norm(x_ptr, w_ptr, b_ptr, y_ptr, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < width
    x = tl.load(x_ptr + row * width + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / width
    w = tl.load(w_ptr + at, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = (x - mean) * w + b
    tl.store(y_ptr + row * width + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def triton_layer_norm(x, w, b, eps):
    y = torch.empty_like(x)
    _layer_norm[(x.shape[0],)](x, w, b, y, x.shape[1], eps, BLOCK=triton.next_power_of_2(x.shape[1]))
    return y
