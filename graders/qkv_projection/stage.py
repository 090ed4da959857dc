"""Q, K and V of all tokens in one matrix product against a packed slab, in CUDA C++ and float32."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "Packed QKV projection"
path, order = "Decoder block", 3
needs, hours = ("rms_norm",), "4"
language = "cuda"
gate = 1.4
seam = "projectQkv(x: f32[tokens, width], w: f32[slab, width], tokens: int, width: int, slab: int) -> qkv: f32[tokens, slab]"
work = "2 * tokens * width * slab"
independent = "tokens slab"
inputs = {"x": mixture(normal(), normal(0.05)), "w": normal(0.05)}
contract = {
    "slab": "the block's has 768 rows of 512 weights: 512 for Q, then 128 for K, then 128 for V",
    "precision": "float32 products and sums; TF32 does not fit the tolerance",
}


def reference(x, w):
    return x @ w.T


def rounded(values):
    """To TF32: ten bits behind the point."""
    bits = values.astype(np.float32).view(np.uint32) + np.uint32(0x1000)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32).astype(float)


cases = """
by_hand    tokens=1 width=2 slab=3 x=[[1,2]] w=[[1,0],[0,1],[3,4]]
one        tokens=1 width=1 slab=1
short      tokens=3 width=17 slab=5
tile_edge  tokens=16 width=16 slab=16
past_tile  tokens=17 width=33 slab=18
deep       tokens=2 width=515 slab=3
tall       tokens=67 width=19 slab=4
wide       tokens=2 width=7 slab=131
odd        tokens=65 width=31 slab=66
drawn      tokens=1..70 width=1..70 slab=1..70 times=5
secret     tokens=66 width=35 slab=65 hidden
block      tokens=1..70 width=512 slab=768 needs_gpu times=2
profile    tokens=2048 width=512 slab=768 measured needs_gpu
"""
mistakes = {
    "slab_transposed": (
        lambda x, w: x @ w.reshape(w.shape[::-1]),
        "The slab was read as [width, slab]",
        "A slab row holds the weights of one output: w[output * width + i].",
    ),
    "tail_dropped": (
        lambda x, w: x[:, : x.shape[1] // 16 * 16] @ w[:, : w.shape[1] // 16 * 16].T,
        "The last width % 16 products are missing",
        "Fill the last tile with zeros where it reaches past width, and keep it.",
    ),
    "tf32": (
        lambda x, w: rounded(x) @ rounded(w).T,
        "The operands were rounded to TF32",
        "This stage wants float32 products: no tf32 tensor cores, or split each operand in parts.",
    ),
    "last_product_missing": (
        lambda x, w: x[:, :-1] @ w[:, :-1].T,
        "The last product of each sum is missing",
        "i runs to width - 1.",
    ),
    "scaled_by_the_root": (
        lambda x, w: x @ w.T / np.sqrt(x.shape[1]),
        "The product was divided by the root of the width",
        "Scores are scaled in attention; the projection is a plain product.",
    ),
    "first_tile_only": (
        lambda x, w, depth: x[:, :depth] @ w[:, :depth].T,
        "Only the first {depth} products were added",
        "Carry the sum from tile to tile.",
        {"depth": (8, 16, 32, 64)},
    ),
    "last_tile_only": (
        lambda x, w, depth: x[:, (x.shape[1] - 1) // depth * depth :] @ w[:, (x.shape[1] - 1) // depth * depth :].T,
        "Only the last tile was added, {depth} deep",
        "The sum starts at 0 before the loop over tiles, not in it.",
        {"depth": (8, 16, 32, 64)},
    ),
    "result_transposed": (
        lambda x, w: (w @ x.T).reshape(len(x), len(w)),
        "The result lies transposed",
        "qkv[token * slab + output].",
    ),
}
edits = r"""
tail_dropped wrong_answer: first < width; first += DEPTH => first + DEPTH <= width; first += DEPTH
tf32 wrong_answer: __global__ void __launch_bounds__(THREADS) projectTile
    => "__device__ float tf32(float v) { return __uint_as_float((__float_as_uint(v) + 0x1000u) & 0xFFFFE000u); }\n"
    "\n__global__ void __launch_bounds__(THREADS) projectTile"
    ;; fmaf(left[i], right[j], sum[i][j]) => fmaf(tf32(left[i]), tf32(right[j]), sum[i][j])
slab_transposed wrong_answer: inside ? from[(size_t)(first_row + row) * width + first + depth] : 0.0f
    => "!inside ? 0.0f : rows == transposed ? from[(size_t)(first + depth) * rows + first_row + row] : "
    "from[(size_t)(first_row + row) * width + first + depth]"
    ;; int first, int width) { => int first, int width, int transposed = -1) {
    ;; stage(ws, w, first_output, slab, first, width) => stage(ws, w, first_output, slab, first, width, slab)
first_tile_only wrong_answer: first < width; first += DEPTH => first < 1; first += DEPTH
last_tile_only wrong_answer: "        stage(xs, x, first_token, tokens, first, width);"
    => "        for (auto& row : sum)\n            for (float& one : row) one = 0.0f;\n"
    "        stage(xs, x, first_token, tokens, first, width);"
result_transposed wrong_answer: qkv[(size_t)(first_token + token + i) * slab + first_output + output + j] =
    => qkv[(size_t)(first_output + output + j) * tokens + first_token + token + i] =
last_product_missing wrong_answer: first + depth < width; => first + depth < width - 1;
three_of_four wrong_answer wrong_value: "for (int j = 0; j < EACH; ++j)\n            if"
    => "for (int j = 0; j < EACH - 1; ++j)\n            if"
tokens_past_a_tile wrong_answer wrong_value: (tokens + TILE - 1) / TILE => max(1, tokens / TILE)
half_sums wrong_answer wrong_value: #include <cuda_runtime.h> => "#include <cuda_fp16.h>\n#include <cuda_runtime.h>"
    ;; = sum[i][j]; => = __half2float(__float2half(sum[i][j]));
second_barrier_missing wrong_answer: "        }\n        __syncthreads();\n    }" => "        }\n    }"
stores_past_the_end runtime_error illegal_address:
    "            if (first_token + token + i < tokens && first_output + output + j < slab)\n" =>
loads_past_the_end runtime_error illegal_address: const bool inside = first_row + row < rows && first + depth < width;
    => const bool inside = true;
slab_scribbled contract_violation inputs_changed: "        stage(ws, w, first_output, slab, first, width);"
    => "        stage(ws, w, first_output, slab, first, width);\n"
    "        if (threadIdx.x == 0) const_cast<float*>(w)[0] = 0.0f;"
"""
done_when = [
    ("How many floats does one row of the block's slab product have?", "768"),
    ("In how many multiply-adds does the solution use a value that a thread reads from shared memory?", "4"),
]
