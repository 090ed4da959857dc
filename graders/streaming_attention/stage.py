"""Attention of one head in Triton, tile by tile, without a score matrix: maximum, denominator and numerator carried in
float32.
"""

import math

import numpy as np

from kernelgate.protocol import Table

title = "Streaming attention"
path, order = "Triton", 4
needs, hours = ("triton_matmul", "triton_row_softmax", "online_softmax"), "10"
language = "triton"
seam = (
    "streaming_attention(q: T[rows, dim], k: T[rows, dim], v: T[rows, dim], *, causal: bool = False, block_n: int = 32)"
    " -> out: T[rows, dim]"
)
changed = "v"
derived = {"kept": "u8[rows, dim]"}
titles = {
    "out": "attention output",
    "out_changed": "output after values of later rows changed",
    "kept": "whether an earlier row's output changed with them (0: same bits)",
}
probe = "linear in v"
work = "4 * dim * rows * (rows - causal * (rows - 1) / 2)"
limits = {"source_kb": 128}
contract = {
    "shapes": (
        "contiguous CUDA tensors of one dtype, float16 or bfloat16; rows from 1 to 2048, not a multiple of "
        "anything; dim is 16, 32 or 64; one head, equal lengths"
    ),
    "causal": "Row i sees the keys 0 to i, itself included; without it, all of them.",
    "block_n": "Keys a tile: 32 or 64. One program owns 16 query rows.",
    "state": (
        "Maximum, denominator and numerator are float32; the weights p are converted to the input's dtype before "
        "the second product."
    ),
    "anything else": (
        "ValueError, before any kernel is launched: unequal lengths, other dtypes, head sizes or block_n, batches, "
        "tensors that are not contiguous."
    ),
    "workspace": (
        "At most 64 KiB + 24 · N · (D + 2) bytes besides the output, enough for six splits of partial results; an N"
        " × N tensor does not fit. What is allocated is recorded."
    ),
    "torch": (
        "Allocates, makes views, fills with a constant and copies. Every value is computed by Triton kernels that "
        "the function launches."
    ),
    "host code": (
        "Runs without data: shapes, strides and dtypes are known, values are not. Autotuning keeps the first "
        "configuration."
    ),
    "out": "a new contiguous tensor of the same shape and dtype: softmax(q @ k.T / sqrt(dim)) @ v",
}
evidence = {"baseline_ms": "SDPA MS", "user_ms": "USER MS", "speedup": "SPEEDUP OVER SDPA"}
cases = """
defaults title="{rows} rows, head size {dim}, {dtype}, tiles of {block_n}, causal {causal}"
defaults group="Trace"
hand_trace                dtype=f16  rows=33   dim=16 block_n=32 causal=false plant=trace \
    title="The hand trace: logits 0, 0 and log 2, values 1, 3 and 10; the answer is 6, head size 16, fp16, tiles of 32"
defaults group="Lengths"
n1_d32_fp16_b64_causal    dtype=f16  rows=1    dim=32 block_n=64 causal=true  plant=plain
n17_d64_bf16_b64          dtype=bf16 rows=17   dim=64 block_n=64 causal=false plant=plain
n65_d32_fp16_b32          dtype=f16  rows=65   dim=32 block_n=32 causal=false plant=rising
n255_d64_bf16_b32_causal  dtype=bf16 rows=255  dim=64 block_n=32 causal=true  plant=rising
defaults group="Numerics"
uniform                   dtype=f16  rows=130  dim=32 block_n=32 causal=false plant=uniform needs_gpu \
    title="All scores equal, head size 32, fp16, tiles of 32"
large_scores              dtype=f16  rows=97   dim=64 block_n=64 causal=true  plant=large \
    title="All scores around 100, head size 64, fp16, tiles of 64, causal"
falling_maximum           dtype=bf16 rows=97   dim=32 block_n=32 causal=false plant=falling \
    title="The first tile 110 above the rest, head size 32, bf16, tiles of 32"
rising_maximum            dtype=bf16 rows=161  dim=16 block_n=32 causal=true  plant=rising  needs_gpu \
    title="The maximum moves in every tile, head size 16, bf16, tiles of 32, causal"
needles                   dtype=f16  rows=257  dim=32 block_n=64 causal=false plant=needles \
    title="Keys that stand out far apart, head size 32, fp16, tiles of 64"
small_addends             dtype=f16  rows=1024 dim=16 block_n=32 causal=false plant=swamped \
    title="Small addends beside a large sum, head size 16, fp16, tiles of 32"
defaults group="Future"
future_fp16               dtype=f16  rows=77   dim=64 block_n=32 causal=true  plant=rising  changed_from=41 \
    title="Values of later rows change from row 41 on, head size 64, fp16, tiles of 32, causal"
future_bf16               dtype=bf16 rows=100  dim=32 block_n=64 causal=true  plant=plain   changed_from=61 needs_gpu \
    title="Values of later rows change from row 61 on, head size 32, bf16, tiles of 64, causal"
defaults group="Contract"
refusals                  dtype=f16  rows=33   dim=32 block_n=32 causal=false plant=plain   refused \
    title="Calls outside of the contract raise ValueError before any launch"
defaults group="All pairs"
n1_d16_fp16_b32           dtype=f16  rows=1    dim=16 block_n=32 causal=false plant=plain   needs_gpu
n1_d64_bf16_b32_causal    dtype=bf16 rows=1    dim=64 block_n=32 causal=true  plant=plain   needs_gpu
n2_d16_fp16_b64_causal    dtype=f16  rows=2    dim=16 block_n=64 causal=true  plant=plain   needs_gpu
n2_d32_bf16_b32_causal    dtype=bf16 rows=2    dim=32 block_n=32 causal=true  plant=plain   needs_gpu
n2_d64_bf16_b64           dtype=bf16 rows=2    dim=64 block_n=64 causal=false plant=plain   needs_gpu
n15_d16_bf16_b32_causal   dtype=bf16 rows=15   dim=16 block_n=32 causal=true  plant=plain   needs_gpu
n15_d32_bf16_b64          dtype=bf16 rows=15   dim=32 block_n=64 causal=false plant=plain   needs_gpu
n15_d64_fp16_b32          dtype=f16  rows=15   dim=64 block_n=32 causal=false plant=plain   needs_gpu
n16_d16_bf16_b64          dtype=bf16 rows=16   dim=16 block_n=64 causal=false plant=plain   needs_gpu
n16_d32_fp16_b32          dtype=f16  rows=16   dim=32 block_n=32 causal=false plant=plain   needs_gpu
n16_d64_fp16_b64_causal   dtype=f16  rows=16   dim=64 block_n=64 causal=true  plant=plain   needs_gpu
n17_d16_fp16_b64_causal   dtype=f16  rows=17   dim=16 block_n=64 causal=true  plant=plain   needs_gpu
n17_d32_bf16_b32_causal   dtype=bf16 rows=17   dim=32 block_n=32 causal=true  plant=plain   needs_gpu
n31_d16_bf16_b32_causal   dtype=bf16 rows=31   dim=16 block_n=32 causal=true  plant=plain   needs_gpu
n31_d32_bf16_b64          dtype=bf16 rows=31   dim=32 block_n=64 causal=false plant=plain   needs_gpu
n31_d64_fp16_b32          dtype=f16  rows=31   dim=64 block_n=32 causal=false plant=plain   needs_gpu
n32_d16_bf16_b64          dtype=bf16 rows=32   dim=16 block_n=64 causal=false plant=plain   needs_gpu
n32_d32_fp16_b32          dtype=f16  rows=32   dim=32 block_n=32 causal=false plant=plain   needs_gpu
n32_d64_fp16_b64_causal   dtype=f16  rows=32   dim=64 block_n=64 causal=true  plant=plain   needs_gpu
n33_d16_fp16_b32          dtype=f16  rows=33   dim=16 block_n=32 causal=false plant=rising  needs_gpu
n33_d32_fp16_b64_causal   dtype=f16  rows=33   dim=32 block_n=64 causal=true  plant=rising  needs_gpu
n33_d64_bf16_b32_causal   dtype=bf16 rows=33   dim=64 block_n=32 causal=true  plant=rising  needs_gpu
n63_d16_bf16_b32_causal   dtype=bf16 rows=63   dim=16 block_n=32 causal=true  plant=negative needs_gpu
n63_d32_bf16_b64          dtype=bf16 rows=63   dim=32 block_n=64 causal=false plant=negative needs_gpu
n63_d64_fp16_b32          dtype=f16  rows=63   dim=64 block_n=32 causal=false plant=negative needs_gpu
n65_d16_bf16_b64          dtype=bf16 rows=65   dim=16 block_n=64 causal=false plant=rising  needs_gpu
n65_d64_fp16_b64_causal   dtype=f16  rows=65   dim=64 block_n=64 causal=true  plant=rising  needs_gpu
n255_d16_fp16_b32         dtype=f16  rows=255  dim=16 block_n=32 causal=false plant=rising  needs_gpu
n255_d32_fp16_b64_causal  dtype=f16  rows=255  dim=32 block_n=64 causal=true  plant=rising  needs_gpu
n1000_d16_fp16_b64_causal dtype=f16  rows=1000 dim=16 block_n=64 causal=true  plant=needles needs_gpu
n1000_d32_bf16_b32_causal dtype=bf16 rows=1000 dim=32 block_n=32 causal=true  plant=needles needs_gpu
n1000_d64_bf16_b64        dtype=bf16 rows=1000 dim=64 block_n=64 causal=false plant=needles needs_gpu
n2047_d16_bf16_b64        dtype=bf16 rows=2047 dim=16 block_n=64 causal=false plant=rising  needs_gpu
n2047_d32_fp16_b32        dtype=f16  rows=2047 dim=32 block_n=32 causal=false plant=rising  needs_gpu
n2047_d64_fp16_b64_causal dtype=f16  rows=2047 dim=64 block_n=64 causal=true  plant=rising  needs_gpu
n2048_d16_fp16_b32        dtype=f16  rows=2048 dim=16 block_n=32 causal=false plant=needles needs_gpu
n2048_d32_fp16_b64_causal dtype=f16  rows=2048 dim=32 block_n=64 causal=true  plant=needles needs_gpu
n2048_d64_bf16_b32_causal dtype=bf16 rows=2048 dim=64 block_n=32 causal=true  plant=needles needs_gpu
profile_b32               dtype=f16  rows=2048 dim=64 block_n=32 causal=false plant=plain   measured group=Profile needs_gpu
profile_b64               dtype=f16  rows=2048 dim=64 block_n=64 causal=false plant=plain   measured group=Profile needs_gpu
defaults dtype=f16|bf16 dim=16|32|64 block_n=32|64 causal=true|false tile=16|24|32|48|64 \
    title="{rows} rows, head size {dim}, {dtype}, tiles of {block_n}, causal {causal}, \
scores {plant} ({height:.3g} high, steps of {tile})"
few      rows=1..40      times=2 plant=large|falling          height=1.0..8.0
many     rows=41..260    times=3 plant=large|falling|negative height=1.0..8.0
moving   rows=41..260    times=2 plant=plain|rising           height=1.0..1.5
wide     rows=261..1024          plant=needles|large          height=1.0..1.5
far      rows=261..2047  times=2 plant=large|falling          height=1.0..8.0 needs_gpu
longest  rows=2048               plant=large|falling|needles  height=1.0..2.0 needs_gpu
timed    plant=plain|rising|needles     height=1.0..2.0 tile=16|24|32|48|64
timed    plant=large|falling|negative   height=1.0..8.0 tile=16|24|32|48|64
"""
refused = {
    "k and v longer than q (33 rows and 47)": "k: f16[47, 32], v: f16[47, 32]",
    "v longer than k": "k: f16[33, 32], v: f16[34, 32]",
    "k of another head size": "k: f16[33, 16]",
    "float32": "q: f32[33, 32], k: f32[33, 32], v: f32[33, 32]",
    "mixed dtypes (k bfloat16)": "k: bf16[33, 32]",
    "head size 48": "q: f16[33, 48], k: f16[33, 48], v: f16[33, 48]",
    "head size 128": "q: f16[33, 128], k: f16[33, 128], v: f16[33, 128]",
    "no rows": "q: f16[0, 32], k: f16[0, 32], v: f16[0, 32]",
    "2049 rows": "q: f16[2049, 32], k: f16[2049, 32], v: f16[2049, 32]",
    "a batch ([2, 33, 32])": "q: f16[2, 33, 32], k: f16[2, 33, 32], v: f16[2, 33, 32]",
    "one dimension": "q: f16[32], k: f16[32], v: f16[32]",
    "q not contiguous (a transpose)": "q: f16[33, 32] transposed",
    "v not contiguous (every second row)": "v: f16[33, 32] strided",
    "block_n 16": "block_n=16",
    "block_n 48": "block_n=48",
    "block_n 128": "block_n=128",
}
done_when = [
    ("The hand trace gives the right answer: the output is", "6"),
    ("When the hand trace's second tile arrives, both sums are multiplied by alpha =", "1/2"),
    ("After its second tile the denominator l is", "2"),
    ("And the numerator is", "12"),
    ("Somebody rescales l and forgets the numerator; the trace then ends with", "7"),
    (
        "Of m, l and the numerator, the one that a tile wholly below the running maximum leaves as it is (its letter)",
        "m",
    ),
    "Every carried state is explained: what m, l and the numerator hold after a tile, and why both sums shrink when m moves",
    "Changing later rows of V leaves the bits of earlier causal outputs as they were",
    "The result against scaled_dot_product_attention is reported, a loss as plainly as a win",
]


# --- inputs: of 16 bits from the start; on top of normal tokens come plants, without which most mistakes leave no trace ----

LARGEST = {"plain": 8.0, "rising": 32.0, "falling": 118.0, "large": 122.0, "negative": 68.0, "needles": 20.0}
"""About the largest score that each plant brings about at its listed height."""


def inputs(rng, rows, dim, plant, height=1.0, tile=32, changed_from=0):
    q, k, v = (np.clip(rng.standard_normal((rows, dim)), -4, 4) for _ in range(3))
    if plant == "trace":
        hand_trace(q, k, v)
    elif plant in ("uniform", "swamped"):
        q[:] = 0.0
        if plant == "swamped":  # equal scores; beside the first tile's values of 60 the later ones are lost in 16 bits
            v[:] = np.where(np.arange(rows)[:, None] < 32, 60.0, 0.014 * (0.75 + 0.25 * rng.random(v.shape)))
    else:
        along = 4.0 if plant in ("plain", "rising", "needles") else 16.0
        q[:, 0], k[:, 0] = along, planted(rng, plant, rows, height, tile) * math.sqrt(dim) / along
    made = {"q": q, "k": k, "v": v}
    if changed_from:
        made["v_changed"] = v.copy()
        made["v_changed"][changed_from:] = 4 * rng.choice([-1.0, 1.0], (rows - changed_from, dim))
    return made


def planted(rng, plant, rows, height, tile):
    """What each key scores with every query."""
    at, scores = np.arange(rows), np.zeros(rows)
    if plant == "plain":  # keys that stand out at the tiles' borders
        for border, score in ((tile // 2, 3.0), (tile, 5.0), (2 * tile, 7.0)):
            scores[border : border + 1] += score * height
    elif plant == "rising":  # the running maximum moves in every tile
        scores = height * np.minimum(1.5 * (at // tile), 24.0)
    elif plant == "falling":  # a tile's own maximum cannot take the running one's place
        scores[:tile] = 110.0 * height
    elif plant == "large":  # exp of any score overflows float32
        scores = height * (100.0 + 2.0 * (at // tile % 8))
    elif plant == "negative":  # a padded key's score of 0 would outweigh every real one
        scores -= 60.0 * height
    elif plant == "needles":  # a few keys far apart that every row which sees them finds nearly alone
        places = [rng.integers(0, max(1, rows // 4), 3), rng.integers(0, rows, 2), [rows - 1]]
        places = np.unique(np.concatenate(places))
        scores[places] = height * (9.0 + 0.5 * np.arange(len(places)))
    return scores


def hand_trace(q, k, v):
    """Logits 0, 0 in the first tile and log 2 in the second; values 1, 3 and 10. The rest weighs nothing."""
    q[:], k[:], v[:] = 0.0, 0.0, 0.0
    scale = math.sqrt(q.shape[1]) / 4.0
    q[:, 0], k[2:32, 0], k[32, 0] = 4.0, -1000.0 * scale, math.log(2.0) * scale
    v[0, 0], v[1, 0], v[32, 0] = 1.0, 3.0, 10.0


def tolerance(dtype, plant, height=0.0):
    if plant == "swamped":
        return 1e-6, 5.5e-4, "every weight is exactly 1 and only the output is rounded: 2^-11, and float32 sums"
    unit = 2.0**-11 if dtype == "float16" else 2.0**-8
    why = (
        "weights rounded: u * sum(p|v|)/l <= 4u, for values stay within 4; the output rounded: u * |out|; "
        "of drawn cases 64 * 2^-24 of the largest score"
    )
    return 4.096 * unit + 64 * 2.0**-24 * LARGEST.get(plant, 0.0) * height, 1.024 * unit, why


def workspace(rows, dim):
    """Six splits of float32 partial results with two statistics a row, and room for descriptors."""
    return 65_536 + 6 * rows * (dim + 2) * 4


# --- reference and mistakes ---------------------------------------------------------------------------------------------


def reference(q, k, v, causal, block_n, dtype, attend=None):
    return (attend or exact)(q, k, v, causal, block_n, dtype)


def kept(out, out_changed, changed_from):
    """0 where an output that cannot see the change stayed the same bit for bit, and 1 where it did not."""
    return np.where(out[:changed_from] == out_changed[:changed_from], 0, 1)


def exact(q, k, v, causal, *_, visible=lambda row, key: key <= row):
    """By the definition, 256 rows at a time: nothing of how kernels compute it is in here."""
    out, at = np.empty((len(q), v.shape[1])), np.arange(len(q))
    for first in range(0, len(q), 256):
        score = q[first : first + 256] @ k.T / np.sqrt(q.shape[1])
        if causal:
            score = np.where(visible(at[first : first + 256, None], at[None, :]), score, -np.inf)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        out[first : first + 256] = weight @ v / weight.sum(axis=1, keepdims=True)
    return out


def masked(visible):
    return lambda *given: exact(*given, visible=visible)


def scaled(factor):
    return lambda q, *given: exact(q * factor(q.shape[1]), *given)


def exp32(x):
    """exp with float32's range: infinite above 88.7, and 0 below -87.3, where kernels flush what is no normal number."""
    return np.where(x > 88.72, np.inf, np.where(x < -87.33, 0.0, np.exp(np.minimum(x, 88.72))))


def rounded(values, dtype):
    if dtype == "float16":
        return values.astype(np.float16).astype(float)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(float)


def without_maximum(q, k, v, causal, *_):
    at = np.arange(len(q))
    seen = (at[None, :] <= at[:, None]) if causal else True
    weight = np.where(seen, exp32(q @ k.T / math.sqrt(q.shape[1])), 0.0)
    burst = np.isinf(weight).any(axis=1, keepdims=True)
    finite = np.where(burst, 0.0, weight)
    return np.where(burst, np.nan, finite @ v / np.where(burst, 1.0, finite.sum(axis=1, keepdims=True)))


def online(
    on_numerator=True,
    on_denominator=True,
    inverted=False,
    own_maximum=False,
    count_tail=False,
    divide=True,
    narrow=False,
):
    """The recurrence over tiles of block_n keys, with one thing left out or turned round."""

    def attend(q, k, v, causal, block_n, dtype):
        rows, at = len(q), np.arange(len(q))[:, None]
        m, total, a = np.full((rows, 1), -np.inf), np.zeros((rows, 1)), np.zeros((rows, v.shape[1]))
        for first in range(0, rows, block_n):
            last = min(first + block_n, rows)
            score = q @ k[first:last].T / math.sqrt(q.shape[1])
            if causal:
                score = np.where(np.arange(first, last) <= at, score, -np.inf)
            padded = first + block_n - rows if count_tail and last == rows and not causal else 0
            highest = np.maximum(score.max(axis=1, keepdims=True), 0.0 if padded else -np.inf)
            m_new = highest if own_maximum else np.maximum(m, highest)
            alpha = exp32(m_new - m if inverted and first else m - m_new)
            p = exp32(score - m_new)
            total = (alpha * total if on_denominator else total) + p.sum(axis=1, keepdims=True) + padded * exp32(-m_new)
            a = (alpha * a if on_numerator else a) + p @ v[first:last]
            a, m = (rounded(a, dtype) if narrow else a), m_new
        return a / total if divide else a

    return attend


mistakes = {
    "numerator_not_rescaled": (
        {"attend": online(on_numerator=False)},
        "The numerator is not rescaled",
        (
            "In the hand trace this gives 7 instead of 6: l becomes 0.5 · 2 + 1 = 2, but the numerator stays 4 + 10"
            " = 14. When the maximum moves, both old sums are multiplied by alpha = exp(m - m_new)."
        ),
    ),
    "denominator_not_rescaled": (
        {"attend": online(on_denominator=False)},
        "The denominator is not rescaled",
        (
            "The numerator follows the new maximum and l does not: l = alpha · l + the tile's sum. In the hand "
            "trace this gives 12 / 3 = 4."
        ),
    ),
    "nothing_rescaled": (
        {"attend": online(on_numerator=False, on_denominator=False)},
        "Nothing is rescaled",
        (
            "When the maximum moves, numerator and denominator still speak of the old one: multiply both by alpha ="
            " exp(m - m_new)."
        ),
    ),
    "alpha_inverted": (
        {"attend": online(inverted=True)},
        "Alpha is turned round",
        "The factor is exp(m - m_new), at most 1. exp(m_new - m) grows what should shrink.",
    ),
    "tile_maximum": (
        {"attend": online(own_maximum=True)},
        "The tile's maximum stands in for the running one",
        (
            "m_new is the larger of m and the tile's maximum. With the tile's alone, alpha overflows once an "
            "earlier tile stood far higher."
        ),
    ),
    "no_maximum": (
        {"attend": without_maximum},
        "No maximum is subtracted",
        "exp of a score above 88 is infinite in float32. Subtract the row's running maximum first.",
    ),
    "not_normalised": (
        {"attend": online(divide=False)},
        "The row is not divided by its denominator",
        "The numerator is a sum of weights times values: divide it by l, once, after the last tile.",
    ),
    "key_tail_not_masked": (
        {"attend": online(count_tail=True)},
        "Keys past the last row are counted",
        (
            "A masked load gives zeros, and a score of 0 is not minus infinity: each padded key adds exp(0 - m) to "
            "l. Set scores at key indices of N and beyond to -inf."
        ),
    ),
    "diagonal_excluded": (
        {"attend": masked(lambda row, key: key < row)},
        "A row does not see itself",
        "Causal means key index <= query index; row 0 sees one key, its own.",
    ),
    "one_key_too_many": (
        {"attend": masked(lambda row, key: key <= row + 1)},
        "A row sees the key after it",
        "Causal means key index <= query index, not query index + 1.",
    ),
    "future_visible": (
        {"attend": masked(lambda row, key: key <= row + len(row))},
        "Rows see the future",
        "causal=True masks nothing here: keys beyond the query's index get the score -inf.",
    ),
    "future_visible_in_tile": (
        lambda q, k, v, causal, block_n, dtype, rows: masked(lambda row, key: key // rows <= row // rows)(
            q, k, v, causal, block_n, dtype
        ),
        "Rows see the future inside their own {rows} rows",
        "Skipping later tiles is not enough: the tiles on the diagonal need a mask by element.",
        {"rows": (16, 32, 64)},
    ),
    "scale_forgotten": (
        {"attend": scaled(math.sqrt)},
        "The scale is missing",
        "Scores are divided by sqrt(D) before the softmax.",
    ),
    "scale_not_a_root": (
        {"attend": scaled(lambda dim: 1 / math.sqrt(dim))},
        "The scale is 1 / D",
        "Scores are divided by the square root of the head size, not by the head size.",
    ),
    "base_two": (
        {"attend": scaled(lambda dim: math.log(2.0))},
        "Powers of two instead of e",
        "exp2(x) is exp(x · log 2): fold log2(e) = 1.4427 into the scale first.",
    ),
    "mean_of_values": (
        {"attend": scaled(lambda dim: 0.0)},
        "The values are averaged",
        "Every key weighs the same: the scores do not reach the weights.",
    ),
    "narrow_accumulator": (
        {"attend": online(narrow=True)},
        "The numerator is kept in 16 bits",
        (
            "Beside a large sum small addends round to nothing. Accumulate in float32 and convert once, when the "
            "output is stored."
        ),
    ),
}


def experiment(cases):
    """What no kernel may store: the scores of the longest cases that ran."""
    longest = sorted(cases.values(), key=lambda ran: -len(ran.inputs["q"]))[:4]
    rows = tuple((ran.case.name, 4 * len(ran.inputs["q"]) ** 2) for ran in longest)
    return [Table(title="Scores", columns=("case", "analytic: float32 scores never stored, bytes"), rows=rows)]
