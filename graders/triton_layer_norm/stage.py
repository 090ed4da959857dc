"""Layer norm of each row with weight and bias, float32 and float16, also where the mean is far from zero."""

import numpy as np

from kernelgate.inputs import mixture, normal, uniform

title = "Layer norm in Triton"
path, order = "Triton", 3
needs, hours = ("triton_row_softmax",), "2"
language = "triton"
seam = "triton_layer_norm(x: T[rows, width], w: T[width], b: T[width], eps: float) -> y: T[rows, width]"
work = "8 * rows * width"
independent = "rows"
inputs = {"x": mixture(normal(), normal(1, 100), normal(0.01)), "w": uniform(0.5, 1.5), "b": normal()}
contract = {
    "dtypes": "x, w, b and y are float32, or all float16; mean and variance are computed in float32",
    "variance": "the mean of squared differences from the mean: divided by width, not by width - 1",
    "torch": "allocates and makes views; every value is computed by kernels that the function launches",
}


def reference(x, w, b, eps):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + eps) * w + b


def padded(x, w, b, eps):
    """The padding of the tile counts in the variance: each padded column as a difference of -mean."""
    width = x.shape[1]
    missing = (1 << (width - 1).bit_length()) - width
    mean = x.mean(axis=1, keepdims=True)
    variance = (((x - mean) ** 2).sum(axis=1, keepdims=True) + missing * mean**2) / width
    return (x - mean) / np.sqrt(variance + eps) * w + b


def normalised(x, eps, ddof=0):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True, ddof=ddof) + eps)


cases = """
defaults  eps=1e-5
by_hand     dtype=f32 rows=1 width=2 x=[[1,3]] w=[1,1] b=[0,0]
one_column  dtype=f32 rows=3 width=1
power       dtype=f32 rows=3 width=64
odd         dtype=f32 rows=37 width=129
wide        dtype=f32 rows=5 width=1000
offset      dtype=f32 rows=9 width=65 x=normal(1, 100)
small       dtype=f32 rows=9 width=65 x=normal(0.01)
large_eps   dtype=f32 rows=4 width=40 eps=0.5
odd_f16     dtype=f16 rows=37 width=129
offset_f16  dtype=f16 rows=9 width=65 x=normal(1, 100)
drawn       dtype=f32|f16 rows=1..90 width=2..700 times=6
secret      dtype=f32 rows=7 width=513 hidden
long        dtype=f32|f16 rows=1..300 width=2000..8000 needs_gpu times=3
"""
mistakes = {
    "variance_missing": (
        lambda x, w, b: (x - x.mean(axis=1, keepdims=True)) * w + b,
        "Nothing was divided by the standard deviation",
        "Multiply by 1 / sqrt(variance + eps).",
    ),
    "unbiased": (
        lambda x, w, b, eps: normalised(x, eps, ddof=min(1, x.shape[1] - 1)) * w + b,
        "The variance was divided by width - 1",
        "Layer norm divides by width.",
    ),
    "padding_counts": (
        padded,
        "Padded columns count in the variance",
        "After the mean is subtracted a padded 0 is -mean: set it to 0 again with tl.where.",
    ),
    "mean_missing": (
        lambda x, w, b, eps: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * w + b,
        "The mean was not subtracted: this is RMSNorm with a bias",
        "Subtract the row's mean first.",
    ),
    "bias_forgotten": (lambda x, w, eps: normalised(x, eps) * w, "b was not added", "y = x_hat * w + b."),
    "weight_forgotten": (lambda x, b, eps: normalised(x, eps) + b, "w was not multiplied in", "y = x_hat * w + b."),
    "bias_weighed": (
        lambda x, w, b, eps: (normalised(x, eps) + b) * w,
        "b was added before w was multiplied in",
        "y = x_hat * w + b.",
    ),
    "eps_outside": (
        lambda x, w, b, eps: (x - x.mean(axis=1, keepdims=True)) / (x.std(axis=1, keepdims=True) + eps) * w + b,
        "eps was added to the root",
        "1 / sqrt(variance + eps): eps lies under the root.",
    ),
    "no_root": (
        lambda x, w, b, eps: (x - x.mean(axis=1, keepdims=True)) / (x.var(axis=1, keepdims=True) + eps) * w + b,
        "Divided by the variance, not by its root",
        "tl.sqrt, or tl.rsqrt.",
    ),
}
edits = r"""
starter_as_it_is wrong_answer of starter variance_missing: The mean is made => A mean is made
unbiased wrong_answer: variance = tl.sum(centred * centred, axis=0) / width
    => variance = tl.sum(centred * centred, axis=0) / (width - 1 if width > 1 else 1)
padding_counts wrong_answer: tl.where(inside, x - mean, 0.0) => x - mean
mean_missing wrong_answer: tl.where(inside, x - mean, 0.0) => x
bias_forgotten wrong_answer: * w + b => * w
weight_forgotten wrong_answer: scale * w + b => scale + b
bias_weighed wrong_answer: centred * scale * w + b => (centred * scale + b) * w
eps_outside wrong_answer wrong_value: tl.sqrt(variance + eps) => (tl.sqrt(variance) + eps)
no_root wrong_answer: tl.sqrt(variance + eps) => (variance + eps)
by_squares wrong_answer wrong_value: tl.sum(centred * centred, axis=0) / width
    => tl.sum(x * x, axis=0) / width - mean * mean
masked_without_other wrong_answer wrong_value: row * width + at, mask=inside, other=0.0 => row * width + at, mask=inside
weight_of_the_row wrong_answer wrong_value: tl.load(w_ptr + at, => tl.load(w_ptr + at * 0,
torch_layer_norm contract_violation torch_operator: "    return y"
    => "    return torch.nn.functional.layer_norm(x, [x.shape[1]], w, b, eps)"
in_place contract_violation: y = torch.empty_like(x) => y = x
stored_without_mask runtime_error illegal_address: y.to(y_ptr.dtype.element_ty), mask=inside => y.to(y_ptr.dtype.element_ty)
    ;; BLOCK=triton.next_power_of_2(x.shape[1]) => BLOCK=64 * triton.next_power_of_2(x.shape[1])
misspelt compile_error: tl.sqrt => tl.squareroot
"""
done_when = [
    ("The row [1, 3] with w = 1, b = 0 and no eps: y[1]?", "1"),
    (
        (
            "By how much does a padded column of 0 change the sum of squared differences of a row with "
            "mean 10, if nothing is masked?"
        ),
        "100",
    ),
]
