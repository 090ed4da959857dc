"""CUDA C++ as a list of tokens, enough to find declarations and launches without parsing the language.

Every byte of the source stays in some token, so writing the tokens back gives the source again and no line moves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\\\n|\n)
|(?P<comment>//(?:[^\n\\]|\\.|\\\n)*)
|(?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*+"?)
|(?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*+'?)
|(?P<number>\.?\d(?:[eEpP][+-]|[\w.']){0,400})
|(?P<name>[A-Za-z_$]\w*)
|(?P<op><<<|>>>|<<=|>>=|->\*|\.\.\.|::|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^=]=|\#\#|.)""",
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(r"\#(?:[^\n\\/]|\\\n|\\.|/\*.*?\*/|/(?!\*))*", re.DOTALL)
_DIRECTIVE_UNCLOSED = re.compile(r"\#(?:[^\n\\/]|\\\n|\\.|/(?!\*))*", re.DOTALL)
"""For where no comment ends any more: looking for the end again behind every `/*` would cost n²."""
_RAW = re.compile(r'(?:u8|[uUL])?R"(?P<fence>[^()\s\\]{0,16})\(')
_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = {")", "]", "}"}
REACH = 1000
"""Tokens that a search for one declaration's or launch's parts looks at: without a bound, a hostile file costs n²."""


class RewriteError(Exception):
    """A construct that cannot be rewritten. `line` is the submitter's; the text says what it is and what to do."""

    def __init__(self, line: int, message: str, *, reason: str = "cannot_emulate") -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
        self.message = message
        self.reason = reason


@dataclass(slots=True)
class Token:
    """`kind` is the name of a group above, or `directive`: a whole preprocessor line with its continuations.

    before, after: text that the rewriter adds around the token; `text` itself may be replaced.
    """

    kind: str
    text: str
    line: int
    before: str = ""
    after: str = ""

    @property
    def significant(self) -> bool:
        return self.kind not in ("space", "comment")

    def written(self) -> str:
        return self.before + self.text + self.after


@dataclass
class Tokens:
    """A token list with the partner of every bracket (-1 where it has none) and the kind of scope around every token."""

    items: list[Token]
    partner: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.partner = [-1] * len(self.items)
        stack: list[int] = []
        for index, token in enumerate(self.items):
            if token.kind != "op":
                continue
            if token.text in _OPENING:
                stack.append(index)
            elif token.text in _CLOSING and stack and _OPENING[self.items[stack[-1]].text] == token.text:
                opening = stack.pop()
                self.partner[index], self.partner[opening] = opening, index

    def next(self, index: int) -> int:
        """The first significant token at `index` or after it; the list's length when there is none."""
        while index < len(self.items) and not self.items[index].significant:
            index += 1
        return index

    def previous(self, index: int) -> int:
        """The last significant token at `index` or before it; -1 when there is none."""
        while index >= 0 and not self.items[index].significant:
            index -= 1
        return index

    def is_op(self, index: int, text: str) -> bool:
        return 0 <= index < len(self.items) and self.items[index].kind == "op" and self.items[index].text == text

    def is_name(self, index: int, *names: str) -> bool:
        if not 0 <= index < len(self.items) or self.items[index].kind != "name":
            return False
        return not names or self.items[index].text in names

    def closing(self, index: int) -> int:
        """The partner of the opening bracket at `index`. Raises RewriteError when it has none."""
        if self.partner[index] < 0:
            raise RewriteError(
                self.items[index].line, f"`{self.items[index].text}` has no partner", reason="syntax_error"
            )
        return self.partner[index]

    def text(self, start: int, stop: int) -> str:
        return "".join(token.text for token in self.items[start:stop])

    def written(self) -> str:
        return "".join(token.written() for token in self.items)


def tokenise(source: str, *, first_line: int = 1, directives: bool = True) -> Tokens:
    """`source` as tokens. With `directives`, each preprocessor line is one token; without, it is taken apart too."""
    items: list[Token] = []
    position, line, fresh = 0, first_line, directives
    last_comment_end = source.rfind("*/")
    while position < len(source):
        if fresh and source[position] == "#":
            directive = _DIRECTIVE if position < last_comment_end else _DIRECTIVE_UNCLOSED
            kind, text = "directive", _matched(directive, source, position)
        else:
            kind, text = _long_token(source, position, last_comment_end) or _short_token(source, position)
        items.append(Token(kind, text, line))
        if "\n" in text and kind in ("space", "comment"):
            fresh = directives
        elif kind not in ("space", "comment"):
            fresh = False
        line += text.count("\n")
        position += len(text)
    return Tokens(items)


def _long_token(source: str, position: int, last_comment_end: int) -> tuple[str, str] | None:
    """The block comment or raw string that starts here and has an end; found without going back, however many have none."""
    if source.startswith("/*", position):
        end = source.find("*/", position + 2) if position + 2 <= last_comment_end else -1
        return ("comment", source[position : end + 2]) if end >= 0 else None
    raw = _RAW.match(source, position) if source[position] in "uULR" else None
    if raw is None:
        return None
    closing = f'){raw["fence"]}"'
    end = source.find(closing, raw.end())
    return ("raw", source[position : end + len(closing)]) if end >= 0 else None


def _short_token(source: str, position: int) -> tuple[str, str]:
    match = _TOKEN.match(source, position)
    assert match is not None  # noqa: S101 - the last alternative takes any character
    return str(match.lastgroup), match.group()


def _matched(pattern: re.Pattern[str], source: str, position: int) -> str:
    match = pattern.match(source, position)
    return match.group() if match else source[position]


def namespace_scope(tokens: Tokens) -> list[bool]:
    """For every token, whether only namespaces and `extern "C"` blocks are open around it."""
    answer: list[bool] = []
    stack: list[bool] = []
    for index, token in enumerate(tokens.items):
        if token.kind == "op" and token.text == "}" and stack:
            stack.pop()
        answer.append(all(stack))
        if token.kind == "op" and token.text == "{":
            stack.append(_opens_namespace(tokens, index))
            if len(stack) > 512:
                raise RewriteError(token.line, "more than 512 braces are open here", reason="syntax_error")
    return answer


def _opens_namespace(tokens: Tokens, brace: int) -> bool:
    index = brace
    for _ in range(12):
        index = tokens.previous(index - 1)
        if index < 0 or tokens.items[index].kind == "directive":
            return False
        if tokens.items[index].kind == "op" and tokens.items[index].text in (";", "{", "}", ")"):
            return False
        if tokens.is_name(index, "namespace"):
            return True
        if tokens.items[index].kind == "string" and tokens.is_name(tokens.previous(index - 1), "extern"):
            return True
    return False
