"""Layer norm of each row, and its gradients: two functions of one file."""

import numpy as np

from kernelgate.inputs import mixture, normal

title, path, order, language = "Layer norm, both ways", "Practice", 8, "pytorch"
seams = {
    "forward": "layer_norm(x: T[rows, width], w: T[width], b: T[width], eps: float) -> y: T[rows, width]",
    "backward": "layer_norm_backward(x: T[rows, width], w: T[width], dy: T[rows, width], eps: float)"
    " -> dx: T[rows, width], dw: T[width], db: T[width]",
}
inputs = {"x": mixture(normal(), normal(1, 100))}


def normed(x, eps, centre=True):
    x = x - x.mean(axis=1, keepdims=True) if centre else x
    inverse = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    return x * inverse, inverse


def reference_forward(x, w, b, eps, centre=True):
    return normed(x, eps, centre)[0] * w + b


def reference_backward(x, w, dy, eps, centre=True, through_the_mean=True):
    n, inverse = normed(x, eps, centre)
    d = dy * w
    rest = n * (n * d).mean(axis=1, keepdims=True) + (d.mean(axis=1, keepdims=True) if through_the_mean else 0.0)
    return (d - rest) * inverse, (dy * n).sum(axis=0), dy.sum(axis=0)


cases = """
defaults eps=1e-5 dtype=f32,f64
by_hand  seam=forward  rows=1 width=2 x=[[1,3]] w=[1,2] b=[0,1]
odd      seam=forward  rows=3 width=31
slopes   seam=backward rows=7 width=33
drawn    seam=forward  rows=1..20 width=2..90 times=3 dtype=f32|f64
turned   seam=backward rows=1..20 width=2..90 times=3 dtype=f32|f64
"""
mistakes = {
    "mean_kept": ({"centre": False}, "The mean was not subtracted", "x - x.mean(axis=1) comes first."),
    "mean_constant": ({"through_the_mean": False}, "The mean was taken for a constant", "dx loses the mean of dy · w."),
}
edits = r"""
mean_kept wrong_answer: "    x = x - x.mean(1, keepdim=True)\n" =>
mean_constant wrong_answer: " - d.mean(1, keepdim=True)" =>
"""
