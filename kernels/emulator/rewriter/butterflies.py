"""Loops that reduce over a warp by shuffles may be done in one go.

    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(mask, sum, step);

becomes the same loop around `if (::emulator::butterfly(…)) break;`, which does one step, or, where the whole warp is in that
loop, all that are left: the same arithmetic in the same order, with one wait for one another instead of five. Only a loop of
exactly this form is taken, with an operation that can be done for other lanes: an operator, or a minimum or a maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

from .tokens import Tokens

_SHUFFLES = {"__shfl_xor_sync": "Xor", "__shfl_down_sync": "Down"}
_FUNCTIONS = ("fmaxf", "fminf", "fmax", "fmin", "max", "min")
_OPERATORS = ("+", "*", "&", "|", "^")
_COUNTERS = ("int", "unsigned", "auto", "size_t", "uint32_t", "int32_t")


@dataclass(frozen=True)
class _Loop:
    """A loop over steps. up_to: the tokens of its bound when it doubles, none when it halves."""

    step: str
    up_to: str


@dataclass(frozen=True)
class _Shuffle:
    how: str
    mask: str
    value: str
    width: str


def rewrite_butterflies(tokens: Tokens, declared: frozenset[str]) -> None:
    """Edits `tokens` in place. declared: names that the file defines itself, which then may mean something else."""
    if declared & set(_SHUFFLES):
        return
    for index in range(len(tokens.items)):
        if not tokens.is_name(index, "for"):
            continue
        head = tokens.next(index + 1)
        if not tokens.is_op(head, "(") or tokens.partner[head] < 0:
            continue
        loop = _loop(tokens, head)
        if loop:
            _rewrite_body(tokens, tokens.next(tokens.partner[head] + 1), loop, declared)


def _words(tokens: Tokens, start: int, stop: int) -> list[int]:
    return [at for at in range(start, stop) if tokens.items[at].significant]


def _loop(tokens: Tokens, head: int) -> _Loop | None:
    """The loop whose parentheses open at `head`, if it halves or doubles one counter that it declares."""
    inside = _words(tokens, head + 1, tokens.partner[head])
    cuts = [at for at, index in enumerate(inside) if tokens.is_op(index, ";")]
    if len(cuts) != 2 or any(tokens.items[index].kind not in ("name", "number", "op") for index in inside):
        return None
    texts = [tokens.items[index].text for index in inside]
    first, condition, advance = texts[: cuts[0]], texts[cuts[0] + 1 : cuts[1]], texts[cuts[1] + 1 :]
    if first[:1] in (["const"], ["volatile"]) or len(first) < 4 or "=" not in first:
        return None
    step = first[first.index("=") - 1]
    if not set(first[: first.index("=") - 1]) <= set(_COUNTERS) or not first[: first.index("=") - 1] or "," in first:
        return None
    if advance in ([step, ">>=", "1"], [step, "/=", "2"]):
        return _Loop(step, "") if condition in _reaches_zero(step) else None
    doubles = advance in ([step, "<<=", "1"], [step, "*=", "2"], [step, "+=", step])
    bound = condition[2:] if condition[:2] == [step, "<"] else []
    return _Loop(step, bound[0]) if doubles and len(bound) == 1 and bound[0] != step else None


def _reaches_zero(step: str) -> list[list[str]]:
    return [[step], [step, ">", "0"], [step, ">=", "1"], [step, "!=", "0"], ["0", "<", step]]


def _rewrite_body(tokens: Tokens, body: int, loop: _Loop, declared: frozenset[str]) -> None:
    """`body`: the first token of the loop's statement; in braces, it must be the only one."""
    braces = tokens.is_op(body, "{")
    if braces and tokens.partner[body] < 0:
        return
    stop = tokens.partner[body] if braces else len(tokens.items)
    start = tokens.next(body + 1) if braces else body
    end = _statement_end(tokens, start, stop)
    if end < 0 or (braces and tokens.next(end + 1) != stop):
        return
    found = _reduction(tokens, _words(tokens, start, end), loop.step, declared)
    if found is None:
        return
    shuffle, operation = found
    call = (
        f"if (::emulator::butterfly({shuffle.mask}, {shuffle.value}, ::emulator::Source::{shuffle.how}, (int)({loop.step}), "
        f"{f'(int)({loop.up_to})' if loop.up_to else '0'}, {shuffle.width or '32'}, {operation}, __LINE__)) break"
    )
    tokens.items[start].before += call
    for at in range(start, end):
        tokens.items[at].text = "\n" * tokens.items[at].text.count("\n")
    if not braces:
        tokens.items[start].before = "{ " + tokens.items[start].before
        tokens.items[end].after = " }" + tokens.items[end].after


def _statement_end(tokens: Tokens, start: int, stop: int) -> int:
    for at in range(start, min(stop, start + 64)):
        if tokens.items[at].kind == "directive" or tokens.is_op(at, "{"):
            return -1
        if tokens.is_op(at, ";"):
            return at
    return -1


def _reduction(tokens: Tokens, words: list[int], step: str, declared: frozenset[str]) -> tuple[_Shuffle, str] | None:
    """What a statement `value op= shuffle`, `value = value op shuffle` or `value = f(value, shuffle)` says; else None."""
    texts = [tokens.items[at].text for at in words]
    assigns = ("=", *(f"{operator}=" for operator in _OPERATORS))
    equals = next((at for at, text in enumerate(texts) if text in assigns), 0)
    value, rest = texts[:equals], texts[equals + 1 :]
    if not _is_place(value):
        return None
    length = len(value)
    if texts[equals] != "=":
        shuffled, operation = rest, f"a {texts[equals]} b"
    elif rest[:length] == value and rest[length : length + 1] and rest[length] in _OPERATORS:
        shuffled, operation = rest[length + 1 :], f"a {rest[length]} b"
    elif len(rest) > length + 4 and rest[0] in _FUNCTIONS and rest[0] not in declared and rest[1] == "(":
        if tokens.partner[words[equals + 2]] != words[-1]:
            return None
        inner = rest[2:-1]
        first = inner[: length + 1] == [*value, ","]
        if not first and inner[-length - 1 :] != [",", *value]:
            return None
        shuffled = inner[length + 1 :] if first else inner[: -length - 1]
        operation = f"{rest[0]}(a, b)" if first else f"{rest[0]}(b, a)"
    else:
        return None
    shuffle = _shuffle(shuffled, step)
    if shuffle is None or shuffle.value != "".join(value):
        return None
    return shuffle, f"[](auto a, auto b) {{ return {operation}; }}"


def _is_place(texts: list[str]) -> bool:
    """A variable, or one of its elements by a name or a number."""
    if len(texts) == 1:
        return texts[0].isidentifier()
    return len(texts) == 4 and texts[0].isidentifier() and texts[1] == "[" and texts[3] == "]" and texts[2].isalnum()


def _shuffle(texts: list[str], step: str) -> _Shuffle | None:
    """A call of a shuffle by `step`, and nothing else."""
    if len(texts) < 8 or texts[0] not in _SHUFFLES or texts[1] != "(" or texts[-1] != ")":
        return None
    parts: list[list[str]] = [[]]
    for text in texts[2:-1]:
        if text == ",":
            parts.append([])
        elif text in ("(", ")", "{", "}", "=", "++", "--", "?"):
            return None
        else:
            parts[-1].append(text)
    if len(parts) not in (3, 4) or parts[2] != [step] or any(step in part for part in (parts[0], *parts[3:])):
        return None
    return _Shuffle(
        _SHUFFLES[texts[0]],
        " ".join(parts[0]),
        "".join(parts[1]),
        " ".join(parts[3]) if parts[3:] else "",
    )
