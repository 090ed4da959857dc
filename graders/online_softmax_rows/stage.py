"""Softmax-weighted means of rows in one pass, in CUDA C++: maximum and both sums carried and merged."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "Online softmax of rows"
path, order = "Reductions", 3
needs, hours = ("softmax_three_pass",), "3"
language = "cuda"
seam = (
    "onlineSoftmaxRows(x: f32[rows, width], v: f32[width], rows: int, width: int)"
    " -> m: f32[rows], l: f32[rows], out: f32[rows]"
)
work = "6 * rows * width"
independent = "rows"
inputs = {"x": mixture(normal(), normal(10), normal(100))}
contract = {"results": "m is the largest x of the row, l the sum of e^(x - m), out the sum of e^(x - m) v divided by l"}


def reference(x, v):
    m = x.max(axis=1)
    weight = np.exp(x - m[:, None])
    total = weight.sum(axis=1)
    return m, total, (weight * v).sum(axis=1) / total


def factor(m, larger):
    """e^(m - larger), and 1 where both are -inf."""
    return np.exp(np.where(m == larger, 0.0, m - np.where(np.isinf(larger), 0.0, larger)))


def streamed(x, v, lanes=32, on_l=True, on_a=True, merge_l=True, merge_a=True, running=True):
    """The algorithm with a step left out: column c belongs to lane c % lanes, and the lanes are merged at the end."""
    steps = -(-x.shape[1] // lanes)
    pad = steps * lanes - x.shape[1]
    scores = np.pad(x, ((0, 0), (0, pad)), constant_values=-np.inf).reshape(len(x), steps, lanes)
    values = np.pad(v, (0, pad)).reshape(steps, lanes)
    m, total, a = np.full((len(x), lanes), -np.inf), np.zeros((len(x), lanes)), np.zeros((len(x), lanes))
    for step in range(steps):
        score = scores[:, step]
        larger = np.maximum(m, score) if running else np.where(np.isinf(score), m, score)
        p = np.where(np.isinf(score), 0.0, np.exp(np.where(np.isinf(score), 0.0, score - larger)))
        alpha = factor(m, larger)
        total = (alpha if on_l else 1) * total + p
        a = (alpha if on_a else 1) * a + p * values[step]
        m = larger
    top = m.max(axis=1)
    beta = factor(m, np.broadcast_to(top[:, None], m.shape))
    total = ((beta if merge_l else 1) * total).sum(axis=1)
    return top, total, ((beta if merge_a else 1) * a).sum(axis=1) / total


def lane_0(x, v):
    return reference(x[:, ::32], v[::32])


cases = """
by_hand    rows=1 width=3 x=[[0,0,0.6931471805599453]] v=[1,3,10]
one_value  rows=3 width=1
falling    rows=1 width=4 x=[[3,2,1,0]] v=[1,2,3,4]
few        rows=2 width=5
warp_edge  rows=3 width=31
past_warp  rows=3 width=33
rising     rows=2 width=65
long_row   rows=3 width=257
tall       rows=70 width=7
spread     rows=3 width=70 x=normal(10)
far        rows=3 width=70 x=normal(100)
negative   rows=1 width=34 x=uniform(-300, -200)
drawn      rows=1..40 width=1..600 times=5
drawn_wide rows=1..3 width=2000..3000
secret     rows=7 width=515 hidden
long       rows=1..64 width=5000..50000 needs_gpu times=2
profile    rows=2048 width=4095 measured needs_gpu
"""
mistakes = {
    "l_not_rescaled": (
        lambda x, v: streamed(x, v, on_l=False),
        "l was not rescaled when the maximum rose",
        "l = alpha * l + p with alpha = e^(m - m_new), before m is replaced.",
    ),
    "a_not_rescaled": (
        lambda x, v: streamed(x, v, on_a=False),
        "The numerator was not rescaled when the maximum rose",
        "a = alpha * a + p * v, with the same alpha as l.",
    ),
    "nothing_rescaled": (
        lambda x, v: streamed(x, v, on_l=False, on_a=False),
        "Neither sum was rescaled when the maximum rose",
        "Both old sums are relative to the old maximum: multiply them by e^(m - m_new).",
    ),
    "merged_without_rescaling": (
        lambda x, v: streamed(x, v, merge_l=False, merge_a=False),
        "The lanes' sums were added as they were",
        "Each lane's sums are relative to its own maximum. Rescale both by e^(m - m_of_all) first.",
    ),
    "a_merged_without_rescaling": (
        lambda x, v: streamed(x, v, merge_a=False),
        "The lanes' numerators were added as they were",
        "A merge rescales l and a alike.",
    ),
    "one_thread_nothing_rescaled": (
        lambda x, v: streamed(x, v, lanes=1, on_l=False, on_a=False),
        "Neither sum was rescaled when the maximum rose (one thread a row)",
        "Both old sums are relative to the old maximum: multiply them by e^(m - m_new).",
    ),
    "lane_0_alone": (lane_0, "Only lane 0's columns count", "Merge the lanes' states with shuffles: m, l and a."),
    "latest_for_the_running": (
        lambda x, v: streamed(x, v, running=False),
        "The latest score was taken for the running maximum",
        "m_new = max(m, score).",
    ),
    "not_divided": (
        lambda x, v: (*reference(x, v)[:2], reference(x, v)[1] * reference(x, v)[2]),
        "The numerator was not divided by l",
        "out = a / l, once, at the end.",
    ),
    "plain_mean": (
        lambda x, v: (*reference(x, v)[:2], np.broadcast_to(v.mean(), (len(x),))),
        "out is the plain mean of v",
        "Each value weighs e^(x - m).",
    ),
}
edits = r"""
l_not_rescaled wrong_answer: alpha * state.l + p, => state.l + p,
a_not_rescaled wrong_answer: alpha * state.a + p * v[column] => state.a + p * v[column]
nothing_rescaled wrong_answer: alpha = rescale(state.m, larger), p => alpha = 1.0f, p
merged_without_rescaling wrong_answer: alpha = rescale(one.m, m), beta = rescale(other.m, m); => alpha = 1.0f, beta = 1.0f;
a_merged_without_rescaling wrong_answer: alpha * one.a + beta * other.a => one.a + other.a
lane_0_alone wrong_answer: "        state = merge(state, other);\n" =>
latest_for_the_running wrong_answer wrong_value: const float larger = fmaxf(state.m, score); => const float larger = score;
not_divided wrong_answer: state.a / state.l => state.a
inf_minus_inf wrong_answer wrong_value: return m == larger ? 1.0f : expf(m - larger); => return expf(m - larger);
alpha_upside_down wrong_answer wrong_value: expf(m - larger); } => expf(larger - m); }
merge_one_sided wrong_answer wrong_value: beta = rescale(other.m, m); => beta = 1.0f;
step_missing wrong_answer wrong_value: int step = 16; => int step = 8;
starter_unrescaled_numerator wrong_answer of starter wrong_value: weighted += p * v[column]; => weighted += v[column];
no_maximum wrong_answer wrong_value: const float larger = fmaxf(state.m, score); => const float larger = 0.0f;
rows_unchecked runtime_error illegal_address: "    if (row >= rows) return;\n" =>
v_scribbled contract_violation: "        m[row] = state.m;"
    => "        const_cast<float*>(v)[0] = state.m;\n        m[row] = state.m;"
"""
done_when = [
    ("The states (0, 2, 4) and (ln 2, 1, 10), merged: the output a / l?", "6"),
    ("And if a is not rescaled in the merge?", "7"),
]
