"""Turns a CUDA C++ file into C++ for the headers beside this folder: only what no macro can express is rewritten.

Line numbers stay, so that every compiler message speaks the submitter's lines. Standard library only; the cost is linear
in the size of the file. Load it by path: `kernels/` is no Python package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .butterflies import rewrite_butterflies
from .declarations import announce_globals, announce_kernels, rewrite_shared
from .launches import rewrite_launches
from .loops import rewrite_loops
from .refusals import refuse
from .tokens import RewriteError, Tokens, namespace_scope, tokenise

__all__ = ["RewriteError", "Rewritten", "rewrite"]


@dataclass(frozen=True)
class Rewritten:
    """text: C++ that starts with a `#line`. serial: whether blocks have to run one after another for a result that does
    not depend on the number of workers (atomics, volatile flags and grid-wide synchronisation order blocks)."""

    text: str
    serial: bool


def rewrite(source: str, name: str, *, main: bool = True) -> Rewritten:
    """`source` for the emulator; `name` is what messages call the file.

    main: whether this is the file that is compiled; an included one does not say how blocks may run.
    Raises RewriteError with the submitter's line for what cannot be read or cannot be emulated.
    """
    tokens = tokenise(source.replace("\r\n", "\n"))
    refuse(tokens)
    words = {token.text for token in tokens.items if token.kind == "name"}
    volatile = "volatile" in words
    outermost = namespace_scope(tokens)
    declared = _declared(tokens, outermost)
    _rewrite(tokens, outermost, declared, volatile=volatile)
    for token in tokens.items:
        if token.kind == "directive" and ("<<<" in token.text or "__shared__" in token.text):
            body = tokenise(token.text, first_line=token.line, directives=False)
            _rewrite(body, [False] * len(body.items), declared, volatile=volatile)
            token.text = body.written()
    serial = volatile or bool(words & {"this_grid", "grid_group"}) or any(w.startswith("atomic") for w in words)
    tail = f'\nextern "C" {{ extern const int emulator_serial_blocks = {int(serial)}; }}\n' if main else ""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return Rewritten(f'#line 1 "{quoted}"\n{tokens.written()}{tail}', serial)


def _declared(tokens: Tokens, outermost: list[bool]) -> frozenset[str]:
    """Names that the file may give a meaning of its own: macros, and what is declared at namespace scope or after a type."""
    names: set[str] = set()
    for index, token in enumerate(tokens.items):
        if token.kind == "directive":
            names.update(re.findall(r"\w+", token.text))
        elif token.kind == "name":
            before = tokens.previous(index - 1)
            if outermost[index] or (tokens.is_name(before) and not tokens.is_name(before, "return", "else", "do")):
                names.add(token.text)
    return frozenset(names)


def _rewrite(tokens: Tokens, outermost: list[bool], declared: frozenset[str], *, volatile: bool) -> None:
    for token in tokens.items:
        if token.kind == "name" and token.text == "__noinline__":
            # As a macro it would break libstdc++, which spells __attribute__((__noinline__)).
            token.text = "__attribute__((noinline))"
    announce_globals(tokens, outermost)
    announce_kernels(tokens, outermost)
    rewrite_shared(tokens, outermost)
    rewrite_butterflies(tokens, declared)
    rewrite_loops(tokens, volatile=volatile)
    rewrite_launches(tokens)
