"""out = factor * x + y, row by row, in half and single precision: a stage to start from."""

from kernelgate.inputs import mixture, normal

title, path, order, language = "Scale and add", "Warm-up", 1, "triton"
seam = "pattern(x: T[rows, width], y: T[rows, width], factor: float) -> out: T[rows, width]"
inputs = {"x": mixture(normal(), normal(1e-2))}
work, independent = "2 * rows * width", "rows width"


def reference(x, y, factor):
    return factor * x + y


cases = """
by_hand      rows=1 width=2 factor=2.0 dtype=f32 x=[[1,2]] y=[[10,20]]
rectangular  rows=33 width=7 factor=-1.5 dtype=f16
drawn        rows=1..90 width=1..300 factor=0.5..4.0 dtype=f32|bf16 times=3
secret       rows=65 width=129 factor=3.0 dtype=f32 hidden
"""
mistakes = {
    "forgot_y": (lambda x, y, factor: factor * x, "y was not added", "The result equals factor * x: add y after it."),
}
edits = r"""
forgot_y wrong_answer: factor * a + b => factor * a
tail_left_out wrong_answer: grid = (triton.cdiv(x.numel(), 256),) => grid = (max(1, x.numel() // 256),)
no_kernel contract_violation: "    scale_and_add[grid]" => "    if factor > 1e9:\n        scale_and_add[grid]"
"""
done_when = [("2 * 1 + 10 is", "12"), "Every size is right, whatever it is a multiple of"]
