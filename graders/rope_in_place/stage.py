"""Rotate Q and K of a packed tensor where they lie, pair by pair, and leave V alone, in CUDA C++."""

import numpy as np

from kernelgate.inputs import mixture, normal

title = "RoPE in place"
path, order = "Decoder block", 4
needs, hours = ("swiglu",), "2"
language = "cuda"
seam = (
    "ropeInPlace(inout qkv: f32[tokens, heads * dim + 2 * kv_heads * dim],"
    " tokens: int, heads: int, kv_heads: int, dim: int, base: float)"
)
independent = "tokens"
inputs = {"qkv": mixture(normal(), normal(10))}
contract = {
    "row": "Q (heads · dim) | K (kv_heads · dim) | V (kv_heads · dim); dim is even",
    "pairs": "in each head of Q and K, dim i turns with dim i + dim / 2 by the angle token · base^(-2 i / dim), i < dim / 2",
    "V": "stays as it is",
}


def split(qkv, heads, kv_heads, dim):
    """Low and high halves of the heads that turn, and V."""
    turned = qkv[:, : (heads + kv_heads) * dim].reshape(len(qkv), heads + kv_heads, dim)
    return turned[..., : dim // 2], turned[..., dim // 2 :], qkv[:, (heads + kv_heads) * dim :]


def joined(low, high, v):
    return np.concatenate([np.concatenate([low, high], axis=-1).reshape(len(v), -1), v], axis=1)


def angles(tokens, dim, base, first=0, step=2):
    return (first + np.arange(tokens))[:, None, None] * base ** (-step * np.arange(dim // 2) / dim)


def turn(qkv, heads, kv_heads, dim, angle):
    low, high, v = split(qkv, heads, kv_heads, dim)
    return joined(low * np.cos(angle) - high * np.sin(angle), high * np.cos(angle) + low * np.sin(angle), v)


def reference(qkv, heads, kv_heads, dim, base):
    return turn(qkv, heads, kv_heads, dim, angles(len(qkv), dim, base))


def pair_error(qkv, heads, kv_heads, dim, base):
    low, high, v = split(qkv, heads, kv_heads, dim)
    reach = np.hypot(low, high) * (4 + 4 * np.arange(len(qkv)))[:, None, None] * 2.0**-24
    return joined(reach, reach, 0 * v)


def interleaved(qkv, heads, kv_heads, dim, base):
    low, high, v = split(qkv, heads, kv_heads, dim)
    x = np.concatenate([low, high], axis=-1)
    even, odd, angle = x[..., ::2], x[..., 1::2], angles(len(qkv), dim, base)
    turned = np.empty_like(x)
    turned[..., ::2] = even * np.cos(angle) - odd * np.sin(angle)
    turned[..., 1::2] = odd * np.cos(angle) + even * np.sin(angle)
    return np.concatenate([turned.reshape(len(v), -1), v], axis=1)


def half_overwritten(qkv, heads, kv_heads, dim, base):
    low, high, v = split(qkv, heads, kv_heads, dim)
    angle = angles(len(qkv), dim, base)
    low = low * np.cos(angle) - high * np.sin(angle)
    return joined(low, high * np.cos(angle) + low * np.sin(angle), v)


def keys_not_turned(qkv, heads, kv_heads, dim, base):
    turned = reference(qkv, heads, kv_heads, dim, base)
    return np.concatenate([turned[:, : heads * dim], qkv[:, heads * dim :]], axis=1)


tolerance = {
    "qkv_after": (
        pair_error,
        (
            "the angle of token t carries a rounding of the power and one of the product, about 2 t roundings of 2^-24 in "
            "radians, which moves a pair by as much of its length; twice that, and four roundings for the turn. V may not "
            "change by a bit"
        ),
    )
}
cases = """
defaults  base=10000
by_hand   tokens=2 heads=1 kv_heads=1 dim=2 qkv=[[1,0,1,0,1,0],[1,0,1,0,1,0]]
token_0   tokens=1 heads=1 kv_heads=1 dim=4
pairs     tokens=3 heads=1 kv_heads=1 dim=4
grouped   tokens=7 heads=4 kv_heads=2 dim=6
one_head  tokens=5 heads=1 kv_heads=1 dim=64
other_base tokens=9 heads=2 kv_heads=1 dim=8 base=500
long      tokens=700 heads=1 kv_heads=1 dim=4
block     tokens=65 heads=8 kv_heads=2 dim=64
drawn     tokens=2..90 heads=1..5 kv_heads=1..3 dim=4 times=3
drawn_wide tokens=2..60 heads=1..3 kv_heads=1..2 dim=34 times=2
secret    tokens=77 heads=3 kv_heads=2 dim=10 hidden
far       tokens=1000..4000 heads=8 kv_heads=2 dim=64 needs_gpu times=2
"""
mistakes = {
    "interleaved": (interleaved, "Neighbouring dims were paired", "Dim i turns with dim i + dim / 2, not with i + 1."),
    "half_overwritten": (
        half_overwritten,
        "The second half was made from the first half's new values",
        "Read both values of a pair before you write either.",
    ),
    "v_turned": (
        lambda qkv, heads, kv_heads, dim, base: turn(qkv, heads, 2 * kv_heads, dim, angles(len(qkv), dim, base)),
        "V was rotated too",
        "Only Q and K know positions.",
    ),
    "keys_not_turned": (keys_not_turned, "K was not rotated", "K's heads follow Q's, and turn by the same angles."),
    "other_way_round": (
        lambda qkv, heads, kv_heads, dim, base: turn(qkv, heads, kv_heads, dim, -angles(len(qkv), dim, base)),
        "Turned the other way",
        "low' = low cos - high sin, high' = high cos + low sin.",
    ),
    "from_position_one": (
        lambda qkv, heads, kv_heads, dim, base: turn(qkv, heads, kv_heads, dim, angles(len(qkv), dim, base, first=1)),
        "Positions start at 1",
        "Token 0 has angle 0 and is not turned.",
    ),
    "exponent_not_doubled": (
        lambda qkv, heads, kv_heads, dim, base: turn(qkv, heads, kv_heads, dim, angles(len(qkv), dim, base, step=1)),
        "The exponent is -i / dim",
        "base^(-2 i / dim): the slowest pair turns by nearly 1 / base a token.",
    ),
    "one_angle_for_all": (
        lambda qkv, heads, kv_heads, dim: turn(qkv, heads, kv_heads, dim, angles(len(qkv), dim, 1.0)),
        "All pairs turn by the same angle",
        "Pair i turns more slowly than pair i - 1.",
    ),
    "nothing_turned": (
        lambda qkv: qkv.copy(),
        "qkv came back as it was",
        "Write the turned values into qkv.",
    ),
}
edits = r"""
interleaved wrong_answer: "* dim + pair;\n    float* high = low + half;" => "* dim + 2 * pair;\n    float* high = low + 1;"
half_overwritten wrong_answer: *high = y * cosine + x * sine; => *high = y * cosine + *low * sine;
v_turned wrong_answer: const int rotated = heads + kv_heads; => const int rotated = heads + 2 * kv_heads;
    ;; rotated, rotated + kv_heads, dim => rotated, rotated, dim
keys_not_turned wrong_answer: const int rotated = heads + kv_heads; => const int rotated = heads;
    ;; rotated, rotated + kv_heads, dim => rotated, rotated + 2 * kv_heads, dim
other_way_round wrong_answer: sincosf(token * => sincosf(-token *
from_position_one wrong_answer: sincosf(token * => sincosf((token + 1) *
exponent_not_doubled wrong_answer: -2.0f * pair / dim => -1.0f * pair / dim
one_angle_for_all wrong_answer: -2.0f * pair / dim => 0.0f
base_fixed wrong_answer wrong_value: powf(base, => powf(10000.0f,
integer_exponent wrong_answer wrong_value: -2.0f * pair / dim => (float)(-2 * pair / dim)
first_head_only wrong_answer wrong_value: rotated * half) return; => rotated * half || i / half % rotated) return;
angles_in_half wrong_answer wrong_value: #include <cuda_runtime.h> => "#include <cuda_fp16.h>\n#include <cuda_runtime.h>"
    ;; token * powf(base, -2.0f * pair / dim) => token * __half2float(__float2half(powf(base, -2.0f * pair / dim)))
starter_one_value_twice wrong_answer of starter wrong_value: i + dim / 2] = b; => i + dim / 2] = a;
turned_twice wrong_answer wrong_value: "    *high = y * cosine + x * sine;"
    => "    *high = y * cosine + x * sine;\n    const float p = *low, q = *high;\n"
    "    *low = p * cosine - q * sine;\n    *high = q * cosine + p * sine;"
no_bounds runtime_error illegal_address: "    if (i >= (size_t)tokens * rotated * half) return;\n" =>
works_on_a_copy contract_violation workspace: "    turnPairs<<<"
    => "    float* copy;\n"
    "    cudaMallocAsync(&copy, (size_t)tokens * (rotated + kv_heads) * dim * 4, stream);\n    turnPairs<<<"
"""
done_when = [
    (
        "(1, 0) at token 1 in the pair that turns fastest becomes (cos 1, sin 1). The second value, to three decimals?",
        "0.841",
    ),
    ("How many values of a row of 768 with 8 heads and 2 KV heads of 64 dims are written?", "640"),
]
