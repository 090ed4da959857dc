"""Inputs, float64 reference and named mistakes of tiled attention with online normalisation.

Inputs are fp16 or bf16 from the start and the reference reads exactly these values, so rounding them is nobody's error. On top
of standard normal tokens, cut off at 4, come *plants*, without which most mistakes leave no trace: keys whose scores rise from
tile to tile or stand far above the rest, rows that find one key nearly alone, scores that are all large or all equal.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelgate.settings import settings
from kernelgate.stages import Case

Float64 = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
BM = 16
OVERFLOW = float(np.log(np.finfo(np.float32).max))
UNDERFLOW = float(np.log(np.finfo(np.float32).tiny))


def _oracle() -> Any:
    name = "kernelgate_attention_reference"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, settings().kernels_dir / "attention" / "reference.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


oracle = _oracle()


# --- dtypes: numpy has no bfloat16, so its values travel as their bits in uint16 -------------------------------------------


def encoded(values: Float64, dtype: str) -> NDArray[Any]:
    """float64 rounded to nearest even: float16, or the bits of bfloat16 in uint16."""
    if dtype == "float16":
        return values.astype(np.float16)
    bits = values.astype(np.float32).view(np.uint32)
    rounded: NDArray[Any] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return rounded


def decoded(stored: NDArray[Any]) -> Float64:
    """The exact values of float16, or of bfloat16 bits."""
    if stored.dtype == np.uint16:
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(np.float64)


# --- inputs ---------------------------------------------------------------------------------------------------------------


def _sizes(case: Case) -> tuple[int, int]:
    return int(str(case.data["n"])), int(str(case.data["d"]))


def inputs(case: Case, rng: np.random.Generator) -> Arrays:
    """q, k, v [N, D] of the case's dtype; `v_changed` where rows of V from `changed_from` on are replaced for a second run."""
    tokens, dim = _sizes(case)
    q, k, v = (np.clip(rng.standard_normal((tokens, dim)), -4, 4) for _ in range(3))
    PLANTS[str(case.data["plant"])](q, k, v, _planting(case, rng))
    made = {"q": encoded(q, case.dtype), "k": encoded(k, case.dtype), "v": encoded(v, case.dtype)}
    if "changed_from" in case.data:
        other = v.copy()
        first = int(str(case.data["changed_from"]))
        other[first:] = 4 * rng.choice([-1.0, 1.0], other[first:].shape)
        made["v_changed"] = encoded(other, case.dtype)
    return made


def workspace(case: Case) -> int:
    """Bytes besides the output: six splits of float32 partial results with two statistics a row, and room for descriptors."""
    tokens, dim = _sizes(case)
    return 65_536 + 6 * tokens * (dim + 2) * 4


def work(case: Case) -> float:
    """Floating-point operations: a multiply-add a dim for each score and again for each value that is seen."""
    tokens, dim = _sizes(case)
    pairs = tokens * (tokens + 1) / 2 if case.params["causal"] else tokens * tokens
    return pairs * 2 * 2 * dim


class Planting(NamedTuple):
    """How a plant is laid out: `height` times as high as it is listed, in tiles of `tile` keys."""

    height: float
    tile: int
    rng: np.random.Generator


def _planting(case: Case, rng: np.random.Generator) -> Planting:
    return Planting(float(str(case.data.get("height", 1.0))), int(str(case.data.get("tile", 32))), rng)


def _along(q: Float64, k: Float64, height: float) -> Float64:
    """A direction that every query has `height` of and no key has any of; scores can be planted along it."""
    dim = q.shape[1]
    direction = np.zeros(dim)
    direction[0] = 1.0
    q[:, 0] = height
    k[:, 0] = 0.0
    return direction


def _lift(k: Float64, scores: Any, rows: Any, dim: int, height: float) -> None:
    """Adds `scores` to what every query sees at the keys `rows`."""
    k[rows, 0] += np.asarray(scores) * math.sqrt(dim) / height


def _plant_plain(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """Random tokens as they are, but for keys that stand out at the tiles' borders."""
    _along(q, k, 4.0)
    for border, score in ((how.tile // 2, 3.0), (how.tile, 5.0), (2 * how.tile, 7.0)):
        if border < len(k):
            _lift(k, score * how.height, slice(border, border + 1), k.shape[1], 4.0)


def _plant_rising(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """Scores climb by 1.5 every 32 keys, 24 at most: the running maximum moves in every tile."""
    _along(q, k, 4.0)
    _lift(k, how.height * np.minimum(1.5 * (np.arange(len(k)) // how.tile), 24.0), slice(None), k.shape[1], 4.0)


def _plant_falling(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """The first tile stands 110 above everything later: a tile's own maximum cannot take the running one's place."""
    _along(q, k, 16.0)
    _lift(k, 110.0 * how.height, slice(0, how.tile), k.shape[1], 16.0)


def _plant_large(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """All scores lie around 100 and rise: exp of any of them overflows float32."""
    _along(q, k, 16.0)
    _lift(k, how.height * (100.0 + 2.0 * (np.arange(len(k)) // how.tile % 8)), slice(None), k.shape[1], 16.0)


def _plant_negative(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """All scores lie around -60: a padded key's score of 0 would outweigh every real one."""
    _along(q, k, 16.0)
    _lift(k, -60.0 * how.height, slice(None), k.shape[1], 16.0)


def _plant_uniform(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """All scores are 0: every visible key weighs the same."""
    q[:] = 0.0


def _plant_needles(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """A few keys far apart that every row which sees them finds nearly alone."""
    _along(q, k, 4.0)
    places = np.unique(
        np.concatenate([how.rng.integers(0, max(1, len(k) // 4), 3), how.rng.integers(0, len(k), 2), [len(k) - 1]])
    )
    _lift(k, how.height * (9.0 + 0.5 * np.arange(len(places))), places, k.shape[1], 4.0)


def _plant_trace(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """The hand trace: logits 0, 0 in the first tile and log 2 in the second; values 1, 3 and 10. The rest weighs nothing."""
    q[:], k[:], v[:] = 0.0, 0.0, 0.0
    q[:, 0] = 4.0
    scale = math.sqrt(q.shape[1]) / 4.0
    k[2:32, 0] = -1000.0 * scale
    k[32, 0] = math.log(2.0) * scale
    v[0, 0], v[1, 0], v[32, 0] = 1.0, 3.0, 10.0


def _plant_swamped(q: Float64, k: Float64, v: Float64, how: Planting) -> None:
    """Equal scores; the first tile's values are 60, later ones too small to show beside their sum in fp16 or bf16."""
    q[:] = 0.0
    v[:] = 0.014 * (0.75 + 0.25 * how.rng.random(v.shape))
    v[:32] = 60.0


PLANTS: dict[str, Callable[[Float64, Float64, Float64, Planting], None]] = {
    "plain": _plant_plain,
    "rising": _plant_rising,
    "falling": _plant_falling,
    "large": _plant_large,
    "negative": _plant_negative,
    "uniform": _plant_uniform,
    "needles": _plant_needles,
    "trace": _plant_trace,
    "swamped": _plant_swamped,
}


# --- reference and mistakes -----------------------------------------------------------------------------------------------


def reference(case: Case, inputs: Arrays, mistake: str | None = None) -> dict[str, Float64]:
    """`out` [N, D] in float64, of the truth or of a named mistake; after a change of V also `out_changed` and `kept`.

    `kept` is 0 where an output that cannot see the change stayed the same bit for bit, and 1 where it did not.
    """
    if case.params["kind"] == "refusals":
        return {}
    compute = _exact if mistake is None else MISTAKES[mistake]
    causal = bool(case.params["causal"])

    def answer(v: str) -> Float64:
        return compute(case, decoded(inputs["q"]), decoded(inputs["k"]), decoded(inputs[v]), causal)

    tensors = {"out": answer("v")}
    if "v_changed" in inputs:
        tensors["out_changed"] = answer("v_changed")
        first = int(str(case.data["changed_from"]))
        same = tensors["out"][:first] == tensors["out_changed"][:first]
        tensors["kept"] = np.where(same, 0.0, 1.0)
    return tensors


def derived(case: Case, inputs: Arrays, written: Arrays) -> Arrays:
    """`kept`, from the outputs of both runs, bit by bit. 0 and 1 have the same bits in no dtype, so they are given as such."""
    if "out_changed" not in written:
        return {}
    first = int(str(case.data["changed_from"]))
    before, after = (written[name].view(np.uint16)[:first] for name in ("out", "out_changed"))
    return {"kept": encoded((before != after).astype(np.float64), case.dtype)}


def _exact(case: Case, q: Float64, k: Float64, v: Float64, causal: bool) -> Float64:
    found: Float64 = oracle.attention(q, k, v, causal=causal)
    return found


def _exp32(x: Float64) -> Float64:
    """exp with float32's range: infinite above 88.7, and 0 below -87.3, where kernels flush what is no normal number."""
    return np.where(x > OVERFLOW, np.inf, np.where(x < UNDERFLOW, 0.0, np.exp(np.minimum(x, OVERFLOW))))


def _rounded(values: Float64, dtype: str) -> Float64:
    return decoded(encoded(values, dtype))


def _online(
    case: Case,
    q: Float64,
    k: Float64,
    v: Float64,
    causal: bool,
    *,
    on_numerator: bool = True,
    on_denominator: bool = True,
    inverted: bool = False,
    own_maximum: bool = False,
    count_tail: bool = False,
    divide: bool = True,
    stored: Callable[[Float64], Float64] = lambda values: values,
    causal_shift: int = 0,
) -> Float64:
    """The recurrence over tiles of block_n keys, with one thing left out or turned round.

    stored: what the accumulator's dtype makes of it after every tile. causal_shift: row i sees the keys up to i + shift.
    """
    tokens, dim = q.shape
    keys = int(str(case.params["block_n"]))
    m = np.full((tokens, 1), -np.inf)
    l = np.zeros((tokens, 1))  # noqa: E741 - the lesson's name
    a = np.zeros((tokens, v.shape[1]))
    rows = np.arange(tokens)[:, None]
    for first in range(0, tokens, keys):
        last = min(first + keys, tokens)
        score = q @ k[first:last].T / math.sqrt(dim)
        if causal:
            score = np.where(np.arange(first, last) <= rows + causal_shift, score, -np.inf)
        padded = first + keys - tokens if count_tail and last == tokens and not causal else 0
        highest = np.maximum(score.max(axis=1, keepdims=True), 0.0 if padded else -np.inf)
        m_new = highest if own_maximum else np.maximum(m, highest)
        alpha = _exp32(m_new - m if inverted and first else m - m_new)
        p = _exp32(score - m_new)
        total = p.sum(axis=1, keepdims=True) + padded * _exp32(-m_new)
        l = (alpha * l if on_denominator else l) + total  # noqa: E741
        a = stored((alpha * a if on_numerator else a) + p @ v[first:last])
        m = m_new
    return a / l if divide else a


def _masked(
    visible: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.bool_]],
) -> Callable[[Case, Float64, Float64, Float64, bool], Float64]:
    """Attention by the definition with another causal mask; the truth where nothing is masked."""

    def compute(case: Case, q: Float64, k: Float64, v: Float64, causal: bool) -> Float64:
        if not causal:
            return _exact(case, q, k, v, causal)
        at = np.arange(len(q))
        score = np.where(visible(at[:, None], at[None, :]), q @ k.T / math.sqrt(q.shape[1]), -np.inf)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        return weight @ v / weight.sum(axis=1, keepdims=True)

    return compute


def _without_maximum(case: Case, q: Float64, k: Float64, v: Float64, causal: bool) -> Float64:
    score = q @ k.T / math.sqrt(q.shape[1])
    at = np.arange(len(q))
    weight = np.where(at[None, :] <= at[:, None], _exp32(score), 0.0) if causal else _exp32(score)
    burst = np.isinf(weight).any(axis=1, keepdims=True)
    finite = np.where(burst, 0.0, weight)
    return np.where(burst, np.nan, finite @ v / np.where(burst, 1.0, finite.sum(axis=1, keepdims=True)))


def _scaled(factor: Callable[[int], float]) -> Callable[[Case, Float64, Float64, Float64, bool], Float64]:
    return lambda case, q, k, v, causal: _exact(case, q * factor(q.shape[1]), k, v, causal)


def _mean_of_values(case: Case, q: Float64, k: Float64, v: Float64, causal: bool) -> Float64:
    return _exact(case, np.zeros_like(q), k, v, causal)


def _narrow_accumulator(case: Case, q: Float64, k: Float64, v: Float64, causal: bool) -> Float64:
    return _online(case, q, k, v, causal, stored=lambda values: _rounded(values, case.dtype))


MISTAKES: dict[str, Callable[[Case, Float64, Float64, Float64, bool], Float64]] = {
    "numerator_not_rescaled": lambda *given: _online(*given, on_numerator=False),
    "denominator_not_rescaled": lambda *given: _online(*given, on_denominator=False),
    "nothing_rescaled": lambda *given: _online(*given, on_numerator=False, on_denominator=False),
    "alpha_inverted": lambda *given: _online(*given, inverted=True),
    "tile_maximum": lambda *given: _online(*given, own_maximum=True),
    "no_maximum": _without_maximum,
    "not_normalised": lambda *given: _online(*given, divide=False),
    "key_tail_not_masked": lambda *given: _online(*given, count_tail=True),
    "diagonal_excluded": _masked(lambda row, key: key < row),
    "one_key_too_many": _masked(lambda row, key: key <= row + 1),
    "future_visible": _masked(lambda row, key: key <= row + len(row)),
    "future_visible_in_tile": _masked(lambda row, key: key // BM <= row // BM),
    "scale_forgotten": _scaled(lambda dim: math.sqrt(dim)),
    "scale_not_a_root": _scaled(lambda dim: 1 / math.sqrt(dim)),
    "base_two": _scaled(lambda _: math.log(2.0)),
    "mean_of_values": _mean_of_values,
    "narrow_accumulator": _narrow_accumulator,
}
