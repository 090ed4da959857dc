"""Which submissions of a stage are alike: winnowing (Schleimer, Wilkerson and Aiken, 2003) over the tokens of the language.

A name is a name and a number a number whatever they are called, comments and layout are nothing; so what is compared is what
the code does in which order. Of every run of K tokens there is a hash, and of every W hashes in a row the smallest is kept: a
part of K + W - 1 tokens that two files share is always found. What the stage hands out is left out, and what many have in
common. Nothing is decided by it: it says where to look.
"""

from __future__ import annotations

import keyword
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple
from zlib import crc32

K, W = 12, 6
_COMMON = 0.3
"""The share of files from which on a part is everybody's: the lesson's formula, say."""
_COMMON_LEAST = 8

_TOKEN = re.compile(
    r"""
    (?P<nothing>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<hash>\#[^\n]*)
    |(?P<text>\"\"\".*?\"\"\"|'''.*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>\d[\w.]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<sign><<<|>>>|->|::|[-+*/%=<>!&|^]=|&&|\|\||\+\+|--|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CPP = """
auto bool break case char const constexpr continue default do double else enum extern float for goto if inline int long
namespace new register restrict return short signed sizeof static struct switch template typedef typename union unsigned
using void volatile while half __global__ __device__ __shared__ __host__ __restrict__ __launch_bounds__ __syncthreads
__syncwarp __shfl_xor_sync __shfl_down_sync threadIdx blockIdx blockDim gridDim
"""
_WORDS = frozenset(keyword.kwlist) | frozenset(_CPP.split())
_LEAST_PARTS = 4
"""Two files that have fewer parts in common, once everybody's are left out, are not called alike."""


class Tokens(NamedTuple):
    """A file as one character a token, and the line of each."""

    kinds: str
    lines: list[int]


class Pair(NamedTuple):
    """Two files. share: of the smaller one's parts that the other has, 0 to 1; parts: how many those are."""

    one: str
    other: str
    share: float
    parts: int


@lru_cache(4096)
def _kind(written: str) -> str:
    """A kind of token as a character, so that a run of them is a slice of a string.

    It depends on the token alone: numbered in the order in which a process meets them, two processes would keep different
    parts of the same files.
    """
    return chr(1 + crc32(written.encode("utf-8", "replace")) % 0xD000)


def tokens(text: str, *, python: bool) -> Tokens:
    kinds: list[str] = []
    lines: list[int] = []
    line = 1
    for found in _TOKEN.finditer(text):
        kind, written = found.lastgroup, found.group()
        if kind == "word":
            written = written if written in _WORDS else "name"
        elif kind in ("number", "text"):
            written = kind
        if kind != "nothing" and not (kind == "hash" and python):
            kinds.append(_kind(written))
            lines.append(line)
        line += found.group().count("\n")
    return Tokens("".join(kinds), lines)


def runs(found: Tokens) -> list[int]:
    """The hash of every run of K tokens, by where it begins."""
    packed = found.kinds.encode("utf-16-le")
    return [crc32(packed[2 * at : 2 * (at + K)]) for at in range(len(found.kinds) - K + 1)]


def winnowed(hashes: Sequence[int], without: frozenset[int]) -> dict[int, list[int]]:
    """The hashes that are kept, each with where it begins: of every W in a row the smallest, the last one of equals."""
    kept: dict[int, list[int]] = defaultdict(list)
    last = -1
    for start in range(max(1, len(hashes) - W + 1)):
        window = [(value, -at) for at, value in enumerate(hashes[start : start + W], start) if value not in without]
        if window:
            value, at = min(window)
            if -at != last:
                last = -at
                kept[value].append(last)
    return dict(kept)


class Collection:
    """Files of one stage, by name, made comparable. `given`: what the stage hands out, which nobody is alike for."""

    def __init__(self, files: Mapping[str, str], given: Iterable[str], *, python: bool) -> None:
        self.tokens = {name: tokens(text, python=python) for name, text in files.items()}
        without = frozenset(value for text in given for value in runs(tokens(text, python=python)))
        self.kept = {name: winnowed(runs(found), without) for name, found in self.tokens.items()}
        self._leave_out_what_many_have()

    def _leave_out_what_many_have(self) -> None:
        most = max(_COMMON_LEAST, _COMMON * len(self.kept))
        held = Counter(value for kept in self.kept.values() for value in kept)
        common = {value for value, count in held.items() if count > most}
        self.kept = {
            name: {value: places for value, places in kept.items() if value not in common}
            for name, kept in self.kept.items()
        }

    def pairs(self, least: float = 0.25) -> list[Pair]:
        """Those that share at least that much, the most alike first."""
        holders: dict[int, list[str]] = defaultdict(list)
        for name, kept in self.kept.items():
            for value in kept:
                holders[value].append(name)
        shared = Counter(pair for names in holders.values() for pair in combinations(names, 2))
        found = [
            Pair(one, other, parts / min(len(self.kept[one]), len(self.kept[other])), parts)
            for (one, other), parts in shared.items()
            if parts >= _LEAST_PARTS
        ]
        return sorted(
            (each for each in found if each.share >= least), key=lambda each: (-each.share, -each.parts, each.one)
        )

    def lines_alike(self, one: str, other: str) -> tuple[set[int], set[int]]:
        """The lines of each of two files that lie in a part which both have."""
        both = self.kept[one].keys() & self.kept[other].keys()
        return self._lines(one, both), self._lines(other, both)

    def _lines(self, name: str, values: Iterable[int]) -> set[int]:
        lines = self.tokens[name].lines
        return {lines[at] for value in values for start in self.kept[name][value] for at in range(start, start + K)}
