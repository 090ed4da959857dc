"""Row softmax in bfloat16, half and float32."""

import numpy as np

from kernelgate.inputs import mixture, normal

title, path, order = "Softmax", "Practice", 3
language = "triton"
seam = "row_softmax(x: T[rows, width]) -> y: T[rows, width]"
inputs = {"x": mixture(normal(), normal(20))}


def reference(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


cases = """
small  rows=3 width=7 dtype=f32
bf     rows=5 width=65 dtype=bf16
drawn  rows=1..20 width=1..300 times=3 dtype=bf16|f16|f32
"""
mistakes = {
    "not_divided": (lambda x: np.exp(x - x.max(axis=1, keepdims=True)), "The row is not divided", "Divide by the sum.")
}
edits = r"""
not_divided wrong_answer: e / tl.sum(e, 0) => e
"""
