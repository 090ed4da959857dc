"""The product silu(gate) * up of a packed row, once across memory, in CUDA C++, with any width."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "SwiGLU"
path, order = "Decoder block", 2
needs, hours = ("rms_norm",), "1"
language = "cuda"
seam = "swiGlu(packed: f32[tokens, 2 * width], tokens: int, width: int) -> y: f32[tokens, width]"
work = "4 * tokens * width"
independent = "tokens width"
inputs = {"packed": mixture(normal(), normal(0.01), normal(20))}
contract = {"row": "packed[t] is gate (width values), then up (width values)"}

tolerance = {
    "y": (
        1e-30,
        1e-5,
        (
            "six roundings of 2^-24 are 4e-7; __expf is off by up to a hundred units in the last place near the ends of its "
            "range, 6e-6; a result below 1e-30 may be 0, because exp(-gate) overflows there"
        ),
    )
}


def halves(packed):
    width = packed.shape[1] // 2
    return packed[:, :width], packed[:, width:]


def sigmoid(x):
    """1 / (1 + exp(-x)) with no exponent above 0."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def reference(packed):
    gate, up = halves(packed)
    return gate * sigmoid(gate) * up


cases = """
by_hand    tokens=1 width=2 packed=[[0,2,5,3]]
one_value  tokens=1 width=1
two_rows   tokens=2 width=3
odd        tokens=3 width=37
fours      tokens=5 width=36
past_block tokens=2 width=257
tall       tokens=70 width=3
small      tokens=3 width=65 packed=normal(0.01)
large      tokens=3 width=65 packed=normal(20)
far_below  tokens=1 width=4 packed=[[-100,-90,-1000,100,1,2,3,4]]
block      tokens=2 width=1408
drawn      tokens=1..40 width=1..300 times=5
secret     tokens=9 width=1411 hidden
long       tokens=100..500 width=1000..4000 needs_gpu times=2
profile    tokens=2048 width=1408 measured needs_gpu
"""
mistakes = {
    "gate_and_up_swapped": (
        lambda packed: halves(packed)[1] * sigmoid(halves(packed)[1]) * halves(packed)[0],
        "Gate and up changed places",
        "The first half of a row is the gate: it goes through silu.",
    ),
    "sigmoid_only": (
        lambda packed: sigmoid(halves(packed)[0]) * halves(packed)[1],
        "The gate is the sigmoid alone",
        "silu(x) = x * sigmoid(x): the factor x is missing. Without it this is GLU.",
    ),
    "gate_forgotten": (
        lambda packed: halves(packed)[0] * halves(packed)[1],
        "Gate and up were multiplied as they are",
        "The gate goes through silu first.",
    ),
    "relu": (
        lambda packed: np.maximum(halves(packed)[0], 0) * halves(packed)[1],
        "The gate went through ReLU",
        "silu(x) = x / (1 + exp(-x)) is smooth, and negative below zero.",
    ),
    "exponent_sign": (
        lambda packed: halves(packed)[0] * sigmoid(-halves(packed)[0]) * halves(packed)[1],
        "exp has the wrong sign",
        "x / (1 + exp(-x)), with the minus.",
    ),
    "up_through_silu_too": (
        lambda packed: reference(packed) * sigmoid(halves(packed)[1]),
        "up went through silu as well",
        "Only the gate does; up is a plain factor.",
    ),
    "gelu": (
        lambda packed: halves(packed)[0] * sigmoid(1.702 * halves(packed)[0]) * halves(packed)[1],
        "The gate went through GELU's approximation",
        "silu has no factor of 1.702 in its exponent.",
    ),
    "interleaved": (
        lambda packed: packed[:, ::2] * sigmoid(packed[:, ::2]) * packed[:, 1::2],
        "Gate and up were taken from neighbouring places",
        "A row is all gates and then all ups, width values each.",
    ),
}
edits = r"""
sigmoid_only wrong_answer: return x / (1.0f + expf(-x)) => return 1.0f / (1.0f + expf(-x))
relu wrong_answer: return x / (1.0f + expf(-x)) => return fmaxf(x, 0.0f)
exponent_sign wrong_answer: expf(-x) => expf(x)
gelu wrong_answer: expf(-x) => expf(-1.702f * x)
swapped wrong_answer gate_and_up_swapped: silu(packed[i + token * width]) * packed[i + token * width + width]
    => silu(packed[i + token * width + width]) * packed[i + token * width]
    ;; const float4 gate = packed[i + token * width], up = packed[i + token * width + width]
    => const float4 up = packed[i + token * width], gate = packed[i + token * width + width]
up_through_silu_too wrong_answer: silu(packed[i + token * width]) * packed[i + token * width + width]
    => silu(packed[i + token * width]) * silu(packed[i + token * width + width])
    ;; silu(gate.x) * up.x, silu(gate.y) * up.y, silu(gate.z) * up.z, silu(gate.w) * up.w
    => silu(gate.x) * silu(up.x), silu(gate.y) * silu(up.y), silu(gate.z) * silu(up.z), silu(gate.w) * silu(up.w)
overflows wrong_answer wrong_value: return x / (1.0f + expf(-x)) => return x * expf(x) / (1.0f + expf(x))
first_row_only wrong_answer wrong_value: const size_t token = i / width; => const size_t token = 0;
last_block_missing wrong_answer wrong_value: (count + THREADS - 1) / THREADS => count / THREADS + (count < THREADS)
half_precision wrong_answer wrong_value: #include <cuda_runtime.h> => "#include <cuda_fp16.h>\n#include <cuda_runtime.h>"
    ;; return x / (1.0f + expf(-x)) => return __half2float(__float2half(x / (1.0f + expf(-x))))
from_the_starter wrong_answer of starter wrong_value: row[column] * row[width + column] => row[column] * row[column]
no_bounds runtime_error illegal_address: if (i >= count) return; =>
fours_always runtime_error: if (width % 4 == 0) => if (true)
packed_overwritten contract_violation inputs_changed: y[i] = silu(packed[i + token * width])
    => y[i] = const_cast<float*>(packed)[i + token * width] = silu(packed[i + token * width])
workspace contract_violation workspace: "    const size_t count = (size_t)tokens * width;\n    if"
    => "    const size_t count = (size_t)tokens * width;\n    void* scratch;\n"
    "    cudaMallocAsync(&scratch, count * 4, stream);\n    if"
"""
done_when = [
    ("silu(2), to three decimals?", "1.762"),
    (
        (
            "The block's feed-forward width is 1408. How many floats of memory does one token cross, "
            "read and written, in one pass?"
        ),
        "4224",
    ),
]
