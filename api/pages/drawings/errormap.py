"""Where a tensor is wrong: a `protocol.ErrorMap` as a small PNG, and the same in words.

One pixel a cell; the page scales it up without smoothing. Cells within the tolerance are transparent, so that the picture
stands on either theme's ground.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from itertools import pairwise
from typing import NamedTuple

from kernelgate.protocol import ErrorMap

MAX_CELLS = 1 << 16
TILES = (16, 32, 64, 128, 256)
"""Sizes of tiles, in rows or columns; kernels seldom use others."""
_STOPS = ((0, (240, 180, 60)), (85, (232, 110, 40)), (170, (205, 45, 60)), (253, (120, 10, 60)))
"""Colours from one tolerance (0) to 10^6 tolerances (253), between which the palette runs straight."""
_NOT_A_NUMBER = (125, 85, 240)


class Summary(NamedTuple):
    """The map in numbers; `worst` is the largest finite error in tolerances. Rows and columns are the tensor's."""

    cells: int
    wrong: int
    not_numbers: int
    first_row: int
    last_row: int
    first_column: int
    last_column: int
    worst: float

    @property
    def rows(self) -> str:
        return _span(self.first_row, self.last_row)

    @property
    def columns(self) -> str:
        return _span(self.first_column, self.last_column)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


class Picture(NamedTuple):
    """Where the map stands in its SVG, in CSS pixels, and its tiles' borders in cells.

    ticks: (row or column number, distance). borders: (distance in cells, whether it is a multiple of 64); tile_rows and
    tile_columns say how many rows or columns lie between two of them, 0 where none are drawn.
    """

    width: float
    height: float
    row_ticks: list[tuple[int, float]]
    column_ticks: list[tuple[int, float]]
    tile_rows: int
    tile_columns: int
    borders_across: list[tuple[float, bool]]
    borders_down: list[tuple[float, bool]]


def cells(error_map: ErrorMap) -> bytes:
    """The map's bytes, row by row; a map that does not hold rows × columns of them is shown empty."""
    expected = error_map.rows * error_map.columns
    try:
        raw = base64.b64decode(error_map.cells, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    return raw if len(raw) == expected <= MAX_CELLS else b""


def png(error_map: ErrorMap) -> bytes:
    """An 8-bit palette PNG of columns × rows pixels (RFC 2083: signature, IHDR, PLTE, tRNS, IDAT, IEND)."""
    raw = cells(error_map) or bytes(1)
    rows, columns = (error_map.rows, error_map.columns) if len(raw) > 1 or error_map.rows == 1 else (1, 1)
    lines = b"".join(b"\0" + raw[start : start + columns] for start in range(0, rows * columns, columns))
    palette = b"".join(bytes(_colour(level)) for level in range(256))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _colour(level: int) -> tuple[int, int, int]:
    if level == 0:
        return (0, 0, 0)
    if level == 255:
        return _NOT_A_NUMBER
    place = level - 1
    for (low, start), (high, end) in pairwise(_STOPS):
        if place <= high:
            share = (place - low) / (high - low)
            red, green, blue = (round(a + (b - a) * share) for a, b in zip(start, end, strict=True))
            return (red, green, blue)
    return _STOPS[-1][1]


def summary(error_map: ErrorMap, shape: tuple[int, ...] = ()) -> Summary | None:
    """The map in numbers, or None when it holds no wrong cell. `shape` is the tensor's, where it is known.

    The last row and column of cells may reach beyond the tensor, so its shape bounds what is named.
    """
    raw = cells(error_map)
    wrong = [place for place, level in enumerate(raw) if level]
    if not wrong:
        return None
    rows = [place // error_map.columns for place in wrong]
    columns = [place % error_map.columns for place in wrong]
    finite = [raw[place] for place in wrong if raw[place] < 255]
    height = min(error_map.rows * error_map.row_step, math.prod(shape[:-1]) if len(shape) > 1 else 1 << 62)
    width = min(error_map.columns * error_map.column_step, shape[-1] if len(shape) > 1 else 1 << 62)
    return Summary(
        cells=len(raw),
        wrong=len(wrong),
        not_numbers=len(wrong) - len(finite),
        first_row=rows[0] * error_map.row_step,
        last_row=min((rows[-1] + 1) * error_map.row_step, height) - 1,
        first_column=min(columns) * error_map.column_step,
        last_column=min((max(columns) + 1) * error_map.column_step, width) - 1,
        worst=10 ** (6 * (max(finite) - 1) / 253) if finite else float("nan"),
    )


def picture(error_map: ErrorMap) -> Picture:
    """Square cells as large as 600 × 380 px allow, at most 26 px, with a tick at about every 50 px."""
    cell = min(26.0, 600 / error_map.columns, 380 / error_map.rows)
    rows, columns = (error_map.rows, error_map.row_step), (error_map.columns, error_map.column_step)
    tile_rows, tile_columns = _tile(*rows, cell), _tile(*columns, cell)
    return Picture(
        round(cell * error_map.columns, 2),
        round(cell * error_map.rows, 2),
        _ticks(error_map.rows, cell, error_map.row_step),
        _ticks(error_map.columns, cell, error_map.column_step),
        tile_rows,
        tile_columns,
        _borders(*rows, tile_rows),
        _borders(*columns, tile_columns),
    )


def _ticks(count: int, cell: float, step: int) -> list[tuple[int, float]]:
    every = next(n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1 << 20) if n * cell >= 34)
    return [(place * step, round((place + 0.5) * cell, 2)) for place in range(0, count, every)]


def _tile(count: int, step: int, cell: float) -> int:
    """Rows or columns between two borders: the smallest tile whose borders stand apart, 0 where there is but one tile."""
    return next((tile for tile in TILES if tile / step * cell >= 8 and tile < count * step), 0)


def _borders(count: int, step: int, tile: int) -> list[tuple[float, bool]]:
    if not tile:
        return []
    return [(round(place / step, 4), place % TILES[2] == 0) for place in range(tile, count * step, tile)]
