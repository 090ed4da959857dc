"""Causal grouped-query attention by the book, its score row in shared memory, a warp a key."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "Exact attention"
path, order = "Decoder block", 5
needs, hours = ("rms_norm", "qkv_projection"), "4"
language = "cuda"
file = "attention.cu"
gate = 2.5
seam = "runCausalAttention(qkv: f32[tokens, 768], tokens: int) -> out: f32[tokens, 512]"
work = "1024 * tokens * tokens"
independent = "tokens"
inputs = {"qkv": mixture(normal(), normal(2))}
contract = {
    "row of qkv": "Q (8 heads × 64) | K (2 heads × 64) | V (2 heads × 64); Q and K have their RoPE already",
    "heads": "query head h reads KV head h / 4; scores are scaled by 1/8; row t sees the keys 0 to t",
    "row of out": "heads side by side: out[t · 512 + h · 64 + d]",
    "tokens": "1 to 8192: a score row of 32 KiB fits shared memory as it is",
}


def attend(qkv, heads_per_kv=4, scale=0.125, see=None, weigh=None, kv_of=None):
    """Attention with one thing changed. see: the hidden scores; weigh: scores to weights; kv_of: query head to KV head."""
    tokens = len(qkv)
    hidden = np.arange(tokens)[None, :] > np.arange(tokens)[:, None]
    parts = []
    for head in range(8):
        kv = head // heads_per_kv if kv_of is None else kv_of(head)
        q, k, v = (qkv[:, first * 64 : first * 64 + 64] for first in (head, 8 + kv, 10 + kv))
        score = np.where(hidden if see is None else see(hidden), -np.inf, (q @ k.T) * scale)
        weight = np.exp(score - score.max(axis=1, keepdims=True)) if weigh is None else weigh(score)
        parts.append(weight @ v / weight.sum(axis=1, keepdims=True))
    return np.concatenate(parts, axis=1)


def reference(qkv):
    return attend(qkv)


def before_the_row(hidden):
    """Without the diagonal; row 0 keeps its own key, or it would see none."""
    return hidden | np.diag(np.arange(len(hidden)) > 0)


def overflowing(score):
    return np.where(score > 88.7, np.inf, np.exp(np.minimum(score, 88.7)))


cases = """
one_token  tokens=1
two_tokens tokens=2
warps      tokens=5
warp_edge  tokens=31
past_warp  tokens=33
two_groups tokens=66 qkv=normal(2)
large      tokens=18 qkv=normal(6)
past_block tokens=130
drawn      tokens=2..90 times=4
secret     tokens=41 hidden
long       tokens=200..1500 needs_gpu times=2
profile    tokens=2048 measured needs_gpu
"""
faster = {
    "uncoalesced": (
        "Let a warp make one score: lane i reads the numbers i and i + 32 of the key, which lie side by side, and five "
        "shuffles add up."
    ),
    "read_by_every_block": (
        "Each row walks through all its keys and values again. Nothing in the inner loop changes that: several rows in a "
        "block, that share a tile of keys, do. The capstone is about it."
    ),
}
mistakes = {
    "scale_forgotten": (
        lambda qkv: attend(qkv, scale=1.0),
        "The scores were not scaled",
        "Multiply each score by 1/8, the root of 64 below one.",
    ),
    "scale_not_a_root": (
        lambda qkv: attend(qkv, scale=1 / 64),
        "The scores were divided by 64",
        "Divide by the root of the head size: 8.",
    ),
    "future_visible": (
        lambda qkv: attend(qkv, see=lambda hidden: hidden & False),
        "Rows see keys after their own",
        "Row t sees the keys 0 to t.",
    ),
    "diagonal_excluded": (
        lambda qkv: attend(qkv, see=before_the_row),
        "Rows do not see their own key",
        "j <= token: the diagonal belongs to the row.",
    ),
    "one_kv_head": (
        lambda qkv: attend(qkv, kv_of=lambda _: 0),
        "All heads read KV head 0",
        "Query head h reads KV head h / 4.",
    ),
    "kv_heads_in_turn": (
        lambda qkv: attend(qkv, kv_of=lambda head: head % 2),
        "KV heads were dealt out in turn",
        "Heads 0 to 3 read KV head 0: h / 4, not h % 2.",
    ),
    "not_normalised": (
        lambda qkv: attend(qkv) * row_sums(qkv),
        "The weighted sum was not divided by the sum of weights",
        "Divide by the sum at the end.",
    ),
    "mean_of_values": (
        lambda qkv: attend(qkv, weigh=lambda score: np.where(np.isinf(score), 0.0, 1.0)),
        "All visible keys weigh the same",
        "Weights are exp(score - maximum).",
    ),
    "no_maximum": (
        lambda qkv: attend(qkv, weigh=overflowing),
        "The maximum was not subtracted",
        "exp overflows above 88.7; subtract the row's maximum first.",
    ),
    "powers_of_two": (
        lambda qkv: attend(qkv, scale=0.125 * np.log(2)),
        "Powers of 2 were taken for powers of e",
        "exp2 wants its argument times log2(e).",
    ),
    "values_are_keys": (
        lambda qkv: attend(np.concatenate([qkv[:, :640], qkv[:, 512:640]], axis=1)),
        "K was summed in place of V",
        "V starts at column 640 of a row.",
    ),
}


def row_sums(qkv):
    """Of each head's weights, repeated over its 64 columns."""
    sums = []
    for head in range(8):
        kv, tokens = head // 4, len(qkv)
        score = qkv[:, head * 64 : head * 64 + 64] @ qkv[:, (8 + kv) * 64 : (8 + kv) * 64 + 64].T / 8
        score = np.where(np.arange(tokens)[None, :] > np.arange(tokens)[:, None], -np.inf, score)
        total = np.exp(score - score.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)
        sums.append(np.repeat(total, 64, axis=1))
    return np.concatenate(sums, axis=1)


edits = r"""
scale_forgotten wrong_answer: query[lane] * SCORE_SCALE, q1 = query[lane + 32] * SCORE_SCALE
    => query[lane], q1 = query[lane + 32]
scale_not_a_root wrong_answer: query[lane] * SCORE_SCALE, q1 = query[lane + 32] * SCORE_SCALE
    => query[lane] / HEAD_DIM, q1 = query[lane + 32] / HEAD_DIM
future_visible wrong_answer: exactRow(const float* __restrict__ qkv, float* __restrict__ out) {
    => exactRow(const float* __restrict__ qkv, float* __restrict__ out, int tokens) {
    ;; for (int j = warp; j <= token; => for (int j = warp; j < tokens;
    ;; for (int j = threadIdx.x; j <= token; => for (int j = threadIdx.x; j < tokens;
    ;; for (int j = group; j <= token; => for (int j = group; j < tokens;
    ;; stream>>>(qkv, out) => stream>>>(qkv, out, tokens)
diagonal_excluded wrong_answer: for (int j = warp; j <= token; => for (int j = warp; j < max(token, 1);
    ;; for (int j = threadIdx.x; j <= token; => for (int j = threadIdx.x; j < max(token, 1);
    ;; for (int j = group; j <= token; => for (int j = group; j < max(token, 1);
one_kv_head wrong_answer: kv = head / HEADS_PER_KV => kv = 0
kv_heads_in_turn wrong_answer: kv = head / HEADS_PER_KV => kv = head % KV_HEADS
not_normalised wrong_answer: (partial[dim] + partial[dim + HEAD_DIM]) / sum => partial[dim] + partial[dim + HEAD_DIM]
mean_of_values wrong_answer: expf(score[j] - largest) => 1.0f
no_maximum wrong_answer wrong_value: expf(score[j] - largest) => expf(score[j])
powers_of_two wrong_answer: expf(score[j] - largest) => exp2f(score[j] - largest)
values_are_keys wrong_answer: qkv + VALUE_OFFSET + kv => qkv + KEY_OFFSET + kv
half_of_the_values wrong_answer wrong_value: (partial[dim] + partial[dim + HEAD_DIM]) / sum => partial[dim] / sum
first_warp_alone wrong_answer wrong_value: sum = scratch[0] + scratch[1] + scratch[2] + scratch[3]; => sum = scratch[0];
barrier_missing wrong_answer: "    if (lane == 0) scratch[warp] = largest;\n    __syncthreads();"
    => "    if (lane == 0) scratch[warp] = largest;"
no_shared_memory runtime_error illegal_address: tokens * sizeof(float), stream => 0, stream
one_row_too_many runtime_error illegal_address: dim3(tokens, HEADS) => dim3(tokens + 1, HEADS)
score_matrix contract_violation workspace: "    exactRow<<<"
    => "    float* scores;\n"
    "    cudaMallocAsync(&scores, (size_t)tokens * tokens * HEADS * sizeof(float), stream);\n    exactRow<<<"
scribbles contract_violation: "    partial[threadIdx.x] = weighted;"
    => "    partial[threadIdx.x] = weighted;\n    const_cast<float*>(query)[0] = 0.0f;"
"""
done_when = [
    ("Scores 0 and ln 3, values 2 and 6: the output?", "5"),
    ("How many scores does one head of 2048 tokens have, with the causal mask?", "2098176"),
]
