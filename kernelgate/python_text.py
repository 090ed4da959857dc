"""Python's own parser, for one thread at a time.

CPython 3.11 keeps the depth of the tree that it builds in one place for all threads. A thread that is switched away in the
midst of it (a collection of garbage is enough) leaves that place to the next, and both end in `SystemError: AST constructor
recursion depth mismatch`. Workers play cases on several threads, so whatever they read as Python is read here.
"""

from __future__ import annotations

import ast
from threading import Lock
from typing import Any

_one_at_a_time = Lock()


def module(text: str) -> ast.Module:
    """A file's tree. Raises SyntaxError."""
    with _one_at_a_time:
        return ast.parse(text)


def expression(text: str) -> ast.expr:
    """An expression's tree. Raises SyntaxError."""
    with _one_at_a_time:
        return ast.parse(text.strip(), mode="eval").body


def literal(text: str) -> Any:
    """The value of a literal. Raises SyntaxError, and ValueError for what is none."""
    return ast.literal_eval(expression(text))
