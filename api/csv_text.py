"""CSV (RFC 4180) in which no cell is a formula: a spreadsheet would run one that somebody chose as a name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([_cell(column) for column in columns])
    writer.writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
