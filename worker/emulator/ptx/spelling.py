"""Opcodes whose words may stand in any order: ptxas takes `vote.sync.ballot.b32` and `vote.ballot.sync.b32`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Chosen(Protocol):
    """What a spelling chose, by the name of the choice; None where it chose nothing."""

    def __getitem__(self, name: str, /) -> str | None: ...


class Pattern(Protocol):
    """What an opcode has to match as a whole: a regular expression, or Words."""

    @property
    def pattern(self) -> str: ...
    def fullmatch(self, opcode: str, /) -> Chosen | None: ...


class Words:
    """An opcode's first word, and for each choice the words of which one is taken; `|` before them: or none.

    >>> dict(Words("vote", sync="sync", how="any all").fullmatch("vote.all.sync"))
    {'sync': 'sync', 'how': 'all'}
    >>> Words("vote", sync="sync", how="any all").fullmatch("vote.all") is None
    True
    """

    def __init__(self, head: str, **choices: str) -> None:
        self.pattern = f"{head} {choices}"
        self.heads = head.split("|")
        self.slots = {word: name for name, words in choices.items() for word in words.removeprefix("|").split()}
        self.needed = [name for name, words in choices.items() if not words.startswith("|")]
        self.names = [*choices]

    def fullmatch(self, opcode: str, /) -> Mapping[str, str | None] | None:
        head, *words = opcode.split(".")
        chosen: dict[str, str | None] = {"head": head, **dict.fromkeys(self.names)}
        if head not in self.heads:
            return None
        for word in words:
            name = self.slots.get(word)
            if name is None or chosen[name] is not None:
                return None
            chosen[name] = word
        return chosen if all(chosen[name] is not None for name in self.needed) else None
