"""The part of a page that a command writes, between two lines that say so."""

from __future__ import annotations


def replaced(page: str, name: str, head: str, tail: str, part: str) -> str:
    """The page `name` with `part`, which has both lines, in the place of what stood between them. Raises ValueError."""
    before, found_head, rest = page.partition(head)
    _, found_tail, after = rest.partition(tail)
    if not found_head or not found_tail:
        raise ValueError(f"docs/{name} has no lines {head!r} and {tail!r}; put them where the table belongs")
    return f"{before}{part}{after}"
