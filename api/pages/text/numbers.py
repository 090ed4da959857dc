"""The numbers of a case as small tables: a row of cells for each row of an array."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from kernelgate.protocol import CaseValues, Values, WrongTensor
from kernelgate.text import line


class Numbers(NamedTuple):
    """An array. `rows` is empty where its values were not kept; `marked`: the first wrong element's row and column."""

    name: str
    form: str
    rows: list[list[str]]
    marked: tuple[int, int] | None = None


class Shown(NamedTuple):
    """One case. own: its floating-point inputs as JSON, to be changed and run again; "" where some were not kept."""

    name: str
    title: str
    inputs: list[Numbers]
    outputs: list[tuple[Numbers, Numbers]]
    own: str


def shown(values: CaseValues, title: str, wrong: WrongTensor | None) -> Shown | None:
    """None where no array was small enough to be kept."""
    if not any(array.values for array in (*values.inputs, *values.got)):
        return None
    at = wrong if wrong is not None and wrong.case == values.case else None
    outputs = [(_numbers(got, at), _numbers(want)) for got, want in zip(values.got, values.want, strict=False)]
    own = {array.name: _nested(array) for array in values.inputs if "float" in array.dtype}
    kept = all(array.values for array in values.inputs if "float" in array.dtype)
    text = ",\n".join(f" {json.dumps(name)}: {json.dumps(rows)}" for name, rows in own.items())
    inputs = [_numbers(array) for array in values.inputs]
    return Shown(line(values.case, 63), line(title, 160), inputs, outputs, f"{{\n{text}\n}}" if own and kept else "")


def _width(array: Values) -> int:
    return max(array.shape[-1], 1) if array.shape else 1


def _numbers(array: Values, wrong: WrongTensor | None = None) -> Numbers:
    texts, width = [f"{value:.6g}" for value in array.values], _width(array)
    rows = [texts[at : at + width] for at in range(0, len(texts), width)]
    marked = None
    if wrong is not None and wrong.tensor == array.name and len(wrong.index) == len(array.shape):
        flat = 0
        for size, place in zip(array.shape, wrong.index, strict=True):
            flat = flat * size + place
        marked = divmod(flat, width)
    shape = " × ".join(map(str, array.shape)) or "one value"
    return Numbers(line(array.name, 60), f"{shape}, {line(array.dtype, 20)}", rows, marked)


def _nested(array: Values) -> list[object]:
    """Rows as lists; what JSON has no number for is a word that the API reads."""
    values = [_number(value) for value in array.values]
    width = _width(array)
    return [values[at : at + width] for at in range(0, len(values), width)] if len(array.shape) > 1 else values


def _number(value: float) -> object:
    if math.isnan(value):
        return "NaN"
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
