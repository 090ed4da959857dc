"""Reads that nvcc makes ahead of a choice: `sum = first ? 0 : base` loads `base` in any case and selects afterwards.

What such a load brings is looked at only where it is chosen, so memory that nothing has written is told there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .tree import Instruction, Name, Statement, names


def spares(body: Sequence[Statement]) -> frozenset[str]:
    """The registers that one plain load writes and that nothing but `selp` reads, as one of its two values."""
    loaded = Counter(
        it.operands[0].text
        for it in body
        if isinstance(it, Instruction) and _plain(it) and it.operands and isinstance(it.operands[0], Name)
    )
    if not loaded:
        return frozenset()
    used, chosen = Counter[str](), Counter[str]()
    for it in body:
        if isinstance(it, Instruction):
            used.update(names(it))
            if it.opcode.startswith("selp."):
                chosen.update(operand.text for operand in it.operands[1:3] if isinstance(operand, Name))
    return frozenset(
        name for name, count in loaded.items() if count == 1 and chosen[name] and used[name] == chosen[name] + 1
    )


def _plain(it: Instruction) -> bool:
    words = set(it.opcode.split("."))
    return it.opcode.startswith("ld.") and not {"volatile", "relaxed", "acquire", "v2", "v4", "param", "const"} & words
