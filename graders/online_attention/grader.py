"""Inputs, float64 reference and named mistakes of the capstone.

The slab that a submission gets is the decoder block's own: norm, packed projection and RoPE of a random hidden state. On top
of it come *plants*, without which most mistakes would leave no trace: keys whose scores rise across tile borders (a forgotten
rescale shows only when the running maximum moves), keys far back that one row must find (a window or a mean shows only there),
rows whose first tile stands 130 above the later ones, and rows with scores above 100 throughout (exp overflows without a
maximum). The plants change Q and K after RoPE; the block's tail takes the attention output as it is.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelgate.settings import settings
from kernelgate.stages import Case

Float64 = NDArray[np.float64]
Slab = NDArray[np.floating[Any]]
Arrays = dict[str, NDArray[np.float32]]


def _decoder() -> Any:
    name = "kernelgate_decoder_reference"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, settings().kernels_dir / "decoder" / "reference.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


block = _decoder()
HEADS, KV_HEADS, DIM = block.HEADS, block.KV_HEADS, block.HEAD_DIM
ROWS = 32
"""Resident query rows of the lesson's kernel; the mistakes that depend on tiles are those of such a kernel."""
OVERFLOW = float(np.log(np.finfo(np.float32).max))
UNDERFLOW = float(np.log(np.finfo(np.float32).tiny))


# --- inputs -----------------------------------------------------------------------------------------------------------


def inputs(case: Case, rng: np.random.Generator) -> Arrays:
    """`qkv` [tokens, 768], which the submission gets, and `hidden` [tokens, 512], which only the block's tail reads.

    A timed call has no tail: its slab is drawn as such, of the same spread, which takes a tenth of the time.
    """
    tokens = int(str(case.params["tokens"]))
    if case.data.get("slab_alone"):
        alone = rng.standard_normal((tokens, block.QKV_WIDTH), np.float32)
        _plant(alone, case, rng)
        return {"qkv": alone}
    hidden = rng.standard_normal((tokens, block.WIDTH)).astype(np.float32)
    qkv = block.slab(hidden)
    _plant(qkv, case, rng)
    return {"qkv": qkv.astype(np.float32), "hidden": hidden}


def outputs(case: Case) -> dict[str, tuple[int, ...]]:
    """Shapes of the float32 buffers that the seam writes, by its parameters' names."""
    return {"out": (int(str(case.params["tokens"])), HEADS * DIM)}


def finish(case: Case, inputs: Arrays, written: Arrays) -> Arrays:
    """The judged tensors, float32, from the buffers that the submission wrote: the block goes on from its attention."""
    del case
    attention = written["out"]
    with np.errstate(all="ignore"):
        return {"attention": attention, "block": block.tail(attention, inputs["hidden"]).astype(np.float32)}


def work(case: Case) -> float:
    """Floating-point operations of causal attention: a multiply-add a dim for each score and again for each value."""
    tokens = int(str(case.params["tokens"]))
    return HEADS * tokens * (tokens + 1) / 2 * 2 * 2 * DIM


class Keys:
    """One KV head's keys, and a unit direction in which its four query heads hold 8 and the keys nothing.

    So a key that gets `score` of the direction scores that much more with every query. tile: keys apart that a plant counts in.
    """

    def __init__(self, qkv: Slab, kv: int, rng: np.random.Generator, tile: int) -> None:
        along = rng.standard_normal(DIM)
        self.along = (along / np.linalg.norm(along)).astype(qkv.dtype)
        for head in range(kv * HEADS // KV_HEADS, (kv + 1) * HEADS // KV_HEADS):
            query = qkv[:, head * DIM : (head + 1) * DIM]
            query += np.outer(8 - query @ self.along, self.along)
        start = block.KEY + kv * DIM
        self.rows = qkv[:, start : start + DIM]
        self.rows -= np.outer(self.rows @ self.along, self.along)
        self.tokens, self.tile = len(qkv), tile

    def lift(self, rows: slice | NDArray[np.intp], scores: Any) -> None:
        """Adds `scores` to what every query sees at the keys `rows`."""
        self.rows[rows] += np.multiply.outer(scores, self.along).astype(self.along.dtype)


def _plant(qkv: Slab, case: Case, rng: np.random.Generator) -> None:
    """Gives each KV head the plant that the case names for it, `height` times as high as it is listed."""
    names = [str(name) for name in case.data["plants"]]  # type: ignore[union-attr]
    height, tile = float(str(case.data.get("height", 1.0))), int(str(case.data.get("tile", ROWS)))
    for kv, name in enumerate(names):
        if name != "plain":
            PLANTS[name](Keys(qkv, kv, rng, tile), height, rng)


def _plant_rising(keys: Keys, height: float, rng: np.random.Generator) -> None:
    """Scores that climb by 4 at keys 32, 64 and 16 before the end: a running maximum that does not move hides mistakes."""
    for border in (keys.tile, 2 * keys.tile, max(3 * keys.tile, keys.tokens - 16)):
        if border < keys.tokens:
            keys.lift(slice(border, None), np.full(keys.tokens - border, 4.0 * height))
    keys.lift(slice(0, 1), np.array([3.0 * height]))


def _plant_needles(keys: Keys, height: float, rng: np.random.Generator) -> None:
    """Keys at random places, more of them far back, that every later row finds nearly alone."""
    tokens = keys.tokens
    places = np.unique(np.concatenate([rng.integers(0, max(1, tokens // 4), 3), rng.integers(0, tokens, 2)]))
    keys.lift(places, height * (9.0 + 0.5 * np.arange(len(places))))
    for border in (keys.tile, 2 * keys.tile, tokens - 16):
        if 0 < border < tokens:
            keys.lift(slice(border, border + 1), np.array([12.0 * height]))


def _plant_falling(keys: Keys, height: float, rng: np.random.Generator) -> None:
    """The first tile's scores stand about 130 above everything later: a tile's own maximum cannot take its place."""
    count = min(keys.tile, keys.tokens)
    keys.lift(slice(0, count), np.full(count, 130.0 * height))


def _plant_large(keys: Keys, height: float, rng: np.random.Generator) -> None:
    """Every score lies between about 100 and 112, higher from tile to tile: exp of any of them overflows float32."""
    keys.lift(slice(None), height * (106.0 + np.minimum(1.5 * (np.arange(keys.tokens) // keys.tile), 24.0)))


PLANTS: dict[str, Callable[[Keys, float, np.random.Generator], None]] = {
    "rising": _plant_rising,
    "needles": _plant_needles,
    "falling": _plant_falling,
    "large": _plant_large,
}


# --- reference and mistakes -------------------------------------------------------------------------------------------


def reference(case: Case, inputs: Arrays, mistake: str | None = None) -> dict[str, Float64]:
    """`attention` [tokens, 512] and then `block` [tokens, 512] in float64, of the truth or of a named mistake."""
    del case
    qkv = inputs["qkv"]
    attention = block.causal_attention(qkv) if mistake is None else MISTAKES[mistake](qkv)
    return {"attention": attention, "block": block.tail(attention, inputs["hidden"])}


def _side_by_side(by_head: Float64) -> Float64:
    heads, tokens, dim = by_head.shape
    return np.ascontiguousarray(by_head.transpose(1, 0, 2)).reshape(tokens, heads * dim)


def _exact(
    qkv: NDArray[np.float32],
    *,
    visible: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.bool_]] = lambda row, key: key <= row,
    scale: float = 0.125,
    kv_head: NDArray[np.intp] | None = None,
) -> Float64:
    """Attention by the book with one thing changed: which keys a row sees, the scale, or the head map. NaN where none."""
    query, key, value = block.heads_of(qkv, kv_head)
    tokens = len(qkv)
    seen = visible(np.arange(tokens)[:, None], np.arange(tokens)[None, :])
    mixed = np.empty((HEADS, tokens, DIM))
    for head in range(HEADS):
        score = np.where(seen, query[head] @ key[head].T * scale, -np.inf)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        mixed[head] = weight @ value[head] / weight.sum(axis=1, keepdims=True)
    return _side_by_side(mixed)


def _exp32(x: Float64) -> Float64:
    """exp with float32's range: infinite above 88.7, and 0 below -87.3, where kernels flush what is no normal number."""
    return np.where(x > OVERFLOW, np.inf, np.where(x < UNDERFLOW, 0.0, np.exp(np.minimum(x, OVERFLOW))))


def _online(
    qkv: NDArray[np.float32],
    keys: int = ROWS,
    *,
    on_acc: bool = True,
    on_l: bool = True,
    inverted: bool = False,
    own_maximum: bool = False,
    count_tail: bool = False,
    divide: bool = True,
) -> Float64:
    """The lesson's recurrence over tiles of `keys` keys, with one thing left out or turned round."""
    query, key, value = block.heads_of(qkv)
    tokens = len(qkv)
    row = np.arange(tokens)
    m = np.full((HEADS, tokens, 1), -np.inf)
    l = np.zeros((HEADS, tokens, 1))  # noqa: E741 - the lesson's name
    acc = np.zeros((HEADS, tokens, DIM))
    for first in range(0, tokens, keys):
        last = min(first + keys, tokens)
        live = row >= first
        score = query[:, live] @ key[:, first:last].transpose(0, 2, 1) * 0.125
        score = np.where(np.arange(first, last) <= row[live, None], score, -np.inf)
        highest = score.max(axis=2, keepdims=True)
        if count_tail and last == tokens:
            highest = np.maximum(highest, 0.0)
        m_new = highest if own_maximum else np.maximum(m[:, live], highest)
        alpha = _exp32(m_new - m[:, live] if inverted and first else m[:, live] - m_new)
        weight = _exp32(score - m_new)
        total = weight.sum(axis=2, keepdims=True)
        if count_tail and last == tokens:
            total = total + (first + keys - tokens) * _exp32(-m_new)
        l[:, live] = (alpha * l[:, live] if on_l else l[:, live]) + total
        acc[:, live] = (alpha * acc[:, live] if on_acc else acc[:, live]) + weight @ value[:, first:last]
        m[:, live] = m_new
    return _side_by_side(acc / l if divide else acc)


def _without_maximum(qkv: NDArray[np.float32]) -> Float64:
    query, key, value = block.heads_of(qkv)
    tokens = len(qkv)
    seen = np.tri(tokens, dtype=bool)
    mixed = np.empty((HEADS, tokens, DIM))
    for head in range(HEADS):
        weight = np.where(seen, _exp32(query[head] @ key[head].T * 0.125), 0.0)
        burst = np.isinf(weight).any(axis=1, keepdims=True)  # inf / inf
        finite = np.where(burst, 0.0, weight)
        mixed[head] = np.where(burst, np.nan, finite @ value[head] / finite.sum(axis=1, keepdims=True))
    return _side_by_side(mixed)


def _mean_of_values(qkv: NDArray[np.float32]) -> Float64:
    _, _, value = block.heads_of(qkv)
    return _side_by_side(np.cumsum(value, axis=1) / np.arange(1, len(qkv) + 1)[None, :, None])


def _head_major(qkv: NDArray[np.float32]) -> Float64:
    right = block.causal_attention(qkv)
    tokens = len(right)
    by_head = right.reshape(tokens, HEADS, DIM).transpose(1, 0, 2)
    return np.ascontiguousarray(by_head).reshape(tokens, HEADS * DIM)


def _rope_twice(qkv: NDArray[np.float32]) -> Float64:
    return block.causal_attention(block.rope(qkv.astype(np.float64)))  # type: ignore[no-any-return]


MISTAKES: dict[str, Callable[[NDArray[np.float32]], Float64]] = {
    "alpha_missing_on_acc": lambda qkv: _online(qkv, on_acc=False),
    "alpha_missing_on_acc_64": lambda qkv: _online(qkv, 64, on_acc=False),
    "alpha_missing_on_l": lambda qkv: _online(qkv, on_l=False),
    "alpha_missing_on_l_64": lambda qkv: _online(qkv, 64, on_l=False),
    "alpha_missing": lambda qkv: _online(qkv, on_acc=False, on_l=False),
    "alpha_missing_64": lambda qkv: _online(qkv, 64, on_acc=False, on_l=False),
    "alpha_inverted": lambda qkv: _online(qkv, inverted=True),
    "tile_maximum": lambda qkv: _online(qkv, own_maximum=True),
    "tile_maximum_64": lambda qkv: _online(qkv, 64, own_maximum=True),
    "no_maximum": _without_maximum,
    "not_normalised": lambda qkv: _online(qkv, divide=False),
    "tail_not_masked": lambda qkv: _online(qkv, count_tail=True),
    "tail_not_masked_64": lambda qkv: _online(qkv, 64, count_tail=True),
    "diagonal_excluded": lambda qkv: _exact(qkv, visible=lambda row, key: key < row),
    "future_visible": lambda qkv: _exact(qkv, visible=lambda row, key: key <= row + len(qkv)),
    "future_visible_in_tile": lambda qkv: _exact(qkv, visible=lambda row, key: key // ROWS <= row // ROWS),
    "scale_forgotten": lambda qkv: _exact(qkv, scale=1.0),
    "scale_not_a_root": lambda qkv: _exact(qkv, scale=1 / DIM),
    "wrong_kv_head": lambda qkv: _exact(qkv, kv_head=np.arange(HEADS) % KV_HEADS),
    "window_of_1024": lambda qkv: _exact(qkv, visible=lambda row, key: (key <= row) & (key > row - 1024)),
    "mean_of_values": _mean_of_values,
    "head_major": _head_major,
    "rope_twice": _rope_twice,
}
