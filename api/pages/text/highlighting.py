"""Source code as coloured, numbered lines; everything a submitter wrote leaves here escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from markupsafe import Markup, escape
from pygments import lex
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES, Token, _TokenType
from pygments.util import ClassNotFound

from api.pages.text.colours import coloured
from kernelgate.languages import LANGUAGES

MAX_COLOURED = 256 * 1024
"""Longer sources are shown plain: colouring costs about 1 s a megabyte, and an API process has other callers."""
_LEXERS = {"py": "python", "cu": "cuda", "bash": "console", **{name: each.lexer for name, each in LANGUAGES.items()}}


def highlight(code: str, language: str) -> Markup:
    """A stage author's `code` with its tokens in spans that the style sheet colours. An unknown language is shown plain.

    Not for submitted code, on which the library's patterns can take minutes: see `numbered`.
    """
    return Markup("\n").join(_lines((_class(kind), value) for kind, value in lex(code, _lexer(language))))


def numbered(source: bytes, language: str) -> tuple[Markup, ...]:
    """Each line of a submitted file as HTML, coloured. Bytes that are not UTF-8 become U+FFFD."""
    text = source.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    ended = text if text.endswith("\n") else text + "\n"
    return tuple(_lines((f"s-{kind}" if kind else "", value) for kind, value in _pieces(ended, language, len(source))))


def _pieces(text: str, language: str, size: int) -> Iterable[tuple[str, str]]:
    return coloured(text, language) if size <= MAX_COLOURED else [("", text)]


def _lines(pieces: Iterable[tuple[str, str]]) -> Iterator[Markup]:
    line: list[Markup] = []
    for style, value in pieces:
        for index, part in enumerate(value.split("\n")):
            if index:
                yield Markup().join(line)
                line = []
            if part:
                line.append(Markup(f'<span class="{style}">{escape(part)}</span>') if style else escape(part))  # noqa: S704
    if line:
        yield Markup().join(line)


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
