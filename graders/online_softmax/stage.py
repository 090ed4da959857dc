"""Fold attention scores block by block into a running maximum, normalizer and weighted sum, exactly."""

import math

import numpy as np

from kernelgate.protocol import Table

title = "Online softmax"
path, order = "Attention", 1
needs, hours = ("PyTorch",), "3"
language = "pytorch"
seam = (
    "online_softmax_update(row_max: T[rows], normalizer: T[rows], numerator: T[rows, dims], scores: T[rows, keys],"
    " values: T[keys, dims]) -> new_max: T[rows], new_normalizer: T[rows], new_numerator: T[rows, dims]"
)
ways = {
    "reuse": (
        "(row_max: T[rows], normalizer: T[rows], numerator: T[rows, dims], scores: T[rows, keys], values: T[keys, dims],"
        " other_scores: T[rows, keys], other_values: T[keys, dims])"
        " -> new_max: T[rows], new_normalizer: T[rows], new_numerator: T[rows, dims],"
        " second_max: T[rows], second_normalizer: T[rows], second_numerator: T[rows, dims],"
        " again_max: T[rows], again_normalizer: T[rows], again_numerator: T[rows, dims]"
    ),
    "trace": (
        "(scores: T[rows, sum(blocks)], values: T[sum(blocks), dims], blocks: list)"
        " -> trace_max: T[blocks, rows], trace_normalizer: T[blocks, rows], trace_numerator: T[blocks, rows, dims],"
        " output: T[rows, dims], logsumexp: T[rows]"
    ),
    "attention": (
        "(q: T[rows, width], k: T[keys, width], v: T[keys, dims], block_size: int)"
        " -> output: T[rows, dims], logsumexp: T[rows]"
    ),
    "sizes": (
        "(q: T[rows, width], k: T[keys, width], v: T[keys, dims], block_sizes: list)"
        " -> output_by_size: T[block_sizes, rows, dims], logsumexp_by_size: T[block_sizes, rows]"
    ),
    "update_gradient": (
        "(row_max: T[rows], normalizer: T[rows], numerator: T[rows, dims], scores: T[rows, keys], values: T[keys, dims],"
        " output_weight: T[rows, dims], logsumexp_weight: T[rows]) -> output: T[rows, dims], logsumexp: T[rows],"
        " output_grad_normalizer: T[rows], output_grad_numerator: T[rows, dims],"
        " output_grad_scores: T[rows, keys], output_grad_values: T[keys, dims],"
        " logsumexp_grad_normalizer: T[rows], logsumexp_grad_numerator: T[rows, dims],"
        " logsumexp_grad_scores: T[rows, keys], logsumexp_grad_values: T[keys, dims]"
    ),
    "attention_gradient": (
        "(q: T[rows, width], k: T[keys, width], v: T[keys, dims], output_weight: T[rows, dims],"
        " logsumexp_weight: T[rows], block_size: int) -> output: T[rows, dims], logsumexp: T[rows],"
        " output_grad_q: T[rows, width], output_grad_k: T[keys, width], output_grad_v: T[keys, dims],"
        " logsumexp_grad_q: T[rows, width], logsumexp_grad_k: T[keys, width], logsumexp_grad_v: T[keys, dims]"
    ),
}
titles = {
    "new_max": "new row maximum",
    "new_normalizer": "new normalizer",
    "new_numerator": "new numerator",
    "second_max": "row maximum of another block on the same state",
    "second_normalizer": "normalizer of another block on the same state",
    "second_numerator": "numerator of another block on the same state",
    "again_max": "row maximum of the first block once more",
    "again_normalizer": "normalizer of the first block once more",
    "again_numerator": "numerator of the first block once more",
    "trace_max": "row maximum after each block",
    "trace_normalizer": "normalizer after each block",
    "trace_numerator": "numerator after each block",
    "output": "attention output",
    "logsumexp": "log-sum-exp of the scaled scores",
    "output_by_size": "attention output for each block size",
    "logsumexp_by_size": "log-sum-exp for each block size",
    "output_grad_normalizer": "gradient of output to normalizer",
    "output_grad_numerator": "gradient of output to numerator",
    "output_grad_scores": "gradient of output to scores",
    "output_grad_values": "gradient of output to values",
    "output_grad_q": "gradient of output to q",
    "output_grad_k": "gradient of output to k",
    "output_grad_v": "gradient of output to v",
    "logsumexp_grad_normalizer": "gradient of log-sum-exp to normalizer",
    "logsumexp_grad_numerator": "gradient of log-sum-exp to numerator",
    "logsumexp_grad_scores": "gradient of log-sum-exp to scores",
    "logsumexp_grad_values": "gradient of log-sum-exp to values",
    "logsumexp_grad_q": "gradient of log-sum-exp to q",
    "logsumexp_grad_k": "gradient of log-sum-exp to k",
    "logsumexp_grad_v": "gradient of log-sum-exp to v",
}
probe = "linear in v"
limits = {"case_s": 8, "memory_mb": 512, "scratch_mb": 16, "source_kb": 64}
contract = {
    "row_max": "The largest score of each query row over the keys so far; -inf before the first block.",
    "normalizer": "The sum of exp(score - row_max) over the keys so far; 0 before the first block.",
    "numerator": "The sum of exp(score - row_max) · value over the keys so far; 0 before the first block.",
    "scores": "This block's scores, already scaled. All finite, and K is at least 1.",
    "values": "This block's values.",
    "returns": (
        "A tuple (new_max [Q], new_normalizer [Q], new_numerator [Q, Dv]) in exactly this order: the same three "
        "quantities with this block included. The numerator is not divided by the normalizer."
    ),
    "dtype and device": (
        "float32 and float64; results keep the dtype and the device of the arguments, and are plain torch tensors."
    ),
    "arguments": (
        "All five stay as they were, bit for bit: return new tensors, write nothing in place. The same state may be"
        " used for several updates."
    ),
    "autograd": (
        "Gradients flow through every block to scores, values, normalizer and numerator, from the output and from "
        "the log-sum-exp. The gradient of row_max itself is not asked for: results do not depend on which maximum "
        "was subtracted."
    ),
    "block_attention": (
        "Provided. block_attention(q [Nq, D], k [Nk, D], v [Nk, Dv], block_size) walks query and key tiles (the "
        "last may be smaller), divides scores by sqrt(D), calls your update once per key tile and returns (output "
        "[Nq, Dv], logsumexp [Nq]): numerator / normalizer and row_max + log(normalizer)."
    ),
    "left out": "Masks, dropout, empty blocks and infinite scores.",
}
cases = """
defaults dtype=f32,f64
defaults group=T0
hand_update           rows=2 keys=3 dims=2 how=countable \
    title="One update that can be checked by hand: scores are logarithms of whole numbers"
first_block           how=empty rows=3 keys=4 dims=2 \
    title="First block: the state is still empty (-inf, 0, 0)"
single_key            rows=1 keys=1 dims=1 \
    title="One query, one key, one value"
rectangular_update    rows=5 keys=3 dims=7 \
    title="5 query rows, 3 keys, 7 value columns"
rectangular_attention seam=attention block_size=4 rows=5 keys=8 width=4 dims=3 \
    title="5 queries, 8 keys, width 4, value width 3, blocks of 4"
partial_tiles         seam=attention block_size=4 rows=7 keys=11 width=5 dims=3 \
    title="7 queries, 11 keys, blocks of 4: the last tile is partial on both sides"
one_large_tile        seam=attention block_size=64 rows=6 keys=9 width=3 dims=4 \
    title="One tile larger than the whole input"
defaults group=T1
analytic_trace        seam=trace blocks=[1,1] rows=1 dims=1 scores=[[0,1.0986122886681098]] values=[[2],[6]] \
    title="Scores 0 and log 3, values 2 and 6, one key a block: output 5, log-sum-exp log 4"
analytic_attention seam=attention block_size=1 rows=1 keys=2 width=1 dims=1 q=[[1]] k=[[0],[1.0986122886681098]] v=[[2],[6]] \
    title="The same through block_attention with block size 1"
defaults group=T2
uneven_blocks         seam=trace blocks=[1,5,2,13,3] rows=6 dims=5 levels=[0,0.5,-0.5,1,0] spread=1.5 \
    title="24 keys in blocks of 1, 5, 2, 13 and 3, the state after each"
partition_invariance  seam=sizes block_sizes=[1,2,5,9,23] rows=9 keys=23 width=6 dims=4 \
    title="One attention in blocks of 1, 2, 5, 9 and 23"
uniform_scores        seam=trace blocks=[4,1,4] rows=3 dims=4 levels=[3,3,3] spread=0 \
    title="All scores equal: every key weighs the same"
maximum_rising        seam=trace blocks=[3,4,2,5] rows=4 dims=3 levels=[-1000,-200,-199,900] spread=1 \
    title="Scores from -1000 to 900, the maximum moves in every block"
maximum_falling       seam=trace blocks=[3,4,2,5] rows=4 dims=3 levels=[900,899,-200,-1000] spread=1 \
    title="Scores from 900 to -1000, the maximum never moves after the first block"
all_scores_large      seam=trace blocks=[4,4,3] rows=4 dims=3 levels=[1000,1001,999] spread=1 \
    title="Scores around 1000: exp overflows unless the maximum is subtracted first"
all_scores_small      seam=trace blocks=[4,4,3] rows=4 dims=3 levels=[-1000,-999,-1001] spread=1 \
    title="Scores around -1000: exp underflows to 0 unless the maximum is subtracted first"
far_apart_in_a_tile   seam=trace blocks=[5,3,6] rows=5 dims=3 levels=[0,0,0] spread=200 \
    title="Scores hundreds apart within each tile"
extreme_attention     seam=attention block_size=3 rows=8 keys=14 width=4 dims=3 reach=64 \
    title="Attention with scores up to about ±1000, blocks of 3"
reused_state          seam=reuse rows=4 keys=3 dims=3 \
    title="The same state taken through two different blocks, then through the first again"
update_gradient       seam=update_gradient rows=4 keys=3 dims=3 \
    title="Gradients of one update"
attention_gradient    seam=attention_gradient block_size=4 rows=7 keys=11 width=4 dims=3 \
    title="Gradients through all blocks against dense attention"
extreme_gradient      seam=attention_gradient block_size=3 rows=6 keys=10 width=4 dims=3 reach=64 \
    title="Gradients stay finite and right with scores up to about ±1000"
defaults group=T3
tokens_37             seam=sizes block_sizes=[1,3,8,16,37,64] rows=37 keys=37 width=8 dims=8 \
    title="37 tokens in blocks of 1, 3, 8, 16, 37 and 64, against dense attention"
defaults dtype=f32|f64
low    seam=trace  rows=1..48 dims=1..48 blocks=[1..8,1..8,1..8,1..8] spread=0.1..2.0 \
    course=rising|falling|anywhere|high|low magnitude=1.0..100.0 \
    title="trace: {rows} queries, value width {dims}, blocks of {blocks}, scores {course} (up to about {magnitude:.4g})"
middle seam=trace  rows=1..48 dims=1..48 blocks=[1..8,1..8,1..8] spread=0.1..2.0 course=rising|anywhere magnitude=100.0..999.0 \
    title="trace: {rows} queries, value width {dims}, blocks of {blocks}, scores {course} (up to about {magnitude:.4g})"
beyond seam=trace  rows=1..48 dims=1..48 blocks=[1..8,1..8,1..8] spread=0.1..2.0 course=falling|high magnitude=3100.0..9000.0 \
    title="trace: {rows} queries, value width {dims}, blocks of {blocks}, scores {course} (up to about {magnitude:.4g})"
update             rows=1..48 keys=1..48 dims=1..48 level=1.0..8000.0 \
    title="update: {rows} queries, {keys} keys, value width {dims}, scores near {level:.4g}"
again  seam=reuse  rows=1..48 keys=1..48 dims=1..48 level=-8000.0..8000.0 \
    title="reuse: {rows} queries, {keys} keys, value width {dims}, scores near {level:.4g}"
tiles  seam=attention rows=1..48 keys=1..48 width=1..48 dims=1..48 block_size=1..48 \
    title="attention: {rows} queries, {keys} keys, value width {dims}, blocks of {block_size}"
slopes seam=attention_gradient rows=1..48 keys=1..48 width=1..48 dims=1..48 block_size=1..48 \
    title="attention gradient: {rows} queries, {keys} keys, value width {dims}, blocks of {block_size}"
far    seam=attention rows=1..48 keys=2..96 width=4 dims=1..48 block_size=1..48 reach=64..512 \
    title="attention: {rows} queries, {keys} keys, value width {dims}, reach of keys {reach}, blocks of {block_size}"
"""
done_when = [
    ("Trace the two-block example by hand: scores 0 and log 3, values 2 and 6, one key a block. The output is", "5"),
    ("The log-sum-exp of that example is log of", "4"),
    ("After its second block, the normalizer (relative to the maximum log 3) is, as a fraction,", "4/3"),
    ("And the numerator, as a fraction,", "20/3"),
    ("The maximum of a row rises by log 2. The old sums are multiplied by", "1/2"),
    "You can say what each of the three carried tensors holds after any block, and relative to what.",
    "You can say why a block that does not raise the maximum leaves the old sums as they are.",
    "You can say why gradients stay right when the maximum is detached and wrong when the sums are.",
    "Your file is accepted: all groups T0 to T3 are right.",
]


# --- inputs -----------------------------------------------------------------------------------------------------------


def inputs(rng, rows, keys, dims, how="mid_stream", level=0.0):
    """A state that some keys have been through. Even rows: the new block raises the maximum; odd rows: it does not."""
    if how == "countable":
        return countable(rng)
    scores, values = block(rng, rows, keys, dims)
    if how == "empty":
        state = np.full(rows, -np.inf), np.zeros(rows), np.zeros((rows, dims))
    else:
        scores += level
        rises = np.where(np.arange(rows) % 2 == 0, 1.0, -1.0) * rng.uniform(0.7, 2.0, size=rows)
        state = scores.max(axis=1) - rises, rng.uniform(1.0, 4.0, size=rows), rng.normal(size=(rows, dims)) + 1.0
    return dict(zip(("row_max", "normalizer", "numerator"), state, strict=True)) | {"scores": scores, "values": values}


def countable(rng):
    """Logarithms of small whole numbers: every exponential is a fraction one can write down. Row 0 raises the maximum."""
    factor, top = rng.integers(2, 6), rng.integers(2, 4)
    rising = rng.permutation([top * factor, *rng.integers(1, top * factor, size=2)])
    staying = rng.permutation([rng.integers(4, 9), *rng.integers(1, 5, size=2)])
    made = {"row_max": np.log([top, 12.0]), "normalizer": rng.integers(2, 6, size=2)}
    made |= {"numerator": rng.integers(1, 10, size=(2, 2)), "scores": np.log(np.stack([rising, staying]))}
    return made | {"values": rng.integers(1, 10, size=(3, 2))}


def block(rng, rows, keys, dims):
    return rng.normal(size=(rows, keys)) * 1.5, rng.normal(size=(keys, dims))


def weights(rng, rows, dims):
    """What output and logsumexp are multiplied by before they are summed and differentiated."""
    return {"output_weight": rng.normal(size=(rows, dims)), "logsumexp_weight": rng.normal(size=rows)}


def inputs_update_gradient(rng, rows, keys, dims):
    return {**weights(rng, rows, dims), **inputs(rng, rows, keys, dims)}


def inputs_reuse(rng, rows, keys, dims, level=0.0):
    made, (scores, values) = inputs(rng, rows, keys, dims, level=level), block(rng, rows, keys, dims)
    return {**made, "other_scores": scores + level + 1.0, "other_values": values}


def inputs_trace(rng, rows, dims, blocks, levels=(), spread=0.0, course="", magnitude=0.0):
    """Scores around one level a block, so that maxima move where wanted; drawn ones take a course."""
    if course:
        low, high = {"high": (0.99, 1.0), "low": (-1.0, -0.99)}.get(course, (-1.0, 1.0))
        levels = magnitude * rng.uniform(low, high, len(blocks))
        levels = np.sort(levels)[:: -1 if course == "falling" else 1] if course in ("rising", "falling") else levels
    at = np.repeat(np.asarray(levels, float), blocks)
    return {"scores": at + rng.normal(size=(rows, len(at))) * spread, "values": rng.normal(size=(len(at), dims)) * 2.0}


def inputs_attention(rng, rows, keys, width, dims, reach=0):
    """With a reach: scores up to 16 times it that float32 holds exactly, and beside every key one that still has weight."""
    if not reach:
        q, k = rng.normal(size=(rows, width)) * 1.5, rng.normal(size=(keys, width)) * 1.5
        return {"q": q, "k": k, "v": rng.normal(size=(keys, dims))}
    q, half = rng.integers(-32, 33, size=(rows, 4)) / 4.0, -(-keys // 2)
    far = rng.integers(-reach, reach + 1, size=(half, 4)).astype(float)
    near = far + np.eye(4)[rng.integers(0, 4, size=half)] * rng.choice([-1.0, 1.0], size=(half, 1))
    return {"q": q, "k": np.concatenate([far, near])[:keys], "v": rng.normal(size=(2 * half, dims))[:keys]}


inputs_sizes = inputs_attention


def inputs_attention_gradient(rng, rows, keys, width, dims, reach=0):
    return {**weights(rng, rows, dims), **inputs_attention(rng, rows, keys, width, dims, reach)}


WHY = (
    "A block costs at most 4 roundings (exp, two products, a sum), the finest partition has 48 blocks and values reach about "
    "4; who merges blocks by their log-sum-exp, as split kernels do, rounds numbers of the scores' size: 8 of them; of far "
    "keys' gradients 64 times that, for keys count up to 64 there, and a gradient is a sum of them that cancels"
)


def tolerance(dtype, seam, levels=(0.0,), spread=0.0, magnitude=0.0, level=0.0, reach=0):
    largest = max(magnitude, abs(level), 16 * reach, *map(abs, levels)) + 5 * spread
    allowed = (4 * 48 * 4 + 8 * largest) * (2.0**-24 if dtype == "float32" else 2.0**-53)
    return (64 if reach and seam == "attention_gradient" else 1) * allowed, allowed, WHY


def calls(seam, rows=0, keys=0, blocks=(), block_size=0, block_sizes=()):
    tiles = sum(-(-rows // size) * -(-keys // size) for size in (block_sizes or [block_size]) if size)
    return {"reuse": 3, "update_gradient": 1, "trace": len(blocks)}.get(seam, tiles)


# --- the truth, which never uses the recurrence that is taught: a state is over all its keys at once -----------------------


def merged(state, scores, values):
    """The state over its keys and the block's: new maximum, and both old sums brought to it."""
    row_max = np.maximum(state[0], scores.max(axis=1))
    old, new = np.exp(state[0] - row_max), np.exp(scores - row_max[:, None])
    return row_max, old * state[1] + new.sum(axis=1), old[:, None] * state[2] + new @ values


def dense(scores, values):
    row_max = scores.max(axis=1)
    return row_max, (p := np.exp(scores - row_max[:, None])).sum(axis=1), p @ values


def finished(state):
    return state[2] / state[1][:, None], state[0] + np.log(state[1])


def states_of(scores, values, widths, step):
    """After each block: over all keys so far, or by a wrong step from the empty state."""
    state = np.full(len(scores), -np.inf), np.zeros(len(scores)), np.zeros((len(scores), values.shape[1]))
    for end, width in zip(np.cumsum(widths), widths, strict=True):
        seen = slice(end - width, end)
        state = step(state, scores[:, seen], values[seen]) if step else dense(scores[:, :end], values[:end])
        yield state


def reference(row_max, normalizer, numerator, scores, values, step=merged):
    return step((row_max, normalizer, numerator), scores, values)


def reference_reuse(row_max, normalizer, numerator, scores, values, other_scores, other_values, step=merged):
    first = step((row_max, normalizer, numerator), scores, values)
    return *first, *step((row_max, normalizer, numerator), other_scores, other_values), *first


def reference_trace(scores, values, blocks, step=None):
    states = list(states_of(scores, values, blocks, step))
    return *(np.stack(parts) for parts in zip(*states, strict=True)), *finished(states[-1])


def reference_attention(q, k, v, block_size, step=None):
    *_, last = states_of(q @ k.T / math.sqrt(q.shape[1]), v, tiles_of(len(k), block_size if step else len(k)), step)
    return finished(last)


def tiles_of(keys, size):
    return [min(size, keys - first) for first in range(0, keys, size)]


def reference_sizes(q, k, v, block_sizes, step=None):
    runs = [reference_attention(q, k, v, size, step) for size in block_sizes]
    return tuple(np.stack(parts) for parts in zip(*runs, strict=True))


def reference_update_gradient(row_max, normalizer, numerator, scores, values, step=merged, cut="", **weight):
    state = merged(old := (row_max, normalizer, numerator), scores, values)
    alpha = np.exp(row_max - state[0]) / state[1] * (0.0 if cut else 1.0)

    def gradients(d_output, d_logsumexp):
        p, d_scores = score_gradients(scores, values, state, d_output, d_logsumexp)
        d_scores = d_scores + (left_over(scores, state, d_scores, d_logsumexp) if cut == "sums" else 0.0)
        reached = d_logsumexp - (d_output * finished(state)[0]).sum(axis=1)
        return alpha * reached, alpha[:, None] * d_output, d_scores, p.T @ d_output

    return *finished(step(old, scores, values)), *both(gradients, **weight)


def reference_attention_gradient(q, k, v, block_size, step=None, cut="", **weight):
    scale, first = 1.0 / math.sqrt(q.shape[1]), len(k) - tiles_of(len(k), block_size)[-1] if cut else 0
    state = dense(scores := q @ k.T * scale, v)

    def gradients(d_output, d_logsumexp):
        p, d_scores = score_gradients(scores, v, state, d_output, d_logsumexp)
        d_v = p.T @ d_output
        d_scores[:, :first], d_v[:first] = 0.0, 0.0
        d_scores += left_over(scores, state, d_scores, d_logsumexp) if cut == "sums" else 0.0
        return d_scores @ k * scale, d_scores.T @ q * scale, d_v

    return *reference_attention(q, k, v, block_size, step), *both(gradients, **weight)


def both(gradients, output_weight, logsumexp_weight):
    """Of the sum of weighted outputs, then of the sum of weighted log-sum-exps."""
    return *gradients(output_weight, 0.0 * logsumexp_weight), *gradients(0.0 * output_weight, logsumexp_weight)


def score_gradients(scores, values, state, d_output, d_logsumexp):
    """The softmax's weights P, and d loss / d scores: P (dO·V - dO·O) from the output, P dL from the rest."""
    p = np.exp(scores - state[0][:, None]) / state[1][:, None]
    reached = d_logsumexp - (d_output * finished(state)[0]).sum(axis=1)
    return p, p * (d_output @ values.T + reached[:, None])


def left_over(scores, state, d_scores, d_logsumexp):
    """What reaches each row's largest score through a maximum that only the last block's weights follow."""
    largest = scores == state[0][:, None]
    shares = largest / np.maximum(largest.sum(axis=1, keepdims=True), 1)
    return shares * (d_logsumexp - d_scores.sum(axis=1))[:, None]


def wrong(exp=np.exp, own_maximum=False, shift="", unscaled=(), inverted=False, dropped=False, **how):
    """One update as a submission would write it, with one line wrong."""

    def step(state, scores, values):
        scores = scores / math.sqrt(values.shape[1]) if how.get("scaled") else scores
        block_max = scores.max(axis=1)
        row_max = block_max if own_maximum else np.maximum(state[0], block_max)
        p = exp(scores - {"nothing": np.zeros_like(row_max), "block": block_max}.get(shift, row_max)[:, None])
        alpha, one = np.zeros_like(row_max) if dropped else exp(state[0] - row_max), np.ones_like(row_max)
        alpha = 1.0 / alpha if inverted else alpha
        normalizer = (one if "normalizer" in unscaled else alpha) * state[1] + p.sum(axis=1)
        numerator = (one if "numerator" in unscaled else alpha)[:, None] * state[2] + p @ values
        numerator = numerator / normalizer[:, None] if how.get("divided") else numerator
        return (normalizer, row_max, numerator) if how.get("swapped") else (row_max, normalizer, numerator)

    return step


mistakes = {
    "old_state_dropped": (
        {"step": wrong(own_maximum=True, dropped=True)},
        "The old state is dropped",
        (
            "The results are those of the new block alone. Whatever row_max, normalizer and numerator already hold "
            "has to be in the new state too."
        ),
    ),
    "alpha_missing": (
        {"step": wrong(unscaled=("normalizer", "numerator"))},
        "The old normalizer and numerator were not rescaled",
        (
            "Both old sums are relative to the old maximum. When the maximum rises from m to m', multiply both by "
            "alpha = exp(m - m') before the new block is added."
        ),
    ),
    "alpha_missing_on_normalizer": (
        {"step": wrong(unscaled=("normalizer",))},
        "The old normalizer was not rescaled",
        (
            "The numerator is right, so alpha is; the normalizer needs the same factor: alpha * normalizer + "
            "weights.sum(-1). Look at a row whose maximum rises."
        ),
    ),
    "alpha_missing_on_numerator": (
        {"step": wrong(unscaled=("numerator",))},
        "The old numerator was not rescaled",
        (
            "The normalizer is right, so alpha is; every column of the numerator needs the same factor: alpha[:, "
            "None] * numerator + weights @ values. Look at a row whose maximum rises."
        ),
    ),
    "alpha_inverted": (
        {"step": wrong(inverted=True)},
        "alpha is upside down",
        (
            "The old sums were multiplied by exp(m' - m), which grows when the maximum rises. A rising maximum "
            "makes old weights smaller: alpha = exp(m - m') is at most 1."
        ),
    ),
    "latest_block_maximum": (
        {"step": wrong(own_maximum=True)},
        "The latest block's maximum replaced the running one",
        (
            "The new maximum is the larger of row_max and the block's. Look at a row whose block stays below "
            "row_max: there exp(m - m') can overflow."
        ),
    ),
    "new_block_not_rescaled": (
        {"step": wrong(shift="block")},
        "The new block's weights are relative to its own maximum",
        (
            "Old and new sums must be relative to the same maximum: the weights are exp(scores - m') with the "
            "running maximum m', not with the block's. Look at a row whose block stays below row_max."
        ),
    ),
    "maximum_not_subtracted": (
        {"step": wrong(shift="nothing")},
        "The new block's weights are exp(scores), with no maximum subtracted",
        (
            "Subtract the new running maximum inside the exponential: exp(scores - m'). Without it exp overflows "
            "for large scores, and old and new sums are relative to different things."
        ),
    ),
    "numerator_normalized": (
        {"step": wrong(divided=True)},
        "The numerator was already divided by the normalizer",
        (
            "Return the plain weighted sum. The division happens once, after the last block; a numerator divided "
            "early is divided again at the next block."
        ),
    ),
    "maximum_and_normalizer_swapped": (
        {"step": wrong(swapped=True)},
        "new_max and new_normalizer are in each other's place",
        "The tuple is (new_max, new_normalizer, new_numerator).",
    ),
    "base_two": (
        {"step": wrong(exp=np.exp2)},
        "Powers of 2 instead of e",
        (
            "The weights are exp(x), not exp2(x). Kernels use exp2 because it is faster, on scores that were "
            "multiplied by log2(e) before; the log-sum-exp here is a natural logarithm."
        ),
    ),
    "scores_scaled_again": (
        {"step": wrong(scaled=True)},
        "The scores were divided by a square root once more",
        "block_attention has divided the scores by sqrt(D) already. The update takes them as they are.",
    ),
    "previous_blocks_detached": (
        {"cut": "state"},
        "The old state was cut off from autograd",
        (
            "All values are right, but gradients reach only the last block: the old sums were detached (detach(), "
            ".data, item(), torch.no_grad()). A new state has to be computed from the old one by differentiable "
            "operations. The maximum may be detached, if the one that is returned is the detached one too."
        ),
    ),
    "old_sums_detached": (
        {"cut": "sums"},
        "The rescaled old sums were cut off from autograd",
        (
            "All values are right, but alpha * normalizer and alpha * numerator were computed under torch.no_grad()"
            " or detached afterwards, while the new weights still follow the maximum. Gradients miss every earlier "
            "block, and the maximum's own no longer cancels."
        ),
    ),
    "argument_updated_in_place": (
        {},
        "An argument was written to",
        (
            "Operations such as +=, mul_, copy_, exp_ or out= change the caller's tensors. Compute new tensors and "
            "return those; the old state may be needed again, by the caller or by autograd."
        ),
        "inputs_changed",
    ),
}


COLUMNS = ("block size", "maximum output error", "maximum log-sum-exp error", "largest score tile (elements)")


def experiment(cases):
    """One table a dtype of the block-size experiment that ran: errors against dense attention in float64."""
    tables = []
    for ran in (each for each in cases.values() if each.case.group == "T3"):
        queries, keys = len(ran.inputs["q"]), len(ran.inputs["k"])
        worst = [
            [float(part.max()) for part in np.abs(ran.outputs[name].numbers() - want)]
            for name, want in ran.expected.items()
        ]
        tiles = [min(size, queries) * min(size, keys) for size in ran.case.params["block_sizes"]]
        rows = tuple(zip(ran.case.params["block_sizes"], *worst, tiles, strict=True))
        title = f"{queries} tokens, {ran.case.dtype}: online softmax against dense attention"
        tables.append(Table(title=title, columns=COLUMNS, rows=rows))
    return tables
