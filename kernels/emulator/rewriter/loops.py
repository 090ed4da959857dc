"""Loops that wait for another thread get a place where that thread can run.

Fibres switch only where they ask to. A loop with an empty body waits by reading memory, so its body becomes a request to let
others run; in a file that uses `volatile`, every loop body with braces starts with a cheap, counted one.
"""

from __future__ import annotations

from .tokens import Tokens


def rewrite_loops(tokens: Tokens, *, volatile: bool) -> None:
    """Edits `tokens` in place; `volatile` says whether the file reads memory that others change."""
    for index in range(len(tokens.items)):
        if tokens.is_name(index, "while", "for"):
            head = tokens.next(index + 1)
            if tokens.is_op(head, "(") and tokens.partner[head] >= 0 and not _ends_do(tokens, index):
                _rewrite_body(tokens, tokens.next(tokens.partner[head] + 1), volatile)
        elif volatile and tokens.is_name(index, "do"):
            body = tokens.next(index + 1)
            if tokens.is_op(body, "{"):
                tokens.items[body].after += " ::emulator::loop();"


def _rewrite_body(tokens: Tokens, body: int, volatile: bool) -> None:
    if tokens.is_op(body, ";"):
        tokens.items[body].text = "{ ::emulator::spin(__LINE__); }"
    elif tokens.is_op(body, "{") and tokens.partner[body] >= 0:
        if tokens.next(body + 1) == tokens.partner[body]:
            tokens.items[body].after += " ::emulator::spin(__LINE__);"
        elif volatile:
            tokens.items[body].after += " ::emulator::loop();"


def _ends_do(tokens: Tokens, index: int) -> bool:
    """Whether the `while` at `index` closes a `do`: then the `;` behind it is not a loop body."""
    before = tokens.previous(index - 1)
    if tokens.is_op(before, "}") and tokens.partner[before] >= 0:
        return tokens.is_name(tokens.previous(tokens.partner[before] - 1), "do")
    first = max(0, index - 100)  # a `do` without braces holds one statement
    while before >= first and not (tokens.items[before].kind == "op" and tokens.items[before].text in ("{", "}")):
        if tokens.is_name(before, "do"):
            return True
        if tokens.is_op(before, ")") and tokens.partner[before] >= 0:
            before = tokens.partner[before]
        before = tokens.previous(before - 1)
    return False
