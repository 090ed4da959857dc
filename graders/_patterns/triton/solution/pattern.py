"""One program for every 256 values."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_and_add(x, y, out, count, factor, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    a = tl.load(x + at, mask=at < count).to(tl.float32)
    b = tl.load(y + at, mask=at < count).to(tl.float32)
    tl.store(out + at, (factor * a + b).to(out.dtype.element_ty), mask=at < count)


def pattern(x, y, factor):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 256),)
    scale_and_add[grid](x, y, out, x.numel(), factor, block=256)
    return out
