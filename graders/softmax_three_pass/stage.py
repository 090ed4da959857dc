"""Softmax of each row in three passes, in CUDA C++: the maximum, the sum of exponentials, the quotients."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "Softmax in three passes"
path, order = "Reductions", 2
needs, hours = ("row_sum",), "2"
language = "cuda"
seam = "softmaxRows(x: f32[rows, width], rows: int, width: int) -> y: f32[rows, width]"
work = "5 * rows * width"
independent = "rows"
inputs = {"x": mixture(normal(), normal(10), normal(100))}


def reference(x):
    weight = np.exp(x - x.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def exponentials(x):
    """As float32 gives them where nothing is subtracted: infinite above 88.7."""
    return np.where(x > 88.72, np.inf, np.exp(np.minimum(x, 88.72)))


def quotients(weight):
    with np.errstate(invalid="ignore"):
        return weight / weight.sum(axis=1, keepdims=True)


cases = """
by_hand    rows=1 width=2 x=[[0,1.0986122886681098]]
one_value  rows=3 width=1
equal      rows=1 width=4 x=[[7,7,7,7]]
warp_edge  rows=3 width=31
past_warp  rows=3 width=33
past_block rows=2 width=257
tall       rows=130 width=5
spread     rows=3 width=65 x=normal(10)
far        rows=3 width=65 x=normal(100)
above_88   rows=2 width=3 x=[[200,201,202],[-200,-201,-202]]
drawn      rows=1..40 width=1..600 times=5
drawn_wide rows=1..3 width=2000..3000
secret     rows=7 width=515 hidden
long       rows=1..64 width=5000..50000 needs_gpu times=2
profile    rows=2048 width=4095 measured needs_gpu
"""


def thread_maxima(x, block):
    """Of each column, the maximum of the columns that its thread takes."""
    width = x.shape[1]
    padded = np.pad(x, ((0, 0), (0, -width % block)), constant_values=-np.inf).reshape(len(x), -1, block)
    return np.broadcast_to(padded.max(axis=1, keepdims=True), padded.shape).reshape(len(x), -1)[:, :width]


faster = {
    "read_again": (
        "Each pass reads the row again, and that is what this stage is about. Carry maximum and sum in one pass: online "
        "softmax of rows is the next stage."
    ),
}
mistakes = {
    "maximum_of_a_thread": (
        lambda x, block: quotients(exponentials(x - thread_maxima(x, block))),
        "Each of {block} threads subtracted the maximum of its own columns",
        "A row has one maximum: merge those of the threads, over the warp and over the block, before the first exponential.",
        {"block": (32, 64, 128, 256, 512)},
    ),
    "no_maximum": (
        lambda x: quotients(exponentials(x)),
        "The row's maximum was not subtracted",
        "exp overflows above 88.7; subtract the maximum first.",
    ),
    "maximum_starts_at_zero": (
        lambda x: quotients(
            np.exp(np.float32(1) * (x - np.maximum(x.max(axis=1, keepdims=True), 0))).astype(np.float32).astype(float)
        ),
        "The maximum started at 0",
        "Start from -INFINITY: a row may be negative everywhere.",
    ),
    "not_normalised": (
        lambda x: np.exp(x - x.max(axis=1, keepdims=True)),
        "The exponentials were not divided by their sum",
        "The third pass divides.",
    ),
    "by_column": (
        lambda x: np.exp(x - x.max(axis=0)) / np.exp(x - x.max(axis=0)).sum(axis=0),
        "Normalised over columns, not over rows",
        "One row, one sum.",
    ),
    "powers_of_two": (
        lambda x: reference(x * np.log(2)),
        "Powers of 2 were taken for powers of e",
        "exp2f wants its argument times log2(e).",
    ),
    "logarithm": (
        lambda x: (
            x
            - x.max(axis=1, keepdims=True)
            - np.log(np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))
        ),
        "This is the logarithm of the softmax",
        "Write exp(x - m) / l.",
    ),
    "first_warp_alone": (
        lambda x, block: (
            np.exp(x - x.max(axis=1, keepdims=True))
            / (np.exp(x - x.max(axis=1, keepdims=True)) * (np.arange(x.shape[1]) % block < 32)).sum(
                axis=1, keepdims=True
            )
        ),
        "Of {block} threads the sum is that of the first warp",
        "Warps meet in shared memory, behind a __syncthreads().",
        {"block": (64, 128, 256, 512, 1024)},
    ),
    "sign": (lambda x: reference(-x), "The exponent has the wrong sign", "exp(x - m), with m the largest."),
    "squares": (
        lambda x: (
            np.exp(x - x.max(axis=1, keepdims=True))
            / np.sqrt((np.exp(x - x.max(axis=1, keepdims=True)) ** 2).sum(axis=1, keepdims=True))
        ),
        "Divided by the root of the sum of squares",
        "Softmax divides by the plain sum.",
    ),
}
edits = r"""
no_maximum wrong_answer: largest = blockMaximum(largest, scratch); => largest = 0.0f;
maximum_of_a_thread wrong_answer maximum_of_a_thread: "    largest = blockMaximum(largest, scratch);\n" =>
maximum_starts_at_zero wrong_answer: float largest = -INFINITY; => float largest = 0.0f;
not_normalised wrong_answer: expf(from[column] - largest) / sum; => expf(from[column] - largest);
powers_of_two wrong_answer: sum += expf(from[column] - largest) => sum += exp2f(from[column] - largest)
    ;; expf(from[column] - largest) / sum => exp2f(from[column] - largest) / sum
logarithm wrong_answer: expf(from[column] - largest) / sum; => from[column] - largest - logf(sum);
first_warp_alone wrong_answer wrong_value: for (int warp = 0; warp < WARPS; ++warp) value += scratch[warp];
    => value = scratch[0];
sum_over_a_warp wrong_answer wrong_value:
    "    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;\n    __syncthreads();\n"
    "    value = 0.0f;\n    for (int warp = 0; warp < WARPS; ++warp) value += scratch[warp];\n"
    "    __syncthreads();\n" =>
scratch_reused_too_early wrong_answer: "value = fmaxf(value, scratch[warp]);\n    __syncthreads();"
    => value = fmaxf(value, scratch[warp]);
tail_dropped wrong_answer wrong_value: column += THREADS) sum +=
    => column += THREADS) if (column < width / 32 * 32 || width < 32) sum +=
half_the_rows wrong_answer wrong_value: softmaxRow<<<rows, => softmaxRow<<<(rows + 1) / 2,
starter_with_twos wrong_answer of starter wrong_value: to[column] = expf( => to[column] = exp2f(
reads_past_the_end runtime_error illegal_address: column < width; column += THREADS) largest
    => column < width + 1; column += THREADS) largest
x_overwritten contract_violation inputs_changed: sum += expf(from[column] - largest);
    => sum += const_cast<float*>(from)[column] = expf(from[column] - largest);
barrier_name compile_error nvcc_error: "__syncthreads();\n    value = 0.0f;" => "__syncthread();\n    value = 0.0f;"
"""
done_when = [
    ("The softmax of [0, ln 3]: its second value?", "0.75"),
    ("How many times does a float of x cross from memory to the block in this form, if no cache holds it?", "3"),
]
