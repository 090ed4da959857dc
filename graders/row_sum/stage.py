"""The sum of each row, in CUDA C++: coalesced reads, shuffles within a warp, shared memory between warps."""

import numpy as np

from kernelgate.inputs import mixture, normal, uniform

title = "Row sums"
path, order = "Reductions", 1
needs, hours = ("C++",), "1"
language = "cuda"
seam = "rowSum(x: f32[rows, width], rows: int, width: int) -> y: f32[rows]"
work = "rows * width"
independent = "rows"
inputs = {"x": mixture(normal(), uniform(0, 1), normal(1000))}


def reference(x):
    return x.sum(axis=1)


def columns(x, keep):
    """The sum over the columns that keep(index) keeps."""
    return (x * keep(np.arange(x.shape[1]))).sum(axis=1)


cases = """
by_hand    rows=2 width=3 x=[[1,2,3],[10,20,30]]
one_value  rows=1 width=1
warp_edge  rows=3 width=31
past_warp  rows=3 width=33
block_edge rows=2 width=256
past_block rows=2 width=257
tall       rows=130 width=5
positive   rows=3 width=1000 x=uniform(0, 1)
large      rows=3 width=65 x=normal(1000)
drawn      rows=1..40 width=1..600 times=5
drawn_wide rows=1..3 width=3000..5000
secret     rows=7 width=515 hidden
long       rows=1..64 width=5000..50000 needs_gpu times=2
profile    rows=2048 width=4095 measured needs_gpu
"""
mistakes = {
    "lane_0_alone": (
        lambda x: columns(x, lambda at: at % 32 == 0),
        "Only lane 0's part was written",
        "Add the lanes' parts with __shfl_down_sync or __shfl_xor_sync, steps 16, 8, 4, 2, 1.",
    ),
    "first_warp_alone": (
        lambda x, block: columns(x, lambda at: at % block < 32),
        "Of {block} threads only the first warp's sum was written",
        "A shuffle adds within a warp. Warps meet in shared memory, behind a __syncthreads().",
        {"block": (64, 128, 256, 512, 1024)},
    ),
    "tail_dropped": (
        lambda x, step: x[:, : x.shape[1] // step * step].sum(axis=1),
        "The last width % {step} columns are missing",
        "Let the loop run to width, and let threads without a column add 0.",
        {"step": (4, 32, 64, 128, 256, 512, 1024)},
    ),
    "first_columns_alone": (
        lambda x, block: x[:, :block].sum(axis=1),
        "Only the first {block} columns were added",
        "Each thread takes one column of every block's width: a loop, not one read.",
        {"block": (32, 64, 128, 256, 512, 1024)},
    ),
    "mean": (lambda x: x.mean(axis=1), "This is the mean", "Do not divide by width."),
    "column_sums": (
        lambda x: np.resize(x.sum(axis=0), len(x)),
        "Columns were added, not rows",
        "y[row] is the sum of x[row * width + column] over the columns.",
    ),
    "squares": (lambda x: (x * x).sum(axis=1), "Squares were added", "The sum is of x itself."),
    "last_column_missing": (lambda x: x[:, :-1].sum(axis=1), "The last column is missing", "column < width."),
    "step_16_missing": (
        lambda x: columns(x, lambda at: at % 32 < 16),
        "Half of each warp is missing",
        "The steps are 16, 8, 4, 2 and 1.",
    ),
}
edits = r"""
lanes_not_added wrong_answer lane_0_alone:
    "    for (int step = 16; step; step >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, step);\n" =>
first_warp_alone wrong_answer: warp = 1; warp < WARPS => warp = 1; warp < 1
tail_dropped wrong_answer: column < width; => column < width / 32 * 32;
first_columns_alone wrong_answer: column < width; column += THREADS => column < min(width, THREADS); column += THREADS
mean wrong_answer: y[blockIdx.x] = sum; => y[blockIdx.x] = sum / width;
column_sums wrong_answer: const float* __restrict__ x, float* __restrict__ y, int width) {
    => const float* __restrict__ x, float* __restrict__ y, int rows, int width) {
    ;; const float* row = x + (size_t)blockIdx.x * width; => const float* row = x + blockIdx.x % width;
    ;; column < width; column += THREADS) sum += row[column]
    => column < rows; column += THREADS) sum += row[(size_t)column * width]
    ;; stream>>>(x, y, width) => stream>>>(x, y, rows, width)
squares wrong_answer: sum += row[column] => sum += row[column] * row[column]
last_column_missing wrong_answer: column < width; => column < width - 1;
step_16_missing wrong_answer: int step = 16; => int step = 8;
half_the_rows wrong_answer wrong_value: sumRow<<<rows, => sumRow<<<(rows + 1) / 2,
half_sums wrong_answer wrong_value: #include <cuda_runtime.h> => "#include <cuda_fp16.h>\n#include <cuda_runtime.h>"
    ;; y[blockIdx.x] = sum; => y[blockIdx.x] = __half2float(__float2half(sum));
barrier_missing wrong_answer: "    __syncthreads();\n" =>
atomic_on_y wrong_answer:
    "    if (threadIdx.x == 0) {\n        for (int warp = 1; warp < WARPS; ++warp) sum += part[warp];\n"
    "        y[blockIdx.x] = sum;\n    }"
    => "    if (threadIdx.x % 32 == 0) atomicAdd(&y[blockIdx.x], sum);"
reads_past_the_end runtime_error illegal_address: column < width; => column < width + 4096;
a_row_too_many runtime_error illegal_address: sumRow<<<rows, => sumRow<<<rows + 1,
x_cleared contract_violation inputs_changed: sum += row[column];
    => "{\n        sum += row[column];\n        const_cast<float*>(row)[column] = 0.0f;\n    }"
"""
done_when = [
    ("How many shuffles add up a warp of 32?", "5"),
    ("A block of 256 threads sums a row of 1000. How many columns does thread 0 read?", "4"),
]
