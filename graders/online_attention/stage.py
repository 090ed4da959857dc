"""Causal grouped-query attention inside a decoder block, in CUDA C++: exact values, no workspace, and 1.8 times the speed of
a kernel that keeps the whole score row.
"""

import runpy
from types import SimpleNamespace

import numpy as np

from kernelgate.settings import settings

title = "Online attention: the capstone"
path, order = "Decoder block", 6
needs, hours = ("exact_attention", "online_softmax_rows"), "8 to 12"
language = "cuda"
file = "attention.cu"
gate = 1.8
seam = "runCausalAttention(qkv: f32[tokens, 768], tokens: int) -> out: f32[tokens, 512]"
derived = {"block": "f32[tokens, 512]"}
titles = {"out": "attention output", "block": "final block output"}
probe = "linear in qkv[:, 640:768] by 64"
work = "1024 * tokens * (tokens + 1)"
limits = {"wall_s": 60, "case_s": 4}
calibrated = ["gate_missed/half_warp_a_key.cu", "gate_missed/plain_rows.cu", "accepted/register_tiles.cu"]
contract = {
    "qkv": (
        "float32 [tokens, 768], row-major, read-only: Q (8 heads × 64) | K (2 heads × 64) | V (2 heads × 64); Q and"
        " K have their RoPE already"
    ),
    "out": "float32 [tokens, 512], row-major, heads side by side: out[t·512 + h·64 + d]; every value must be written",
    "heads": "query head h reads KV head h / 4; scores are scaled by 1/8; row t sees the keys 0 to t",
    "tokens": "1 and up; not a multiple of anything",
    "stream": "everything launched is on it, or joined to it by events before the function returns",
    "pointers": "device pointers aligned to 256 bytes; the host cannot read them",
    "workspace": "none: no cudaMalloc, and no more than 64 KiB of __device__ and __constant__ variables",
    "repeatable": "two runs on the same input agree bit for bit",
}
evidence = {"baseline_ms": "ATTN BASELINE MS", "user_ms": "ATTN USER MS", "speedup": "SPEEDUP"}
cases = """
defaults title="{tokens} tokens"
defaults group=Lengths
tokens_1        tokens=1    plants=[rising,rising] title="1 token"
tokens_2        tokens=2    plants=[rising,rising]
tokens_31       tokens=31   plants=[rising,rising]
tokens_32       tokens=32   plants=[rising,rising]
tokens_33       tokens=33   plants=[rising,rising]
tokens_63       tokens=63   plants=[rising,rising]
tokens_64       tokens=64   plants=[rising,rising]
tokens_65       tokens=65   plants=[rising,rising]
tokens_127      tokens=127  plants=[needles,needles]
tokens_257      tokens=257  plants=[needles,needles]
defaults group=Numerics
falling_maximum tokens=97   plants=[falling,falling] \
    title="97 tokens, first tile 130 above the rest"
large_scores    tokens=97   plants=[large,large] \
    title="97 tokens, all scores above 100"
profile         tokens=2048 plants=[needles,large] measured group=Profile
defaults height=1.0..2.5 tile=8|16|24|32|48|64|100 \
    title="{tokens} tokens, scores of the KV heads {plants[0]} and {plants[1]} ({height:.3g} high, tiles of {tile})"
few      tokens=1..40      times=2 plants=[falling|large,plain|rising|needles|falling|large]
many     tokens=41..320    times=3 plants=[falling|large,plain|rising|needles|falling|large]
turned   tokens=41..320    times=2 plants=[plain|rising|needles|falling|large,falling|large]
far      tokens=321..2047  times=2 plants=[plain|rising|needles|falling|large,falling|large] needs_gpu
longest  tokens=2048               plants=[large|needles,large|needles] needs_gpu
timed    plants=[plain|rising|needles|falling|large,plain|rising|needles|falling|large] height=1.0..2.5 tile=16|32|48|64 alone=1
"""
done_when = [
    (
        "A row's first tile has scores 0 and 0 and values 1 and 3, its second the score log 2 and the value 10. The output is",
        "6",
    ),
    ("In that trace l, relative to the last maximum, ends as", "2"),
    ("Forget alpha on l, keep it on acc, and the same trace ends with", "4"),
    ("Query row 40 sees this many keys, itself included", "41"),
    "Every value is right at every length, attention first and the block's output second",
    "At least 1.8 times the speed of the materialised baseline at 2048 tokens",
    "No attention workspace, and two runs agree bit for bit",
]


# --- inputs: the block's own slab, and on top of it plants, without which most mistakes would leave no trace ---------------

block_of = SimpleNamespace(**runpy.run_path(str(settings().kernels_dir / "decoder" / "reference.py")))
HEADS, KV_HEADS, DIM = block_of.HEADS, block_of.KV_HEADS, block_of.HEAD_DIM
LARGEST = {"plain": 8.0, "rising": 23.0, "needles": 20.0, "falling": 138.0, "large": 138.0}
"""About the largest score that each plant brings about at its listed height."""


def inputs(rng, tokens, plants, height=1.0, tile=32, alone=0):
    """`qkv`, and `hidden`, which only the block's tail reads; a timed call has no tail, and a slab that is drawn as such."""
    if alone:
        made = {"qkv": rng.standard_normal((tokens, block_of.QKV_WIDTH), np.float32)}
    else:
        hidden = rng.standard_normal((tokens, block_of.WIDTH)).astype(np.float32)
        made = {"qkv": block_of.slab(hidden), "hidden": hidden}
    for kv, plant in enumerate(plants):
        if plant != "plain":
            lift(made["qkv"], kv, rng, lambda count, plant=plant: planted(rng, plant, count, height, tile))
    return made


def lift(qkv, kv, rng, scores):
    """Adds scores to what every query of a KV head sees of its keys: along a direction of which queries hold 8 and keys 0."""
    along = rng.standard_normal(DIM)
    along = (along / np.linalg.norm(along)).astype(qkv.dtype)
    for head in range(kv * HEADS // KV_HEADS, (kv + 1) * HEADS // KV_HEADS):
        query = qkv[:, head * DIM : (head + 1) * DIM]
        query += np.outer(8 - query @ along, along)
    rows = qkv[:, block_of.KEY + kv * DIM : block_of.KEY + (kv + 1) * DIM]
    rows -= np.outer(rows @ along, along)
    for part in scores(len(qkv)):
        rows += np.multiply.outer(part, along).astype(along.dtype)


def planted(rng, plant, tokens, height, tile):
    """What is added to the keys' scores, one after the other."""
    at = np.arange(tokens)
    if plant == "rising":  # climbs by 4 at borders of tiles: a running maximum that does not move hides mistakes
        yield from (np.where(at >= first, 4.0 * height, 0) for first in (tile, 2 * tile, max(3 * tile, tokens - 16)))
        yield np.where(at == 0, 3.0 * height, 0)
    elif plant == "needles":  # keys at random places, more of them far back, that every later row finds nearly alone
        places = np.unique(np.concatenate([rng.integers(0, max(1, tokens // 4), 3), rng.integers(0, tokens, 2)]))
        found = np.zeros(tokens)
        found[places] = height * (9.0 + 0.5 * np.arange(len(places)))
        yield found
        borders = (tile, 2 * tile, tokens - 16)
        yield from (np.where(at == border, 12.0 * height, 0) for border in borders if border > 0)
    elif plant == "falling":  # the first tile stands 130 above the rest: a tile's own maximum cannot take its place
        yield np.where(at < tile, 130.0 * height, 0)
    else:  # all lie between about 100 and 112: exp of any overflows float32
        yield height * (106.0 + np.minimum(1.5 * (at // tile), 24.0))


def tolerance(plants, height=0.0):
    if height:
        allowed = 2e-5 + 8e-6 * height * max(LARGEST[plant] for plant in plants)
        return allowed, allowed, "8e-6 of the largest score on top of the ordinary 2e-5"
    if {"falling", "large"} & {*plants}:
        why = "scores above 100 carry errors of 1e-5 into the exponent: twenty times the 5e-5 that float32 kernels show there"
        return 1e-3, 1e-3, why
    if "needles" in plants:
        return 1e-4, 1e-4, "needle scores near 16 bring float32 kernels up to 9e-6 off: ten times that"
    return (
        2e-5,
        2e-5,
        "ten times the largest error of the baseline, which is below 2e-6 where scores are of ordinary size",
    )


# --- reference and mistakes -------------------------------------------------------------------------------------------


def reference(qkv, attend=None):
    return (attend or block_of.causal_attention)(qkv)


def block(out, hidden):
    """The block goes on from its attention."""
    return block_of.tail(out, hidden)


def side_by_side(by_head):
    return np.ascontiguousarray(by_head.transpose(1, 0, 2)).reshape(by_head.shape[1], HEADS * DIM)


def exact(visible=lambda row, key: key <= row, scale=0.125, kv_head=None):
    """By the book with one thing changed: which keys a row sees, the scale, or the head map. NaN where it sees none."""

    def attend(qkv):
        at, mixed = np.arange(len(qkv)), np.empty((HEADS, len(qkv), DIM))
        seen = visible(at[:, None], at[None, :])
        for head, (query, key, value) in enumerate(zip(*block_of.heads_of(qkv, kv_head), strict=True)):
            score = np.where(seen, query @ key.T * scale, -np.inf)
            weight = np.exp(score - score.max(axis=1, keepdims=True))
            mixed[head] = weight @ value / weight.sum(axis=1, keepdims=True)
        return side_by_side(mixed)

    return attend


def exp32(x):
    """exp with float32's range: infinite above 88.7, and 0 below -87.3, where kernels flush what is no normal number."""
    return np.where(x > 88.72, np.inf, np.where(x < -87.33, 0.0, np.exp(np.minimum(x, 88.72))))


def online(keys=32, on_acc=True, on_l=True, inverted=False, own_maximum=False, count_tail=False, divide=True):
    """The lesson's recurrence over tiles of `keys` keys, with one thing left out or turned round."""

    def attend(qkv):
        query, key, value = block_of.heads_of(qkv)
        tokens, row = len(qkv), np.arange(len(qkv))
        m, total = np.full((HEADS, tokens, 1), -np.inf), np.zeros((HEADS, tokens, 1))
        acc = np.zeros((HEADS, tokens, DIM))
        for first in range(0, tokens, keys):
            last, live = min(first + keys, tokens), row >= first
            score = query[:, live] @ key[:, first:last].transpose(0, 2, 1) * 0.125
            score = np.where(np.arange(first, last) <= row[live, None], score, -np.inf)
            padded = count_tail and last == tokens
            highest = np.maximum(score.max(axis=2, keepdims=True), 0.0 if padded else -np.inf)
            m_new = highest if own_maximum else np.maximum(m[:, live], highest)
            alpha = exp32(m_new - m[:, live] if inverted and first else m[:, live] - m_new)
            weight = exp32(score - m_new)
            added = weight.sum(axis=2, keepdims=True) + ((first + keys - tokens) * exp32(-m_new) if padded else 0.0)
            total[:, live] = (alpha * total[:, live] if on_l else total[:, live]) + added
            acc[:, live] = (alpha * acc[:, live] if on_acc else acc[:, live]) + weight @ value[:, first:last]
            m[:, live] = m_new
        return side_by_side(acc / total if divide else acc)

    return attend


def without_maximum(qkv):
    seen, mixed = np.tri(len(qkv), dtype=bool), np.empty((HEADS, len(qkv), DIM))
    for head, (query, key, value) in enumerate(zip(*block_of.heads_of(qkv), strict=True)):
        weight = np.where(seen, exp32(query @ key.T * 0.125), 0.0)
        burst = np.isinf(weight).any(axis=1, keepdims=True)  # inf / inf
        finite = np.where(burst, 0.0, weight)
        mixed[head] = np.where(burst, np.nan, finite @ value / finite.sum(axis=1, keepdims=True))
    return side_by_side(mixed)


def mean_of_values(qkv):
    _, _, value = block_of.heads_of(qkv)
    return side_by_side(np.cumsum(value, axis=1) / np.arange(1, len(qkv) + 1)[None, :, None])


def head_major(qkv):
    right = block_of.causal_attention(qkv)
    return np.ascontiguousarray(right.reshape(-1, HEADS, DIM).transpose(1, 0, 2)).reshape(right.shape)


mistakes = {
    "alpha_missing_on_acc": (
        lambda qkv, keys: online(keys, on_acc=False)(qkv),
        "Alpha is missing on acc, in tiles of {keys} keys",
        (
            "l is rescaled when the running maximum moves, the accumulator is not: multiply acc by alpha = "
            "exp(m_old - m_new) before the tile's weighted values are added."
        ),
        {"keys": (32, 64)},
    ),
    "alpha_missing_on_l": (
        lambda qkv, keys: online(keys, on_l=False)(qkv),
        "Alpha is missing on l, in tiles of {keys} keys",
        "acc is rescaled when the running maximum moves, the denominator is not: l = alpha * l + the tile's sum.",
        {"keys": (32, 64)},
    ),
    "alpha_missing": (
        lambda qkv, keys: online(keys, on_acc=False, on_l=False)(qkv),
        "No rescale at all, in tiles of {keys} keys",
        (
            "When the running maximum moves, both acc and l still speak of the old one: multiply both by alpha = "
            "exp(m_old - m_new)."
        ),
        {"keys": (32, 64)},
    ),
    "alpha_inverted": (
        {"attend": online(inverted=True)},
        "Alpha is turned round",
        "The factor is exp(m_old - m_new), which is at most 1; exp(m_new - m_old) grows what should shrink.",
    ),
    "tile_maximum": (
        lambda qkv, keys: online(keys, own_maximum=True)(qkv),
        "The maximum of a tile of {keys} keys stands in for the running one",
        (
            "m_new is the larger of m_old and the tile's maximum. With the tile's alone, alpha overflows as soon as"
            " an earlier tile was much higher."
        ),
        {"keys": (32, 64)},
    ),
    "no_maximum": (
        {"attend": without_maximum},
        "No maximum is subtracted",
        "exp of a score above 88 is infinite in float32. Subtract the row's running maximum first.",
    ),
    "not_normalised": (
        {"attend": online(divide=False)},
        "The row is not divided by l",
        "acc is unnormalised: after the last tile divide it by l, once.",
    ),
    "tail_not_masked": (
        lambda qkv, keys: online(keys, count_tail=True)(qkv),
        "Keys past the last token are counted, to the end of a tile of {keys}",
        (
            "The last tile is filled up with zeros; their score is 0, not minus infinity, so each adds exp(0 - m) "
            "to l. Mask keys at or beyond `tokens`."
        ),
        {"keys": (32, 64)},
    ),
    "diagonal_excluded": (
        {"attend": exact(visible=lambda row, key: key < row)},
        "A token does not see itself",
        "Row t sees the keys 0 to t, t included: the comparison is key <= row.",
    ),
    "future_visible": (
        {"attend": exact(visible=lambda row, key: key <= row + len(row))},
        "Rows see the future",
        "Nothing is masked: row t may only see the keys 0 to t.",
    ),
    "future_visible_in_tile": (
        lambda qkv, keys: exact(visible=lambda row, key: key // keys <= row // keys)(qkv),
        "Rows see the future inside their tile of {keys} keys",
        "The loop stops at the right tile, but the tile on the diagonal needs a mask of its own: key <= row.",
        {"keys": (32, 64)},
    ),
    "scale_forgotten": (
        {"attend": exact(scale=1.0)},
        "The scale is missing",
        "Scores are divided by sqrt(64) = 8 before the softmax.",
    ),
    "scale_not_a_root": (
        {"attend": exact(scale=1 / 64)},
        "The scale is 1/64",
        "Scores are divided by the square root of the head dim, 8, not by the head dim.",
    ),
    "wrong_kv_head": (
        {"attend": exact(kv_head=np.arange(HEADS) % KV_HEADS)},
        "Query heads read the wrong KV head",
        "Four neighbouring query heads share a KV head: head h reads h / 4, not h % 2.",
    ),
    "window_of_1024": (
        {"attend": exact(visible=lambda row, key: (key <= row) & (key > row - 1024))},
        "Only the last 1024 keys are seen",
        "A row sees its whole prefix, however long.",
    ),
    "mean_of_values": (
        {"attend": mean_of_values},
        "The values are averaged",
        "Every key weighs the same: the softmax is missing, or its scores are.",
    ),
    "head_major": (
        {"attend": head_major},
        "The output is [head, token, dim]",
        "The output is [tokens, 512] with the heads side by side: out[t * 512 + h * 64 + d].",
    ),
    "rope_twice": (
        {"attend": lambda qkv: block_of.causal_attention(block_of.rope(qkv))},
        "RoPE is applied again",
        "On entry Q and K already have their rotary embedding.",
    ),
}
