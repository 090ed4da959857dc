"""Source code as coloured, numbered lines; everything a submitter wrote leaves here escaped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from markupsafe import Markup, escape
from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token, _TokenType
from pygments.util import ClassNotFound

MAX_COLOURED = 256 * 1024
"""Longer sources are shown plain: colouring costs about 1 s a megabyte, and an API process has other callers."""
_LEXERS = {"pytorch": "python", "triton": "python", "py": "python", "cu": "cuda", "cuda": "cuda", "bash": "console"}


def highlight(code: str, language: str) -> Markup:
    """`code` with its tokens in spans that the style sheet colours. An unknown language is shown plain."""
    return Markup("\n").join(_lines(code, language))


def numbered(source: bytes, language: str) -> tuple[Markup, ...]:
    """Each line of a submitted file as HTML, coloured. Bytes that are not UTF-8 become U+FFFD."""
    text = source.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    return tuple(_lines(text, language if len(source) <= MAX_COLOURED else "text"))


def _lines(code: str, language: str) -> Iterator[Markup]:
    line = Markup()
    for kind, value in lex(code, _lexer(language)):
        style = _class(kind)
        for index, part in enumerate(value.split("\n")):
            if index:
                yield line
                line = Markup()
            if part:
                line += Markup('<span class="{}">{}</span>').format(style, part) if style else escape(part)
    if line:
        yield line


@lru_cache(maxsize=16)
def _lexer(language: str) -> Lexer:
    options = {"stripnl": False, "ensurenl": True}
    try:
        return get_lexer_by_name(_LEXERS.get(language, language), **options)
    except ClassNotFound:
        return get_lexer_by_name("text", **options)


@lru_cache(maxsize=256)
def _class(kind: _TokenType) -> str:
    while kind is not Token and kind not in STANDARD_TYPES:
        kind = kind.parent
    name = STANDARD_TYPES.get(kind, "")
    return f"s-{name[:2]}" if name and name[0] in "kscmno" and kind not in (Token.Name,) else ""
