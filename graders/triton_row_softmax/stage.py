"""Softmax of each row, float32 and bfloat16, any number of columns, computed in float32."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "Row softmax in Triton"
path, order = "Triton", 2
needs, hours = ("triton_matmul",), "2"
language = "triton"
seam = "triton_row_softmax(x: T[rows, columns]) -> y: T[rows, columns]"
work = "5 * rows * columns"
independent = "rows"
inputs = {"x": mixture(normal(), normal(10), normal(2, 200), normal(2, -200))}
contract = {
    "dtypes": "x and y are float32, or both bfloat16; the softmax is computed in float32",
    "torch": "allocates and makes views; every value is computed by kernels that the function launches",
}


def reference(x):
    weight = np.exp(x - x.max(axis=1, keepdims=True))
    return weight / weight.sum(axis=1, keepdims=True)


def no_maximum(x):
    weight = np.where(x > 88.72, np.inf, np.exp(np.minimum(x, 88.72))).astype(np.float32).astype(float)
    return weight / weight.sum(axis=1, keepdims=True)


def padding_counts(x):
    """As if the row went on with zeros up to the next power of two."""
    missing = (1 << (x.shape[1] - 1).bit_length()) - x.shape[1]
    top = np.maximum(x.max(axis=1, keepdims=True), 0 if missing else -np.inf)
    weight = np.exp(x - top)
    return weight / (weight.sum(axis=1, keepdims=True) + missing * np.exp(-top))


cases = """
by_hand     dtype=f32  rows=1 columns=2 x=[[0,1.0986122886681098]]
one_column  dtype=f32  rows=5 columns=1
power       dtype=f32  rows=3 columns=64
odd         dtype=f32  rows=37 columns=129
wide        dtype=f32  rows=9 columns=1023
spread      dtype=f32  rows=9 columns=65 x=normal(10)
large       dtype=f32  rows=17 columns=65 x=normal(2, 200)
negative    dtype=f32  rows=17 columns=65 x=normal(2, -200)
odd_bf16    dtype=bf16 rows=37 columns=129
large_bf16  dtype=bf16 rows=17 columns=65 x=normal(2, 200)
flat_bf16   dtype=bf16 rows=2 columns=700 x=constant(1)
drawn       dtype=f32|bf16 rows=1..90 columns=1..700 times=6
secret      dtype=f32  rows=7 columns=513 hidden
long        dtype=f32|bf16 rows=1..300 columns=2000..16000 needs_gpu times=3
"""
mistakes = {
    "no_maximum": (
        no_maximum,
        "The row's maximum was not subtracted",
        "exp overflows above 88.7; subtract the maximum first.",
    ),
    "padding_counts": (
        padding_counts,
        "Padded columns count as zeros",
        'Load with other=float("-inf"), so that exp of a padded column is 0.',
    ),
    "by_column": (
        lambda x: np.exp(x - x.max(axis=0)) / np.exp(x - x.max(axis=0)).sum(axis=0),
        "Normalised over columns, not over rows",
        "The sum runs over axis 1 of x, which is axis 0 of a row.",
    ),
    "not_normalised": (
        lambda x: np.exp(x - x.max(axis=1, keepdims=True)),
        "The exponentials were not divided by their sum",
        "Divide by tl.sum(weight, axis=0).",
    ),
    "powers_of_two": (
        lambda x: reference(x * np.log(2)),
        "Powers of 2 were taken for powers of e",
        "tl.exp2 wants its argument times log2(e).",
    ),
    "logarithm": (
        lambda x: np.log(np.maximum(reference(x), 1e-300)),
        "This is the logarithm of the softmax",
        "Return the weights themselves.",
    ),
    "nothing_done": (lambda x: x.copy(), "x came back as it was", "The softmax belongs between load and store."),
    "divided_by_count": (
        lambda x: np.exp(x - x.max(axis=1, keepdims=True)) / x.shape[1],
        "Divided by the number of columns",
        "Divide by the sum of the exponentials.",
    ),
}
edits = r"""
starter_as_it_is wrong_answer of starter nothing_done: Rows are loaded => Rows are read
no_maximum wrong_answer: tl.exp(x - tl.max(x, axis=0)) => tl.exp(x)
padding_counts wrong_answer: other=float("-inf") => other=0.0
masked_without_other wrong_answer wrong_value: , other=float("-inf") =>
not_normalised wrong_answer: y = weight / tl.sum(weight, axis=0) => y = weight
powers_of_two wrong_answer: tl.exp(x - tl.max(x, axis=0)) => tl.exp2(x - tl.max(x, axis=0))
logarithm wrong_answer wrong_value: y = weight / tl.sum(weight, axis=0)
    => y = x - tl.max(x, axis=0) - tl.log(tl.sum(weight, axis=0))
divided_by_count wrong_answer: weight / tl.sum(weight, axis=0) => weight / columns
in_half wrong_answer wrong_value: y = weight / tl.sum(weight, axis=0)
    => y = (weight / tl.sum(weight, axis=0)).to(tl.float16)
every_other_row wrong_answer wrong_value: row = tl.program_id(0) => row = tl.program_id(0) // 2 * 2
first_block_only wrong_answer wrong_value: BLOCK=triton.next_power_of_2(x.shape[1])
    => BLOCK=min(128, triton.next_power_of_2(x.shape[1]))
stored_without_mask runtime_error illegal_address: y.to(y_ptr.dtype.element_ty), mask=inside => y.to(y_ptr.dtype.element_ty)
    ;; BLOCK=triton.next_power_of_2(x.shape[1]) => BLOCK=64 * triton.next_power_of_2(x.shape[1])
torch_softmax contract_violation torch_operator: "    return y" => "    return torch.softmax(x, dim=1)"
float32_returned contract_violation wrong_dtype: y = torch.empty_like(x)
    => y = torch.empty(x.shape, dtype=torch.float32, device=x.device)
in_place contract_violation inputs_changed: tl.store(y_ptr + row
    => "tl.store(x_ptr + row * columns + at, y.to(x_ptr.dtype.element_ty), mask=inside)\n    tl.store(y_ptr + row"
block_not_a_power compile_error: BLOCK=triton.next_power_of_2(x.shape[1]) => BLOCK=x.shape[1] + 1
"""
done_when = [
    ("The softmax of [0, ln 3]: its first value?", "0.25"),
    ("A row has 129 columns. How wide is the solution's tile?", "256"),
]
