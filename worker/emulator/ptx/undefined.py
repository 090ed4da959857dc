"""Registers that are read where nothing has written them: variables that a kernel forgets to set.

nvcc drops what it can prove to be undefined; what is left are sums whose first value was never set and values that only some
branches set. Which registers those may be is found here, once for a function; whether a thread really meets one, and whether
anything comes of it, the check build finds while it runs (`tracking.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MOST_STEPS = 2_000_000
"""Blocks that are visited for one function, all registers together; a long function needs a tenth of a million."""


@dataclass(slots=True)
class Step:
    """An instruction as it is written out. targets: labels that it may jump to; ends: it never goes on to the next one.

    hands_on: its results are undefined where what it reads is, by a rule of `tracking.py`. loads, stores: it reads or writes
    memory that threads share.
    """

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    targets: list[str] = field(default_factory=list)
    guarded: bool = False
    ends: bool = False
    hands_on: bool = False
    loads: bool = False
    stores: bool = False


@dataclass(frozen=True)
class Undefined:
    """first: registers that some way into the function leaves unset before they are read. reached: those, and all whose value
    may come from one of them."""

    first: frozenset[str] = frozenset()
    reached: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Block:
    """Steps that run one after another. exposed: registers read before they are written in it; sure: written in any case."""

    exposed: set[str] = field(default_factory=set)
    sure: set[str] = field(default_factory=set)
    before: list[int] = field(default_factory=list)


def undefined(steps: Sequence[Step], labels: Mapping[str, int]) -> Undefined:
    """labels: for each the number of the step that it stands before."""
    blocks = _blocks(steps, labels)
    readers: dict[str, list[int]] = defaultdict(list)
    for at, block in enumerate(blocks):
        for register in block.exposed:
            readers[register].append(at)
    budget = MOST_STEPS
    first = set()
    for register, where in readers.items():
        for at in _backwards(register, where, blocks):
            budget -= 1
            if at == 0:
                first.add(register)
            if at == 0 or budget < 0:
                break
    return Undefined(frozenset(first), _reached(first, steps))


def _backwards(register: str, where: Iterable[int], blocks: Sequence[_Block]) -> Iterator[int]:
    """The blocks at whose start the register still matters, from where it is read up to where it is written."""
    waiting = list(where)
    seen = set(waiting)
    while waiting:
        at = waiting.pop()
        yield at
        for earlier in blocks[at].before:
            if earlier not in seen and register not in blocks[earlier].sure:
                seen.add(earlier)
                waiting.append(earlier)


def _blocks(steps: Sequence[Step], labels: Mapping[str, int]) -> list[_Block]:
    jumps = {at for at, step in enumerate(steps) if step.targets or step.ends}
    starts = sorted(
        {0, *(at for at in labels.values() if at < len(steps)), *(at + 1 for at in jumps if at + 1 < len(steps))}
    )
    number = {start: at for at, start in enumerate(starts)}
    blocks = [_Block() for _ in starts]
    for at, start in enumerate(starts):
        end = starts[at + 1] if at + 1 < len(starts) else len(steps)
        for step in steps[start:end]:
            blocks[at].exposed |= step.reads - blocks[at].sure
            if not step.guarded:
                blocks[at].sure |= step.writes
            for target in step.targets:
                if labels[target] in number:
                    blocks[number[labels[target]]].before.append(at)
        if end in number and (step.guarded or not step.ends):
            blocks[number[end]].before.append(at)
    return blocks


def _reached(first: Iterable[str], steps: Sequence[Step]) -> frozenset[str]:
    follows: dict[str, set[str]] = defaultdict(set)
    for step in steps:
        if step.hands_on:
            for register in step.reads:
                follows[register] |= step.writes
    reached = _closed(first, follows)
    if any(step.stores and step.reads & reached for step in steps):
        loaded = {register for step in steps if step.loads for register in step.writes}
        reached = _closed(reached | loaded, follows)
    return frozenset(reached)


def _closed(first: Iterable[str], follows: Mapping[str, set[str]]) -> set[str]:
    reached = set(first)
    waiting = list(reached)
    while waiting:
        fresh = follows.get(waiting.pop(), set()) - reached
        reached |= fresh
        waiting += fresh
    return reached
