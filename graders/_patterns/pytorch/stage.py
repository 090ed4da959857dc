"""out = factor * x + y, row by row: a stage to start from."""

from kernelgate.inputs import mixture, normal

title, path, order, language = "Scale and add", "Warm-up", 1, "pytorch"
seam = "pattern(x: f32[rows, width], y: f32[rows, width], factor: float) -> out: f32[rows, width]"
inputs = {"x": mixture(normal(), normal(1e-3), normal(100))}
independent = "rows width"


def reference(x, y, factor):
    return factor * x + y


cases = """
by_hand      rows=1 width=2 factor=2.0 x=[[1,2]] y=[[10,20]]
rectangular  rows=33 width=7 factor=-1.5
drawn        rows=1..90 width=1..300 factor=0.5..4.0 times=3
secret       rows=65 width=129 factor=3.0 hidden
"""
mistakes = {
    "forgot_y": (lambda x, y, factor: factor * x, "y was not added", "The result equals factor * x: add y after it."),
}
edits = r"""
forgot_y wrong_answer: factor * x + y => factor * x
x_scaled_in_place contract_violation inputs_changed: factor * x + y => x.mul_(factor) + y
a_list contract_violation wrong_return_type: factor * x + y => (factor * x + y).tolist()
"""
done_when = [("2 * 1 + 10 is", "12"), "Every size is right, whatever it is a multiple of"]
