"""`kernel<T><<<grid, block, shared, stream>>>(arguments)` becomes a call that C++ knows.

    ::emulator::launch([&](auto... emulator_a) { kernel<T>(emulator_a...); }, __LINE__, "kernel<T>", grid, …)(arguments)

Only text between tokens changes, so arguments keep their place, their line and whatever is written inside them.
"""

from __future__ import annotations

import re

from .tokens import REACH, RewriteError, Tokens

_STATEMENT_WORDS = ("return", "else", "do")


def rewrite_launches(tokens: Tokens) -> None:
    """Edits `tokens` in place. Raises RewriteError where `<<<` does not belong to a launch that can be read."""
    for index, token in enumerate(tokens.items):
        if token.kind == "op" and token.text == "<<<":
            _rewrite_launch(tokens, index)


def _rewrite_launch(tokens: Tokens, opening: int) -> None:
    line = tokens.items[opening].line
    last = tokens.previous(opening - 1)
    if last < 0:
        raise RewriteError(line, "`<<<` without a kernel before it", reason="syntax_error")
    first = _callee_start(tokens, last)
    ending = _configuration_end(tokens, opening)
    arguments = tokens.next(ending + 1)
    if not tokens.is_op(arguments, "("):
        raise RewriteError(line, "a kernel launch needs an argument list after `>>>`", reason="syntax_error")
    _spell_null_pointers(tokens, arguments, tokens.closing(arguments))
    name = re.sub(r"\s+", "", tokens.text(first, last + 1)).replace("\\", "").replace('"', "'")
    tokens.items[first].before += "::emulator::launch([&](auto... emulator_a) { "
    tokens.items[last].after = f'(emulator_a...); }}, __LINE__, "{name}"' + tokens.items[last].after
    tokens.items[opening].text = ", "
    tokens.items[ending].text = ")"


def _configuration_end(tokens: Tokens, opening: int) -> int:
    index = opening + 1
    while index < len(tokens.items):
        if tokens.is_op(index, ">>>"):
            return index
        if tokens.items[index].kind == "op" and tokens.items[index].text in "([{":
            index = tokens.closing(index)
        elif tokens.is_op(index, ";") or tokens.is_op(index, "<<<"):
            break
        index += 1
    raise RewriteError(tokens.items[opening].line, "`<<<` without its `>>>`", reason="syntax_error")


def _callee_start(tokens: Tokens, last: int) -> int:
    """The first token of the expression that names the kernel and ends at `last`."""
    if tokens.is_op(last, ")"):
        opening = _partner(tokens, last)
        before = tokens.previous(opening - 1)
        called = tokens.is_name(before) and not tokens.is_name(before, *_STATEMENT_WORDS)
        return before if called else opening
    first = last
    if tokens.items[last].text in (">", ">>"):
        first = tokens.previous(_angle_start(tokens, last) - 1)
    elif tokens.is_op(last, "]"):
        first = tokens.previous(_partner(tokens, last) - 1)
    if not tokens.is_name(first):
        raise RewriteError(tokens.items[last].line, "cannot read the kernel's name before `<<<`; launch it by its name")
    return _qualified_start(tokens, first)


def _qualified_start(tokens: Tokens, first: int) -> int:
    """Walks back over `a::b<c>::`, `object.` and `pointer->`."""
    while True:
        before = tokens.previous(first - 1)
        if tokens.is_name(before, "template"):
            first = before
            continue
        if before < 0 or tokens.items[before].text not in ("::", ".", "->"):
            return first
        owner = tokens.previous(before - 1)
        if owner >= 0 and tokens.items[owner].text in (">", ">>"):
            first = tokens.previous(_angle_start(tokens, owner) - 1)
        elif tokens.is_name(owner) and not tokens.is_name(owner, *_STATEMENT_WORDS):
            first = owner
        else:
            return before


def _partner(tokens: Tokens, index: int) -> int:
    if tokens.partner[index] < 0:
        raise RewriteError(tokens.items[index].line, "brackets do not match before `<<<`", reason="syntax_error")
    return tokens.partner[index]


def _angle_start(tokens: Tokens, last: int) -> int:
    """The `<` that opens the template arguments closed by the `>` or `>>` at `last`."""
    depth, index = 0, last
    while index >= max(0, last - REACH):
        token = tokens.items[index]
        if token.kind == "op":
            if token.text in (">", ">>"):
                depth += len(token.text)
            elif token.text == "<":
                depth -= 1
            elif token.text in (")", "]", "}"):
                index = _partner(tokens, index)
            elif token.text in (";", "{"):
                break
            if depth <= 0:
                return index
        index -= 1
    raise RewriteError(tokens.items[last].line, "cannot find where the template arguments before `<<<` start")


def _spell_null_pointers(tokens: Tokens, opening: int, closing: int) -> None:
    """An argument `NULL` or `0` is handed on as a null that still converts to a pointer after it was a parameter."""
    index = opening + 1
    while index < closing:
        before, after = tokens.previous(index - 1), tokens.next(index + 1)
        alone = tokens.items[before].text in ("(", ",") and tokens.items[after].text in (")", ",")
        if alone and tokens.items[index].text in ("NULL", "0"):
            tokens.items[index].text = "::emulator::Zero{}"
        if tokens.items[index].kind == "op" and tokens.items[index].text in "([{":
            index = tokens.closing(index)
        index += 1
