"""What a run in the emulator found, in sentences with lines, blocks and threads, and the verdict each kind of it gets.

A finding comes out of a process in which submitted code ran: it can be forged, and then says something about a submission
that forges findings. Correct values never depend on it: those are judged outside, from raw bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from kernelgate.verdicts import Verdict

FILE = "findings.jsonl"
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]{0,40}$")]
Text = Annotated[str, StringConstraints(max_length=2000)]
Index = tuple[int, int, int]


class Site(BaseModel):
    """Where an access was. line: 0 when only `pc`, an address in the program, is known."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    line: int = Field(0, ge=0, lt=10_000_000)
    pc: Annotated[str, StringConstraints(pattern=r"^0x[0-9a-f]{1,16}$")] | None = None
    block: Index | None = None
    thread: Index | None = None


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


@dataclass(frozen=True)
class Meaning:
    """What a kind of finding is called and costs. `race` is judged as the stage says."""

    verdict: Verdict
    reason: str


_RUNTIME, _CONTRACT = Verdict.RUNTIME_ERROR, Verdict.CONTRACT_VIOLATION
VIOLATIONS = ("unrecordable_call", "managed_memory", "upload_too_large", "workspace")
"""Kinds whose text is `call|detail|bytes`: the sentence is the one that the tape's reader makes."""
KINDS: dict[str, Meaning] = {
    "race": Meaning(Verdict.WRONG_ANSWER, "race"),
    "out_of_bounds": Meaning(_RUNTIME, "illegal_address"),
    "use_after_free": Meaning(_RUNTIME, "illegal_address"),
    "uninitialised": Meaning(_RUNTIME, "uninitialised_read"),
    "misaligned": Meaning(_RUNTIME, "misaligned_address"),
    "constant_write": Meaning(_RUNTIME, "constant_write"),
    "stack_overflow": Meaning(_RUNTIME, "stack_overflow"),
    "arithmetic": Meaning(_RUNTIME, "division_by_zero"),
    "deadlock": Meaning(Verdict.TIME_LIMIT, "deadlock"),
    "warp_mask": Meaning(_RUNTIME, "warp_mask"),
    "warp_divergence": Meaning(_RUNTIME, "warp_divergence"),
    "trap": Meaning(_RUNTIME, "illegal_instruction"),
    "assertion": Meaning(_RUNTIME, "assertion"),
    "host_crash": Meaning(_RUNTIME, "crashed"),
    "host_code": Meaning(_RUNTIME, "device_function_on_host"),
    "shared_memory": Meaning(_RUNTIME, "shared_memory"),
    "barrier_object": Meaning(_RUNTIME, "barrier_misused"),
    "grid_sync": Meaning(_RUNTIME, "grid_sync"),
    "unknown_kernel": Meaning(Verdict.COMPILE_ERROR, "cannot_emulate"),
    "exception": Meaning(_RUNTIME, "exception"),
    "unrecordable_call": Meaning(_CONTRACT, "unrecordable_call"),
    "managed_memory": Meaning(_CONTRACT, "managed_memory"),
    "upload_too_large": Meaning(_CONTRACT, "upload_too_large"),
    "workspace": Meaning(_CONTRACT, "workspace"),
    "static_memory": Meaning(_CONTRACT, "workspace"),
    "stream_not_joined": Meaning(_CONTRACT, "stream_not_joined"),
    "still_running": Meaning(Verdict.TIME_LIMIT, "time_limit"),
    "out_of_memory": Meaning(Verdict.MEMORY_LIMIT, "memory_limit"),
}


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
    return [site.pc for site in sites if site.pc and not site.line]


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
    line = site.line or lines.get(site.pc or "", 0)
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
