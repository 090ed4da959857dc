"""Where the messages of a grading point at in the submitted file: lines, with what is said about each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kernelgate.protocol import Result
from kernelgate.reasons import Reason
from kernelgate.several_files import parts
from kernelgate.text import line
from kernelgate.verdicts import Verdict

MOST = 20
_SAID = re.compile(r"\bline (\d{1,6})\b")
_COMPILER = re.compile(
    r"([A-Za-z0-9_.-]+\.(?:cuh?|h|py))(?:\((\d{1,6})\)|:(\d{1,6})(?::\d+)?)\s*:\s*(?:fatal )?error\b[^:]*:\s*(.+)"
)
_NAMED = re.compile(
    r'(?:File "?|^|\s)[^\s":]*?([A-Za-z0-9_.-]+\.(?:py|cuh?|h))"?(?:, line |:|\()(\d{1,6})', re.MULTILINE
)


class Fault(NamedTuple):
    """A line of the file, counted from 1, and one line of plain text about it."""

    line: int
    message: str


def faults(result: Result, filename: str, source: str = "") -> list[Fault]:
    """At most MOST, the one to look at first in front: a compiler's first error, or where a traceback ends.

    source: the file, where a message quotes a line of it and does not say which one it is; of several files the one text, whose
    lines are meant then.
    """
    before = {part.name: part.first - 1 for part in reversed(parts(source, filename))}
    if result.reason == Reason.KERNEL_ERROR:
        pointed = [*_quoted(result.log, source)] or [*_last_named(result, before)] or [*_in_message(result)]
    elif result.verdict in (Verdict.COMPILE_ERROR, Verdict.RUNTIME_ERROR):
        pointed = [*_of_compiler(result.log, before)] or [*_last_named(result, before)] or [*_in_message(result)]
    else:
        pointed = [*_in_message(result)]
    found: dict[int, str] = {}
    for fault in pointed:
        found.setdefault(fault.line, fault.message)
    return [Fault(number, message) for number, message in list(found.items())[:MOST]]


def _quoted(log: str, source: str) -> Iterator[Fault]:
    """The line of a kernel that Triton quotes last before its caret; it counts from the kernel's own first line."""
    said = [each for each in log.splitlines() if each.strip()]
    carets = [at for at, each in enumerate(said) if each.strip() == "^" and at]
    if not carets:
        return
    wanted = said[carets[-1] - 1].strip()
    for number, text in enumerate(source.splitlines(), 1):
        if text.strip() == wanted:
            yield Fault(number, line(said[-1].strip(), 300))


def _of_compiler(log: str, before: Mapping[str, int]) -> Iterator[Fault]:
    for text in log.splitlines():
        said = _COMPILER.search(text[:2000])
        if said and said[1] in before:
            yield Fault(before[said[1]] + int(said[2] or said[3]), line(said[4], 300))


def _last_named(result: Result, before: Mapping[str, int]) -> Iterator[Fault]:
    """Where a traceback ends in the file; its message is the result's own, which a traceback ends with."""
    named = [before[name] + int(number) for name, number in _NAMED.findall(result.log) if name in before]
    if named:
        yield Fault(named[-1], line(result.message, 300))


def _in_message(result: Result) -> Iterator[Fault]:
    """Lines that the message itself names: both sides of a race, an access out of bounds, a call that is not allowed."""
    for number in _SAID.findall(result.message[:4000]):
        yield Fault(int(number), line(result.message, 300))
