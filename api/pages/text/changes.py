"""Two texts line by line: what stands in the one and not in the other."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from api.pages.text.highlighting import numbered

_MOST_LINES, _CONTEXT, _MOST_SHOWN = 5000, 4, 10_000


class Changed(NamedTuple):
    """A line of a comparison: "+", "-" or " ", its number before and after, and its coloured text. "…": lines left out."""

    sign: str
    before: int | None
    after: int | None
    text: Markup


def changes(before: str, after: str, language: str = "text") -> list[Changed]:
    """Changed lines with some around them; empty when the texts are the same. Bounded: a comparison is quadratic at worst."""
    return [*_changes(before.splitlines()[:_MOST_LINES], after.splitlines()[:_MOST_LINES], language)][:_MOST_SHOWN]


def _changes(old: list[str], new: list[str], language: str) -> Iterator[Changed]:
    matcher = difflib.SequenceMatcher(None, old, new)
    if matcher.real_quick_ratio() == 1 and old == new:
        return
    coloured = [numbered("\n".join(lines).encode("utf-8", "replace"), language) for lines in (old, new)]
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number or group[0][1]:
            yield Changed("…", None, None, Markup(""))
        for kind, first, last, start, end in group:
            if kind == "equal":
                for was, now in zip(range(first, last), range(start, end), strict=True):
                    yield Changed(" ", was + 1, now + 1, _line(coloured[1], now))
                continue
            for was in range(first, last):
                yield Changed("-", was + 1, None, _line(coloured[0], was))
            for now in range(start, end):
                yield Changed("+", None, now + 1, _line(coloured[1], now))


def _line(lines: Sequence[Markup], at: int) -> Markup:
    return lines[at] if at < len(lines) else Markup("")
