"""Says in words and as a small picture where a tensor is wrong."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import NDArray

from kernelgate.protocol import ErrorMap
from worker.judging.arrays import Float64

MAP_SIDE = 96
"""Most cells of a side of an error map: 96 × 96 bytes are 12 kB of base64, and more cells than that no page shows."""


_FILL = np.uint64(0xFFFF_E000_0000_0000)
"""Outputs are filled with ones, a NaN in every dtype: as float64 the sign, the exponent and at least 7 bits of the fraction are
set. What arithmetic makes is another one: 0x7FFFFFFF on a GPU, 0xFFC00000 on a CPU."""


def as_rows(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """[..., columns] as [rows, columns]; a vector becomes one column, a scalar one cell."""
    if array.ndim <= 1:
        return array.reshape(-1, 1)
    return array.reshape(-1, array.shape[-1])


def describe(wrong: NDArray[np.bool_], got: Float64, want: Float64, axes: tuple[str, ...]) -> str:
    """The shape of the damage, e.g. 'every row from 32 on; got is 0.5 × want throughout'.

    wrong, got, want: the same shape, of which at least one element is wrong.
    """
    rows = as_rows(wrong)
    row_axis, column_axis = _axis_names(axes, wrong.ndim)
    parts = [_where(rows, row_axis, column_axis), *_how(wrong, got, want)]
    return "; ".join(part for part in parts if part)


def _where(wrong: NDArray[np.generic], row_axis: str, column_axis: str) -> str:
    rows, columns = np.flatnonzero(wrong.any(axis=1)), np.flatnonzero(wrong.any(axis=0))
    count, total = int(np.count_nonzero(wrong)), wrong.size
    if count == total:
        return "every element"
    if count == 1:
        return "a single element"
    filled = bool(wrong[np.ix_(rows, columns)].all())
    along_rows = _run(rows, wrong.shape[0], row_axis)
    along_columns = _run(columns, wrong.shape[1], column_axis)
    if filled and along_rows and along_columns:
        if len(columns) == wrong.shape[1]:
            return f"every {along_rows}"
        return f"every {along_columns}" if len(rows) == wrong.shape[0] else f"{along_rows} at {along_columns}"
    if along_rows and len(rows) < wrong.shape[0]:
        return f"{count} of {total} elements, all in {along_rows}"
    if along_columns and len(columns) < wrong.shape[1]:
        return f"{count} of {total} elements, all in {along_columns}"
    return f"{count} of {total} elements, scattered"


def _run(found: NDArray[np.intp], size: int, axis: str) -> str:
    """'row 3', 'row from 32 on', 'row up to 7', 'row 4 to 9', or '' when the indices have gaps."""
    first, last = int(found[0]), int(found[-1])
    if len(found) == 1:
        return f"{axis} {first}"
    if last - first + 1 != len(found):
        return ""
    if len(found) == size:
        return axis
    if last == size - 1:
        return f"{axis} from {first} on"
    return f"{axis} up to {last}" if first == 0 else f"{axis} {first} to {last}"


def _how(wrong: NDArray[np.bool_], got: Float64, want: Float64) -> list[str]:
    bad, right = got[wrong], want[wrong]
    holes = int(np.count_nonzero(~np.isfinite(bad)))
    if holes:
        unwritten = int(np.count_nonzero((bad.view(np.uint64) & _FILL) == _FILL))
        return _said_of_holes(bad.size, holes - unwritten, unwritten)
    if not bad.any():
        return ["all wrong values are 0"]
    usable = np.abs(right) > 1e-12
    if bad.size < 3 or not usable.all():
        return []
    ratio = bad / right
    middle = float(np.median(ratio))
    if np.max(np.abs(ratio - middle)) <= 1e-3 * max(abs(middle), 1e-3) and abs(middle - 1) > 1e-2:
        return [f"got is {middle:.4g} × want in all of them"]
    return []


def _said_of_holes(wrong: int, computed: int, unwritten: int) -> list[str]:
    parts = []
    if unwritten:
        parts.append(
            f"{unwritten} of the {wrong} wrong values were never written: they hold what outputs are filled with"
        )
    if computed:
        parts.append(f"{computed} of the {wrong} wrong values are NaN or infinite")
    return parts


def _axis_names(axes: tuple[str, ...], rank: int) -> tuple[str, str]:
    named = axes if len(axes) == rank else tuple(f"axis {index}" for index in range(rank))
    if rank <= 1:
        return (named[0] if named else "value"), "value"
    return (named[0] if rank == 2 else " × ".join(named[:-1])), named[-1]


def error_map(excess: Float64, axes: tuple[str, ...]) -> ErrorMap:
    """A picture of `excess`, the error in tolerances (NaN or infinite where the value is), of any shape."""
    cells = as_rows(excess)
    row_step = -(-cells.shape[0] // MAP_SIDE)
    column_step = -(-cells.shape[1] // MAP_SIDE)
    levels = _levels(cells.astype(np.float64))
    rows, columns = -(-levels.shape[0] // row_step), -(-levels.shape[1] // column_step)
    padded = np.zeros((rows * row_step, columns * column_step), dtype=np.uint8)
    padded[: levels.shape[0], : levels.shape[1]] = levels
    coarse = padded.reshape(rows, row_step, columns, column_step).max(axis=(1, 3))
    row_axis, column_axis = _axis_names(axes, excess.ndim)
    return ErrorMap(
        rows=rows,
        columns=columns,
        row_axis=row_axis,
        column_axis=column_axis,
        row_step=row_step,
        column_step=column_step,
        cells=base64.b64encode(coarse.tobytes()).decode(),
    )


def _levels(excess: Float64) -> NDArray[np.uint8]:
    """0 within the tolerance; 1..254 for 1 to 10^6 tolerances on a log scale; 255 not finite."""
    finite = np.isfinite(excess)
    decades = np.log10(np.where(finite, np.maximum(excess, 1.0), 1.0))
    scaled = np.clip(1 + np.floor(decades / 6 * 253), 1, 254)
    levels = np.where(excess > 1, scaled, 0)
    return np.where(finite, levels, 255).astype(np.uint8)
