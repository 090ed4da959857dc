"""Says how the weights that a submission gives differ from the true ones: whom a row sees, and how much each key weighs."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernelgate.protocol import Recovered
from kernelgate.stages import Case
from worker.judging.arrays import Float64

SIDE, TEXT_ROWS, TEXT_COLUMNS = 64, 8, 26
SHADES = "·.:-=+*%#@"
TILES = range(2, 129)
UNDERFLOW = 1e-4
"""Below this float16 has few digits left."""


@dataclass(frozen=True)
class Weights:
    """[group, row, key] as they were recovered and as they should be. keys: how many there are; step: what rounding leaves."""

    groups: Float64
    true_groups: Float64
    keys: int
    step: float

    @cached_property
    def group(self) -> int:
        """The one that differs most; NaN differs most of all."""
        apart: Float64 = np.abs(np.nan_to_num(self.groups, nan=4.0) - self.true_groups).max(axis=(1, 2))
        return int(np.argmax(apart))

    @property
    def got(self) -> Float64:
        chosen: Float64 = self.groups[self.group]
        return chosen

    @property
    def want(self) -> Float64:
        chosen: Float64 = self.true_groups[self.group]
        return chosen

    @property
    def whole(self) -> bool:
        return bool(self.got.shape[1] == self.keys)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Rows that have weights at all."""
        return np.flatnonzero(np.isfinite(self.got).all(axis=1))

    def differ(self) -> bool:
        off = np.abs(self.got - self.want) > 4 * self.step * np.maximum(1e-2, np.abs(self.want))
        return bool((off | ~np.isfinite(self.got)).any())


def explained(case: Case, equal: Weights | None, own: Weights | None, ms: float) -> Recovered | None:
    """equal: the weights of equal scores; own: those of the case's. None where neither differs from the truth."""
    said = [*(_of_equal(equal) if equal is not None and equal.differ() else ())]
    shown = equal if said else None
    if not said and own is not None and own.differ():
        said, shown = [*_of_scores(own)], own
    if shown is None or not said:
        return None
    rows, columns = shown.want.shape
    groups = len(shown.groups)
    head = f" of head {shown.group}" if groups > 1 else ""
    scores = "equal scores" if shown is equal else "the case's scores"
    return Recovered(
        case=case.name,
        title=f"The weights{head} at {scores}, {rows} rows × {columns} keys: true | the submission's",
        said=tuple(said[:3]),
        text=tuple(_text(shown)),
        rows=min(rows, SIDE),
        columns=min(columns, SIDE),
        got=_levels(shown, shown.got),
        want=_levels(shown, shown.want),
        ms=ms,
    )


# --- equal scores: whom a row sees, and what the weights add up to --------------------------------------------------------


def _of_equal(it: Weights) -> Iterator[str]:
    seen, true = _seen(it.got), _seen(it.want)
    lost, extra = true & ~seen, seen & ~true
    lost[~np.isfinite(it.got).all(axis=1)] = False
    yield from _without(it)
    if lost.any() or extra.any():
        yield f"{_rule(it, seen)}; it should see {_rule(it, true)[len('Row t sees ') :]}."
        for found, verb in ((lost, "does not see"), (extra, "sees")):
            if found.any():
                row, key = (int(at[0]) for at in np.nonzero(found))
                pairs, rows = int(found.sum()), int(found.any(axis=1).sum())
                yield f"For one, row {row} {verb} key {key}; {pairs} such pairs in {rows} rows."
        return
    if it.whole:
        yield from _of_sums(it, true)


def _seen(weights: Float64) -> NDArray[np.bool_]:
    size = np.nan_to_num(np.abs(weights))
    seen: NDArray[np.bool_] = size > np.maximum(0.05 * size.max(axis=1, keepdims=True), 1e-6)
    return seen


def _without(it: Weights) -> Iterator[str]:
    bad = np.flatnonzero(~np.isfinite(it.got).all(axis=1))
    if len(bad):
        yield f"{_listed('Row', bad, len(it.got))} {'has' if len(bad) == 1 else 'have'} no weights: NaN or infinite."


def _of_sums(it: Weights, true: NDArray[np.bool_]) -> Iterator[str]:
    sums, count = it.got[it.rows].sum(axis=1), true[it.rows].sum(axis=1)
    off = np.abs(sums - 1) > 8 * it.step
    if not off.any():
        return
    at = int(np.flatnonzero(off)[-1])
    row = int(it.rows[at])
    if np.allclose(sums, count, rtol=8 * it.step):
        yield f"The weights are not divided by their sum: of {count[at]} keys in row {row} each weighs 1."
        return
    more = count[off] / sums[off] - count[off]
    if (more > 0.5).all() and np.allclose(more, np.round(more), atol=0.2) and np.ptp(np.round(more)) == 0:
        where = _listed("row", it.rows[off], len(it.got))
        yield f"In {where} the weights add up to less than 1: as if {round(float(more[0]))} more keys of score 0 were counted."
        return
    yield f"The weights of row {row} add up to {sums[at]:.4g}, not 1."


def _rule(it: Weights, seen: NDArray[np.bool_]) -> str:
    """'Row t sees the keys 0 to t', with formulas that hold for every row that sees any."""
    rows = np.array([row for row in it.rows if seen[row].any()], dtype=np.intp)
    if not len(rows):
        return "Row t sees no key"
    low = np.array([np.flatnonzero(seen[row])[0] for row in rows])
    high = np.array([np.flatnonzero(seen[row])[-1] for row in rows])
    last = it.got.shape[1] - 1
    holes = [int(row) for row, a, b in zip(rows, low, high, strict=True) if not seen[row, a : b + 1].all()]
    gaps = f", not all of them in {len(holes)} rows" if holes else ""
    return f"Row t sees the keys {_start(rows, low)} to {_end(rows, high, last)}{gaps}"


def _start(rows: NDArray[np.intp], low: NDArray[np.intp]) -> str:
    if not low.any():
        return "0"
    if (low == rows).all():
        return "t"
    for window in sorted({int(row - at) for row, at in zip(rows, low, strict=True) if at}):
        if (low == np.maximum(rows - window, 0)).all():
            return f"t - {window} (a window of {window + 1})"
    for tile in TILES:
        for back in range(4):
            if (low == np.maximum((rows // tile - back) * tile, 0)).all():
                behind = f" - {back * tile}" if back else ""
                return f"⌊t/{tile}⌋·{tile}{behind}"
    return f"{int(low[-1])} (in row {int(rows[-1])})"


def _end(rows: NDArray[np.intp], high: NDArray[np.intp], last: int) -> str:
    if (high == last).all():
        return "the last"
    ahead = int((high - rows)[0])
    inner = rows + ahead <= last
    if (high[inner] == rows[inner] + ahead).all():
        return "t" if ahead == 0 else f"t {'+' if ahead > 0 else '-'} {abs(ahead)}"
    usual = np.median((high - rows)[len(rows) // 4 :])
    but = rows[high != np.minimum(rows + int(usual), last)]
    if len(but) <= 2 and usual == int(usual):
        sign = "+" if usual > 0 else "-"
        return ("t" if usual == 0 else f"t {sign} {abs(int(usual))}") + f" (but for row {', '.join(map(str, but))})"
    for tile in TILES:
        if (high == np.minimum(rows // tile * tile + tile - 1, last)).all():
            return f"⌊t/{tile}⌋·{tile} + {tile - 1}, the end of its tile of {tile}"
    return f"{int(high[-1])} (in row {int(rows[-1])})"


def _listed(word: str, rows: NDArray[np.intp], total: int) -> str:
    """'Every row', 'row 3', 'rows 4 to 9', or the first of them."""
    first, last = int(rows[0]), int(rows[-1])
    if len(rows) == total:
        return "Every row" if word[0].isupper() else "every row"
    if len(rows) == 1:
        return f"{word} {first}"
    return f"{word}s {first} to {last}" if last - first + 1 == len(rows) else f"{len(rows)} rows from {first} on"


# --- a case's own scores: how much each key weighs ------------------------------------------------------------------------


def _of_scores(it: Weights) -> Iterator[str]:
    yield from _without(it)
    usable = (it.want > max(64 * it.step**2, 1e-5)) & (it.got > 0) & np.isfinite(it.got)
    if not usable.any():
        return
    with np.errstate(all="ignore"):
        ratio = np.where(usable, np.log(it.got / it.want), 0.0)
    scale = _scale(it, usable)
    if scale is not None:
        yield (
            "All visible keys weigh the same."
            if abs(scale) < 0.01
            else (f"The weights are those of scores {scale:.3g} times as large as they should be.")
        )
        return
    row = max(
        (int(row) for row in it.rows), key=lambda row: np.ptp(ratio[row][usable[row]]) if usable[row].any() else 0
    )
    keys = np.flatnonzero(usable[row])
    parts = _parts(ratio[row][keys], keys)
    if len(parts) == 1 and abs(parts[0][2]) > 8 * it.step:
        row = max((int(r) for r in it.rows), key=lambda r: np.abs(ratio[r][usable[r]]).max(initial=0))
        at = float(np.median(ratio[row][usable[row]]))
        yield f"In row {row} every key weighs {_times(at)} what it should: right beside each other, but their sum is not."
        return
    if len(parts) > 6:
        most = _times(float(ratio[row][keys].max()))
        yield f"In row {row} the weights differ from key to key, by up to {most} what they should be."
        return
    told = ", ".join(f"{_keys(first, last)} {_times(at)}" for first, last, at in parts)
    tile = _tile(ratio, usable, it.rows)
    tiles = f", in tiles of {tile} keys" if tile else ""
    yield f"In row {row} these keys weigh, of what they should: {told}{tiles}."
    if _unrescaled(it, row, parts):
        yield "That is what a sum holds that was not rescaled when the running maximum rose."


def _scale(it: Weights, usable: NDArray[np.bool_]) -> float | None:
    """By what the scores are multiplied, if that explains all weights: then their logarithms are in proportion."""
    slopes, residual = [], 0.0
    for row in it.rows:
        keys = usable[row] & (it.got[row] > UNDERFLOW) & (it.want[row] > UNDERFLOW)
        x, y = np.log(it.want[row][keys]), np.log(it.got[row][keys])
        if len(np.unique(np.round(x, 2))) < 4 or np.ptp(x) < 0.5:
            continue
        slope, offset = np.polyfit(x, y, 1)
        slopes.append(slope)
        residual = max(residual, float(np.abs(y - slope * x - offset).max()))
    if len(slopes) < 2 or residual > 0.1 or np.ptp(slopes) > 0.05 or abs(np.median(slopes) - 1) < 0.02:
        return None
    return float(np.median(slopes))


def _parts(ratio: Float64, keys: NDArray[np.intp]) -> list[tuple[int, int, float]]:
    """Runs of keys with one logarithm of a ratio: (first key, last key, logarithm)."""
    cuts = np.flatnonzero(np.abs(np.diff(ratio)) > 0.05) + 1
    return [
        (int(keys[part][0]), int(keys[part][-1]), float(np.median(ratio[part])))
        for part in np.split(np.arange(len(ratio)), cuts)
    ]


def _tile(ratio: Float64, usable: NDArray[np.bool_], rows: NDArray[np.intp]) -> int:
    """The largest tile whose borders all changes of the ratio can lie on, in every row; 0 where there is none."""
    gaps = set()
    for row in rows:
        keys = np.flatnonzero(usable[row])
        parts = _parts(ratio[row][keys], keys) if len(keys) else []
        gaps |= {(before[1], after[0]) for before, after in pairwise(parts)}
    fitting = (tile for tile in reversed(TILES) if all(after // tile > before // tile for before, after in gaps))
    return next(fitting, 0) if gaps else 0


def _unrescaled(it: Weights, row: int, parts: list[tuple[int, int, float]]) -> bool:
    """Whether each part weighs as much more than the last as the maximum had still to rise behind it."""
    want, top = it.want[row], it.want[row].max()
    expected = [np.log(top / want[: last + 1].max()) for _, last, _ in parts]
    return all(
        abs((part[2] - parts[-1][2]) - (rise - expected[-1])) < 0.1 for part, rise in zip(parts, expected, strict=True)
    )


def _times(logarithm: float) -> str:
    if abs(logarithm) < 0.02:
        return "1 times"
    return f"e^{logarithm:.2g} ({np.exp(logarithm):.3g}) times" if abs(logarithm) < 20 else f"e^{logarithm:.3g} times"


def _keys(first: int, last: int) -> str:
    return f"key {first}" if first == last else f"keys {first} to {last}"


# --- pictures ---------------------------------------------------------------------------------------------------------


def _coarse(weights: Float64, rows: int, columns: int) -> Float64:
    """The largest weight of each cell of a grid of at most rows × columns; NaN where there is one."""
    across = np.array_split(np.arange(weights.shape[0]), min(rows, weights.shape[0]))
    down = np.array_split(np.arange(weights.shape[1]), min(columns, weights.shape[1]))
    return np.array([[weights[np.ix_(a, b)].max() for b in down] for a in across])


def _shares(it: Weights, weights: Float64) -> Float64:
    """Each weight as a share of its row's largest true one, at most 1."""
    top = np.maximum(it.want.max(axis=1, keepdims=True), 1e-12)
    shares: Float64 = np.clip(np.abs(weights) / top, 0, 1)
    return shares


def _text(it: Weights) -> Iterator[str]:
    maps = [_coarse(_shares(it, weights), TEXT_ROWS, TEXT_COLUMNS) for weights in (it.want, it.got)]
    for want, got in zip(*maps, strict=True):
        yield f"{_line(want)} | {_line(got)}"


def _line(cells: Float64) -> str:
    return "".join("?" if not np.isfinite(cell) else SHADES[int(np.ceil(9 * np.sqrt(cell)))] for cell in cells)


def _levels(it: Weights, weights: Float64) -> str:
    cells = _coarse(_shares(it, weights), SIDE, SIDE)
    levels = np.where(np.isfinite(cells), np.round(254 * np.sqrt(np.nan_to_num(cells))), 255)
    return base64.b64encode(levels.astype(np.uint8).tobytes()).decode()
