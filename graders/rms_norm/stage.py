"""Divide each row by its root mean square and weigh it, in CUDA C++, reading it once."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "RMSNorm"
path, order = "Decoder block", 1
needs, hours = ("C++",), "2"
language = "cuda"
gate = 2.0
seam = "rmsNorm(x: f32[rows, width], w: f32[width], rows: int, width: int, eps: float) -> y: f32[rows, width]"
work = "4 * rows * width"
independent = "rows"
inputs = {"x": mixture(normal(), normal(1e-3), normal(100))}


def reference(x, w, eps):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * w


def over(x, w, eps, squares, width):
    """With another sum of squares, or divided by another width."""
    return x / np.sqrt(squares / width + eps) * w


cases = """
defaults   eps=1e-5
by_hand    rows=1 width=2 x=[[3,4]] w=[1,2]
one_value  rows=1 width=1
warp_edge  rows=3 width=31
warp       rows=2 width=32
past_warp  rows=3 width=33
past_block rows=3 width=257
many_rows  rows=150 width=5
tiny       rows=5 width=65 x=normal(1e-3)
large      rows=3 width=129 x=normal(100)
large_eps  rows=4 width=40 eps=0.5
zeros      rows=1 width=3 x=[[0,0,0]] w=[1,1,1]
drawn      rows=1..40 width=1..600 times=5
drawn_wide rows=1..3 width=4000..5000
secret     rows=7 width=513 hidden
long       rows=1..64 width=2000..9000 needs_gpu times=3
profile    rows=2048 width=4095 measured needs_gpu
"""
faster = {
    "uncoalesced": "Give each row a block, and let thread t take the columns t, t + 256, …: neighbours read neighbours.",
    "read_again": "Keep what a thread has read in registers, in an array whose index the compiler knows: a row crosses once.",
    "bandwidth": "Each byte crosses once, and the memory is busy: there is no next step here.",
}
mistakes = {
    "sum_not_mean": (
        lambda x, w, eps: x / np.sqrt((x * x).sum(axis=1, keepdims=True) + eps) * w,
        "The sum of squares was not divided by the width",
        "Divide the sum by width before eps is added.",
    ),
    "weight_forgotten": (
        lambda x, eps: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps),
        "w was not multiplied in",
        "Multiply by w[column].",
    ),
    "eps_outside": (
        lambda x, w, eps: x / (np.sqrt((x * x).mean(axis=1, keepdims=True)) + eps) * w,
        "eps was added to the root",
        "rsqrt(mean + eps): eps lies under the root.",
    ),
    "eps_forgotten": (
        lambda x, w: x / np.maximum(np.sqrt((x * x).mean(axis=1, keepdims=True)), 1e-30) * w,
        "eps is missing",
        "rsqrt(mean + eps). It shows where values are small.",
    ),
    "no_root": (
        lambda x, w, eps: x / ((x * x).mean(axis=1, keepdims=True) + eps) * w,
        "Divided by the mean square, not by its root",
        "Take the square root: rsqrt, not 1 / x.",
    ),
    "mean_subtracted": (
        lambda x, w, eps: (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + eps) * w,
        "The mean was subtracted, as LayerNorm does",
        "RMSNorm subtracts nothing: the mean of x² alone.",
    ),
    "first_warp_only": (
        lambda x, w, eps, block: over(
            x, w, eps, (x * x * (np.arange(x.shape[1]) % block < 32)).sum(axis=1, keepdims=True), x.shape[1]
        ),
        "Of {block} threads only the first warp's sums were added",
        "A shuffle adds within a warp. The sums of a block's warps meet in shared memory.",
        {"block": (64, 128, 256, 512, 1024)},
    ),
    "padded_width": (
        lambda x, w, eps: over(x, w, eps, (x * x).sum(axis=1, keepdims=True), -(-x.shape[1] // 32) * 32),
        "Divided by the width rounded up to 32",
        "The mean is over width values; padding adds nothing to the sum and nothing to the count.",
    ),
}
edits = r"""
sum_not_mean wrong_answer: blockSum(sum) / width + eps => blockSum(sum) + eps
no_weight wrong_answer weight_forgotten: to[column] = kept[i] * scale * w[column] => to[column] = kept[i] * scale
eps_outside wrong_answer: rsqrtf(blockSum(sum) / width + eps) => 1.0f / (sqrtf(blockSum(sum) / width) + eps)
eps_forgotten wrong_answer wrong_value: blockSum(sum) / width + eps => blockSum(sum) / width
no_root wrong_answer: rsqrtf(blockSum(sum) / width + eps) => 1.0f / (blockSum(sum) / width + eps)
first_warp_only wrong_answer: warp < WARPS => warp < 1
padded_width wrong_answer: blockSum(sum) / width + eps => blockSum(sum) / ((width + 31) / 32 * 32) + eps
half_the_rows wrong_answer wrong_value: rmsNormRow<<<rows, => rmsNormRow<<<(rows + 1) / 2,
wide_rows_cut wrong_answer wrong_value: to[column] = from[column] * scale * w[column] => to[column] = 0.0f
weight_of_the_row wrong_answer wrong_value: kept[i] * scale * w[column] => kept[i] * scale * w[blockIdx.x % width]
barrier_missing wrong_answer: "    __syncthreads();\n" =>
reads_past_the_end runtime_error illegal_address: column < width ? from[column] : 0.0f => from[column]
writes_past_the_end runtime_error illegal_address: if (column < width) to[column] => to[column]
normalises_x contract_violation inputs_changed: to[column] = kept[i] * scale * w[column]
    => to[column] = const_cast<float*>(from)[column] = kept[i] * scale * w[column]
another_name contract_violation missing_function: void rmsNorm( => void rms_norm(
semicolon_missing compile_error nvcc_error: return value; => return value
"""
done_when = [
    ("With x = [3, 4], w = [1, 2] and no eps: y[1], to three decimals?", "2.263"),
    ("How many times does the solution read a row of 4096 values from memory?", "1"),
]
