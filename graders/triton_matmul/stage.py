"""C = A B in tiles, fp16 and bf16 with a float32 sum, for sizes that are multiples of nothing."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "Tiled matrix product"
path, order = "Triton", 1
needs, hours = ("Python",), "3"
language = "triton"
seam = "triton_matmul(a: T[m, k], b: T[k, n]) -> c: T[m, n]"
work = "2 * m * n * k"
independent = "m n"
inputs = {"a": mixture(normal(), normal(0.1)), "b": normal()}
contract = {
    "dtypes": "a, b and c are float16, or all bfloat16; products are added in float32",
    "torch": "allocates and makes views; every value is computed by kernels that the function launches",
}


def reference(a, b):
    return a @ b


def narrow(values):
    """As bfloat16 holds them: eight bits, to the nearest even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


def summed_in_bfloat16(a, b):
    """The sum rounded to bfloat16 after every 16 products."""
    total = np.zeros((len(a), b.shape[1]))
    for first in range(0, a.shape[1], 16):
        total = narrow(total + a[:, first : first + 16] @ b[first : first + 16])
    return total


cases = """
by_hand      dtype=f16  m=2 k=2 n=2 a=[[1,2],[3,4]] b=[[5,6],[7,8]]
one          dtype=f16  m=1 k=1 n=1
one_tile     dtype=f16  m=16 k=16 n=16
tails        dtype=f16  m=17 k=33 n=19
deep         dtype=f16  m=3 k=700 n=5
tall         dtype=f16  m=131 k=17 n=3
wide         dtype=f16  m=3 k=17 n=131
block        dtype=f16  m=64 k=64 n=96
tails_bf16   dtype=bf16 m=17 k=33 n=19
deep_bf16    dtype=bf16 m=3 k=700 n=5
large_sum    dtype=bf16 m=1 k=8192 n=1 a=constant(1) b=constant(1)
drawn        dtype=f16|bf16 m=1..90 k=1..90 n=1..90 times=5
secret       dtype=f16  m=65 k=47 n=33 hidden
long         dtype=f16|bf16 m=200..1100 k=200..1100 n=200..1100 needs_gpu times=3
"""
mistakes = {
    "first_tile_only": (
        lambda a, b, bk: a[:, :bk] @ b[:bk],
        "Only the first {bk} products were added",
        "Walk along k: for first in range(0, k, BK).",
        {"bk": (16, 32, 64, 128, 256)},
    ),
    "tail_dropped": (
        lambda a, b, bk: a[:, : a.shape[1] // bk * bk] @ b[: len(b) // bk * bk],
        "The last k % {bk} products are missing",
        "range(0, k, BK) has a last, partial step; mask it with depth < k.",
        {"bk": (16, 32, 64, 128, 256)},
    ),
    "last_tile_only": (
        lambda a, b, bk: a[:, (a.shape[1] - 1) // bk * bk :] @ b[(len(b) - 1) // bk * bk :],
        "Only the last tile of k counts, {bk} wide",
        "total += tl.dot(a, b), or tl.dot(a, b, total): carry the sum.",
        {"bk": (16, 32, 64, 128, 256)},
    ),
    "summed_in_bfloat16": (
        summed_in_bfloat16,
        "The sum was kept in 16 bits",
        "total = tl.zeros([BM, BN], tl.float32); convert once, at the store.",
    ),
    "b_transposed": (
        lambda a, b: a @ b.reshape(b.shape[::-1]).T,
        "B was read as [n, k]",
        "b[i, j] lies at b_ptr + i * n + j.",
    ),
    "result_transposed": (
        lambda a, b: (a @ b).T.reshape(len(a), b.shape[1]),
        "C lies transposed",
        "c[i, j] lies at c_ptr + i * n + j.",
    ),
    "sign": (lambda a, b: -(a @ b), "The sign is wrong", "C = A B."),
}
edits = r"""
first_tile_only wrong_answer: range(0, k, BK) => range(0, BK, BK)
starter_as_it_is wrong_answer of starter first_tile_only: One tile of k is multiplied. => One tile.
tail_dropped wrong_answer: range(0, k, BK) => range(0, k // BK * BK, BK)
last_tile_only wrong_answer: total = tl.dot(a, b, total) => total = tl.dot(a, b)
summed_in_bfloat16 wrong_answer: total = tl.dot(a, b, total)
    => total = (total + tl.dot(a, b)).to(tl.bfloat16).to(tl.float32)
b_transposed wrong_answer: b_ptr + depth[:, None] * n + columns[None, :] => b_ptr + columns[None, :] * k + depth[:, None]
result_transposed wrong_answer: c_ptr + rows[:, None] * n + columns[None, :] => c_ptr + columns[None, :] * m + rows[:, None]
tail_not_masked runtime_error: "(depth[:, None] < k) & " => ;; & (depth[None, :] < k) =>
masked_without_other wrong_answer wrong_value: mask=a_inside, other=0.0 => mask=a_inside
columns_past_a_tile wrong_answer wrong_value: triton.cdiv(n, BN) => max(1, n // BN)
stored_without_mask runtime_error illegal_address: , mask=inside) => )
float32_returned contract_violation wrong_dtype: dtype=a.dtype => dtype=torch.float32
torch_matmul contract_violation torch_operator: "    return c" => "    return a @ b"
never_launched contract_violation no_launch:
    "    _product[(triton.cdiv(m, BM), triton.cdiv(n, BN))](a, b, c, m, n, k, BM=BM, BN=BN, BK=BK)\n" =>
a_overwritten contract_violation inputs_changed: "        total = tl.dot(a, b, total)"
    => "        total = tl.dot(a, b, total)\n"
    "        tl.store(a_ptr + rows[:, None] * k + depth[None, :], a * 2, mask=a_inside)"
not_python compile_error: def triton_matmul(a, b): => def triton_matmul(a, b)
"""
done_when = [
    ("[[1, 2], [3, 4]] times [[5, 6], [7, 8]]: the last value?", "50"),
    ("How many programs does the solution launch for m = 100 and n = 70, with tiles of 32 by 32?", "12"),
]
