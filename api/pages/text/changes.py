"""Two texts line by line: what stands in the one and not in the other."""

from __future__ import annotations

import difflib

from markupsafe import Markup, escape


def changes(before: str, after: str) -> list[tuple[str, Markup]]:
    """A unified diff as (sign, escaped line); empty when the texts are the same. Bounded: a diff is quadratic at worst."""
    old, new = before.splitlines()[:5000], after.splitlines()[:5000]
    found = list(difflib.unified_diff(old, new, lineterm="", n=4))[2:]
    return [(text[:1], escape(text[1:])) for text in found[:10_000]]
