"""Inclusive prefix sums of each row, one block a row: widths that are no multiple of the block."""

import numpy as np

from kernelgate.inputs import mixture, normal, uniform

title, path, order, language = "Row prefix sums", "Practice", 6, "cuda"
seam = "prefixSum(x: f32[rows, width], rows: int, width: int) -> y: f32[rows, width]"
inputs = {"x": mixture(normal(), uniform(0, 1))}
work, independent = "rows * width", "rows"


def reference(x):
    return np.cumsum(x, axis=1)


cases = """
by_hand    rows=1 width=4 x=[[1,2,3,4]]
one_value  rows=3 width=1
block_edge rows=2 width=257
drawn      rows=1..9 width=1..900 times=3
secret     rows=3 width=511 hidden
"""
mistakes = {
    "exclusive": (lambda x: np.cumsum(x, axis=1) - x, "The sum stops before its own value", "y[i] includes x[i]."),
    "carry_lost": (
        lambda x: np.concatenate([np.cumsum(x[:, at : at + 256], axis=1) for at in range(0, x.shape[1], 256)], axis=1),
        "Sums begin again at each chunk of 256",
        "Carry the total of a chunk into the next.",
    ),
}
edits = r"""
exclusive wrong_answer: row[at] = carry + part[threadIdx.x]; => row[at] = carry + part[threadIdx.x] - mine;
carry_lost wrong_answer: carry += part[255]; =>
no_barrier wrong_answer race: "__syncthreads();\n            part[threadIdx.x] += add;" => part[threadIdx.x] += add;
"""
