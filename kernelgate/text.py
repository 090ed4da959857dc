"""Text that others wrote, made fit to be shown: in terminals, logs, problem documents and pages.

A module of its own, because the command line needs it and must not wait for the library that checks results.
"""

from __future__ import annotations

import re

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def plain(text: str, limit: int = 2000) -> str:
    """`text` as bounded plain text: tabs and newlines stay, what steers a terminal or reorders text becomes `�`."""
    clean = _STEERING.sub("\N{REPLACEMENT CHARACTER}", text[: limit + 1].replace("\r\n", "\n"))
    return clean if len(text) <= limit else clean[:limit] + "…"


def line(text: str, limit: int = 200) -> str:
    """`plain`, on one line."""
    return " ".join(plain(text, limit).split())
