"""y = w * x and its gradients: two functions of one file, each judged by itself."""

title, path, order = "Scale, forward and backward", "Practice", 5
language = "cuda"
seams = {
    "forward": "scale(x: f32[rows, width], w: f32[width], rows: int, width: int) -> y: f32[rows, width]",
    "backward": "scaleBackward(g: f32[rows, width], x: f32[rows, width], w: f32[width], rows: int, width: int)"
    " -> dx: f32[rows, width], dw: f32[width]",
}


def reference_forward(x, w):
    return x * w


def reference_backward(g, x, w):
    return g * w, (g * x).sum(axis=0)


cases = """
forward     rows=3 width=5 seam=forward
backward    rows=3 width=5 seam=backward
drawn       rows=1..70 width=1..40 seam=backward times=2
"""
mistakes = {"w_for_x": (lambda g, w: (g * w, (g * w).sum(axis=0)), "dw sums g * w", "The gradient of w is g * x.")}
edits = r"""
w_for_x wrong_answer: g[i * width + at] * x[i * width + at] => g[i * width + at] * w[at]
no_backward contract_violation missing_function: void scaleBackward => void scale_backward
"""
