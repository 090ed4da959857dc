"""The k largest values of each row with their places, in any order among equals."""

import numpy as np

from kernelgate.inputs import integers, mixture, normal

title, path, order = "Top k", "Practice", 1
language = "pytorch"
seam = "top_rows(x: f32[rows, width], k: int) -> values: f32[rows, k], places: i64[rows, k]"
inputs = {"x": mixture(normal(), integers(0, 5))}


def reference(x, k):
    places = np.argsort(-x, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(x, places, axis=1), places


def accept(got, want, x, k):
    """Among equal values any place is right, once."""
    places = got[1].astype(int)
    same = np.take_along_axis(x, places.clip(0, x.shape[1] - 1), axis=1) == want[0]
    once = np.array([len(set(row)) == k for row in places])[:, None]
    inside = (places >= 0) & (places < x.shape[1])
    return want[0], np.where(same & once & inside, got[1], want[1])


cases = """
by_hand  rows=1 width=3 k=2 x=[[3,5,4]]
ties     rows=9 width=33 k=5 x=integers(0,5)
drawn    rows=1..60 width=8..300 k=1..8 times=3
"""
mistakes = {"smallest": (lambda x, k: reference(-x, k), "The smallest were taken", "largest=True.")}
edits = r"""
ascending wrong_answer: torch.topk(x, k, dim=1) => torch.topk(x, k, dim=1, largest=False)
same_place_twice wrong_answer: return values, places => return values, places[:, :1].expand(-1, k).contiguous()
ints contract_violation wrong_dtype: return values, places => return values, places.int()
"""
