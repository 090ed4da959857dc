"""The weights that a wrong submission gives, beside the true ones (`protocol.Recovered`): two small maps as SVG paths."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from kernelgate.protocol import Recovered

STEPS = 8
MOST_CELLS = 1 << 13
NONE = 255


class Shade(NamedTuple):
    """All cells of one strength: an SVG path in cells, and how dark it is, from 0 to 1; `none`: they hold no number."""

    path: str
    opacity: float
    none: bool


class Map(NamedTuple):
    title: str
    shades: list[Shade]


class Maps(NamedTuple):
    rows: int
    columns: int
    maps: list[Map]
    borders: list[int]


def maps(found: Recovered) -> Maps | None:
    """Both maps; None where there are none, or they do not hold rows × columns cells."""
    size = found.rows * found.columns
    if not 0 < size <= MOST_CELLS:
        return None
    drawn = [Map(title, list(_shades(_cells(cells, size), found.columns))) for title, cells in
             (("true", found.want), ("the submission's", found.got))]  # fmt: skip
    if not all(each.shades for each in drawn):
        return None
    most = max(found.rows, found.columns)
    return Maps(found.rows, found.columns, drawn, list(range(16, most, 16)))


def _cells(text: str, size: int) -> bytes:
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    return raw if len(raw) == size else b""


def _shades(cells: bytes, columns: int) -> Iterator[Shade]:
    paths: dict[int, list[str]] = {}
    for row, start in enumerate(range(0, len(cells), columns)):
        at = 0
        for level, run in groupby(map(_step, cells[start : start + columns])):
            width = len(list(run))
            if level:
                paths.setdefault(level, []).append(f"M{at} {row}h{width}v1h-{width}z")
            at += width
    for level, parts in sorted(paths.items()):
        yield Shade("".join(parts), 1.0 if level == NONE else round(level / STEPS, 3), level == NONE)


def _step(cell: int) -> int:
    return NONE if cell == NONE else -(-cell * STEPS // 254)
