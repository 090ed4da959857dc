"""Rotates pairs of each row in place by an angle that grows with the row."""

import numpy as np

title, path, order = "Rotation in place", "Practice", 2
language = "cuda"
seam = "rope(inout x: f32[tokens, 2*pairs], tokens: int, pairs: int)"


def reference(x, tokens, pairs):
    angle = np.arange(tokens)[:, None] * 10000.0 ** (-np.arange(pairs) / pairs)
    a, b = x[:, 0::2].copy(), x[:, 1::2].copy()
    x[:, 0::2], x[:, 1::2] = a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)
    return x


tolerance = {"x_after": (2e-4, 0.0, "angles up to 100 rad carry 8e-6")}
cases = """
one   tokens=1 pairs=1
few   tokens=7 pairs=5
drawn tokens=1..90 pairs=1..33 times=2
"""
edits = r"""
not_in_place wrong_answer: row[1] = a * s + b * c; => ;
"""
