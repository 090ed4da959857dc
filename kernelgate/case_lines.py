"""Cases as lines: `warp_edge rows=3 width=31`, `drawn rows=1..200 times=3`, `profile rows=4096 measured needs_gpu`.

A word without `=` is a mark; a value is a number, a range `low..high`, choices `a|b`, a list of such, or a word. A line
`defaults` gives values to the lines below it that have none of their own; of the lines `timed`, each timed call takes one.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

HIDDEN = "a hidden case"
"""The title of every case whose line is not shown: nothing is told that has its sizes."""
MARKS = ("measured", "needs_gpu", "hidden", "refused")
DEFAULTS, TIMED = "defaults", "timed"
"""Lines that are no case."""
OWN = ("dtype", "seam", "times", "title", "group")
"""Keys that speak of the case and not of what the function is given."""


class CaseLineError(ValueError):
    """A line that cannot be understood; the text quotes it and says what is accepted."""


@dataclass(frozen=True)
class Range:
    """From low to high, both included, drawn for each grading; an end may be the name of another size."""

    low: int | float | str
    high: int | float | str

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True)
class Choice:
    """One of some words or numbers, drawn for each grading."""

    among: tuple[int | float | str, ...]


Value = int | float | str | list[object] | Range | Choice


def is_drawn(value: object) -> bool:
    """Whether a value is a range or choices, or a list that has some."""
    return isinstance(value, Range | Choice) or (isinstance(value, list) and any(is_drawn(each) for each in value))


@dataclass(frozen=True)
class CaseLine:
    """One line. values: sizes, numbers and what arrays are made of; marks: `measured`, `needs_gpu`, `hidden`.

    inherited: the names of values that the line `defaults` gave. at: the line, from 1 on.
    """

    name: str
    values: dict[str, Value] = field(default_factory=dict)
    marks: frozenset[str] = frozenset()
    dtype: str = ""
    seam: str = ""
    title: str = ""
    group: str = ""
    times: int = 1
    at: int = 0
    inherited: frozenset[str] = frozenset()

    @property
    def drawn(self) -> bool:
        """Whether something of it is drawn, or it is not to be shown: not known before a grading begins."""
        chosen = any(is_drawn(value) for value in self.values.values())
        return chosen or "hidden" in self.marks or "|" in self.dtype


def read(text: str, known: Collection[str]) -> list[CaseLine]:
    """All lines. known: the names of sizes, numbers and arrays. Raises CaseLineError."""
    lines = list(_lines(text))
    defaults: dict[str, Value] = {}
    cases = []
    for at, name, values, marks in lines:
        if name == DEFAULTS:
            defaults = {**defaults, **values}
            continue
        given = values if name == TIMED else {**defaults, **values}
        inherited = frozenset(defaults.keys() - values.keys())
        cases += [_case(at, *each, marks, known, inherited) for each in _by_dtype(name, given)]
    names = [case.name for case in cases if case.name != TIMED]
    for case in cases:
        if names.count(case.name) > 1:
            raise CaseLineError(f"case line {case.at}: the name {case.name!r} stands twice; every name stands once")
    if not [case for case in cases if not case.drawn and case.name != TIMED]:
        raise CaseLineError("no case is listed; at least one line has fixed sizes and is shown")
    return cases


def public(text: str, *, timed: bool) -> list[str]:
    """The lines without hidden cases. Not timed: without what is for timed calls alone, and no case is measured."""
    left = []
    lines = text.splitlines()
    for at, name, _, marks in _lines(text):
        if "hidden" in marks or (name == TIMED and not timed):
            continue
        line = lines[at - 1]
        left.append(line if timed else re.sub(r"(?<=\s)measured(?=\s|$)", "", line).rstrip())
    return left


def _by_dtype(name: str, values: dict[str, Value]) -> Iterator[tuple[str, dict[str, Value]]]:
    """`dtype=f32,f64` makes a case of each: NAME, and NAME_f64."""
    dtype = values.get("dtype")
    first, *others = dtype.split(",") if isinstance(dtype, str) else ("",)
    yield name, {**values, "dtype": first} if others else values
    for dtype in others:
        yield f"{name}_{dtype}", {**values, "dtype": dtype}


def _lines(text: str) -> Iterator[tuple[int, str, dict[str, Value], set[str]]]:
    for at, line in enumerate(text.splitlines(), 1):
        try:
            words = shlex.split(_quoted(line), comments=True)
        except ValueError as error:
            raise CaseLineError(f"case line {at}: {line.strip()[:80]!r}: {error}") from None
        if not words:
            continue
        values: dict[str, Value] = {}
        marks = set()
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if equals:
                values[key] = _value(at, key, value)
            else:
                marks.add(key)
        yield at, words[0], values, marks


def _quoted(line: str) -> str:
    """Lists and calls may hold spaces and quotation marks: what stands in brackets is one word."""
    return re.sub(r"=(\[.*?\](?=\s|$)|\w+\([^)]*\))", lambda found: f"={shlex.quote(found[1])}", line)


def _value(at: int, key: str, text: str) -> Value:
    if text.startswith("["):
        return _list(at, key, text)
    if ".." in text:
        low, _, high = text.partition("..")
        return Range(_plain(low), _plain(high))
    if "|" in text:
        return Choice(tuple(_plain(part) for part in text.split("|")))
    return _plain(text)


def _list(at: int, key: str, text: str) -> list[object]:
    """As JSON has it, or of words, ranges and choices."""
    try:
        return list(json.loads(text))
    except ValueError:
        words = [word.strip() for word in text[1:-1].split(",")]
    if not text.endswith("]") or not all(words) or "[" in text[1:]:
        raise CaseLineError(
            f"case line {at}: {key}={text[:80]} is no list; accepted are [[1,2],[3,4]], [1..8,1..8] and [a,b]"
        )
    return [_value(at, key, word) for word in words]


def _plain(text: str) -> int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _word(value: Value) -> str:
    return "|".join(str(each) for each in value.among) if isinstance(value, Choice) else str(value)


def _case(
    at: int, name: str, values: dict[str, Value], marks: set[str], known: Collection[str], inherited: frozenset[str]
) -> CaseLine:
    for word in marks:
        if word not in MARKS:
            raise CaseLineError(
                f"case line {at} ({name}): no mark {word!r}; accepted are {', '.join(MARKS)} and key=value"
            )
    for key in values:
        if key not in known and key not in OWN:
            accepted = ", ".join([*known, *OWN])
            raise CaseLineError(f"case line {at} ({name}): nothing is called {key!r}; accepted are {accepted}")
    times = values.get("times", 1)
    if not isinstance(times, int) or not 1 <= times <= 50:
        raise CaseLineError(f"case line {at} ({name}): times={times}; a line is drawn 1 to 50 times")
    words = {key: _word(values[key]) for key in ("dtype", "seam", "title", "group") if key in values}
    rest = {key: value for key, value in values.items() if key not in OWN}
    return CaseLine(name, rest, frozenset(marks), **words, times=times, at=at, inherited=inherited)
