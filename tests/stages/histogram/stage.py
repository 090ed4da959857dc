"""How often each of 16 values occurs: whole numbers, exact."""

import numpy as np

from kernelgate.inputs import constant, integers, mixture

title, path, order = "Histogram", "Practice", 4
language = "cuda"
seam = "histogram(x: i32[count], count: int) -> counts: i32[16]"
inputs = {"x": mixture(integers(0, 15), constant(7))}


def reference(x):
    return np.bincount(x.astype(int), minlength=16)


cases = """
by_hand  count=4 x=[3,3,0,15]
many     count=3001
ties     count=777 x=constant(7)
drawn    count=1..2000 times=2
"""
mistakes = {
    "last_dropped": (lambda x: reference(x[:-1]), "The last value is not counted", "The grid ends too early."),
}
edits = {
    "last_dropped": ("wrong_answer", "at < count", "at < count - 1", {"mistake": "last_dropped"}),
    "not_atomic": ("wrong_answer", "atomicAdd(&counts[x[at]], 1)", "counts[x[at]] += 1", {"reason": "race"}),
    "not_cleared": (
        "wrong_answer",
        "cudaMemsetAsync(counts, 0, 16 * sizeof(int), stream);",
        "",
        {"reason": "wrong_value"},
    ),
}
