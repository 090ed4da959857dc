"""What a run in the emulator found, in sentences with lines, blocks and threads, and the verdict each kind of it gets.

A finding comes out of a process in which submitted code ran: it can be forged, and then says something about a submission
that forges findings. Correct values never depend on it: those are judged outside, from raw bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from kernelgate.reasons import Reason

FILE = "findings.jsonl"
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{0,40}$")]
Text = Annotated[str, StringConstraints(max_length=2000)]
Index = tuple[int, int, int]
Address = Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{1,16}$")]


class Site(BaseModel):
    """Where an access was. line: 0 when only `pc`, an address in the program, is known, or where it returns to, from the
    innermost `callers` on: the first of these that has a line is meant.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    line: int = Field(0, ge=0, lt=10_000_000)
    pc: Address | None = None
    callers: tuple[Address, ...] = Field((), max_length=8)
    block: Index | None = None
    thread: Index | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        return (*((self.pc,) if self.pc else ()), *self.callers)


class Finding(BaseModel):
    """One finding as the runtime wrote it; `kind` is a key of KINDS."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    build: Word = Field(alias="pass")
    kind: Word
    kernel: Text
    site: Site
    text: Text
    other_access: Word | None = None
    other: Site | None = None

    def sentence(self, lines: Mapping[str, int]) -> str:
        """The finding in words. lines: the submitter's line by program address, as `resolve` finds them."""
        where = _place(self.site, lines)
        kernel = re.sub(r"[^\w:<>,*& ]", "", self.kernel)[:120]
        start = ", ".join(part for part in (where, f"kernel {kernel}" if kernel else "") if part)
        parts = [f"{start}: {self.text}" if start else self.text]
        if self.other is not None:
            parts.append(f"The other access is {_article(self.other_access)}: {_place(self.other, lines)}")
        return ". ".join(parts) + "."


KINDS: dict[str, Reason] = {
    "race": Reason.RACE,
    "out_of_bounds": Reason.ILLEGAL_ADDRESS,
    "uninitialised": Reason.UNINITIALISED_READ,
    "misaligned": Reason.MISALIGNED_ADDRESS,
    "constant_write": Reason.CONSTANT_WRITE,
    "stack_overflow": Reason.STACK_OVERFLOW,
    "arithmetic": Reason.DIVISION_BY_ZERO,
    "deadlock": Reason.DEADLOCK,
    "warp_mask": Reason.WARP_MASK,
    "warp_divergence": Reason.WARP_DIVERGENCE,
    "trap": Reason.ILLEGAL_INSTRUCTION,
    "assertion": Reason.ASSERTION,
    "shared_memory": Reason.SHARED_MEMORY,
    "barrier_object": Reason.BARRIER_MISUSED,
    "grid_sync": Reason.GRID_SYNC,
    "still_running": Reason.TIME_LIMIT,
    "out_of_time": Reason.TIME_LIMIT,
    "out_of_memory": Reason.MEMORY_LIMIT,
}
"""What each kind of finding is called. A `race` costs what the stage says."""


def read(data: bytes) -> Finding | None:
    """The first finding of a run, or None. Lines that are none are left out: only submitted code can have written them."""
    for line in data[: 1 << 16].splitlines()[:16]:
        try:
            finding = Finding.model_validate(json.loads(line))
        except (ValueError, ValidationError, RecursionError):
            continue
        if finding.kind in KINDS:
            return finding
    return None


def addresses(finding: Finding) -> list[str]:
    """The program addresses whose lines are not known yet."""
    sites = [finding.site, *([finding.other] if finding.other else [])]
    return [address for site in sites if not site.line for address in site.addresses]


_ADDRESS = re.compile(r"^0x[0-9a-f]+", re.MULTILINE)


def resolve(told: str, file: str, asked: Iterable[str]) -> dict[str, int]:
    """Lines from what `addr2line -i -a` printed: for each address the innermost inlined line that is in `file`."""
    lines: dict[str, int] = {}
    chunks = re.split(r"(?m)^(?=0x[0-9a-f]+\n)", told)
    by_value = {int(address, 16): address for address in asked}
    for chunk in chunks:
        head = _ADDRESS.match(chunk)
        address = by_value.get(int(head.group(), 16)) if head else None
        if address is None:
            continue
        for found in re.finditer(rf"(?m)(?:^|/){re.escape(file)}:(\d{{1,7}})", chunk):
            if int(found[1]):
                lines[address] = int(found[1])
                break
    return lines


def resolve_with(finding: Finding, file: str, addr2line: Callable[[list[str]], str]) -> dict[str, int]:
    """The lines of a finding's addresses; `addr2line` is given addresses and returns the tool's output."""
    asked = addresses(finding)
    return resolve(addr2line(asked), file, asked) if asked else {}


def _place(site: Site, lines: Mapping[str, int]) -> str:
    line = site.line or next((lines[address] for address in site.addresses if address in lines), 0)
    parts = [f"line {line}"] if line else []
    if site.block is not None:
        parts.append(f"block {_index(site.block)}")
    if site.thread is not None:
        parts.append(f"thread {_index(site.thread)}")
    return ", ".join(parts)


def _index(index: Index) -> str:
    return f"({', '.join(map(str, index))})"


def _article(access: str | None) -> str:
    word = (access or "access").replace("_", " ")
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
