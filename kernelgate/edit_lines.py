"""Wrong files as lines: `eps_outside wrong_answer: rsqrtf(mean + eps) => 1 / (sqrtf(mean) + eps)`.

Before the colon stand the file's name, its verdict, `of starter` where it is no edit of the solution, and what is expected:
a mistake of the stage, or a reason; a file that is named as a mistake is expected to show it. Further changes follow ` ;; `,
and a line that begins with a space goes on with the one above. A text that begins with a quotation mark is JSON's, so that it
may have line ends and spaces at its ends; several are one.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

ARROW, FURTHER, STARTER = " =>", " ;; ", "of starter"


class EditLineError(ValueError):
    """A line that cannot be understood; the text quotes it and says what is accepted."""


@dataclass(frozen=True)
class Edit:
    """A wrong file that is a change of another: its verdict, of which folder's file, pairs of old and new text, and what it
    must be answered with."""

    name: str
    verdict: str
    of: str
    changes: tuple[tuple[str, str], ...]
    expected: dict[str, Any]

    def applied(self, text: str) -> str:
        """Raises EditLineError where the old text is no longer there."""
        for old, new in self.changes:
            if old not in text:
                raise EditLineError(f"edits: {self.name}: {old[:80]!r} does not stand in the {self.of}")
            text = text.replace(old, new)
        return text


def read(text: str, mistakes: Collection[str]) -> list[Edit]:
    """All lines. Raises EditLineError."""
    joined: list[str] = []
    for line in text.splitlines():
        if line[:1].isspace() and line.strip() and joined:
            joined[-1] += f" {line.strip()}"
        elif line.strip():
            joined.append(line.strip())
    return [_edit(line, mistakes) for line in joined]


def _edit(line: str, mistakes: Collection[str]) -> Edit:
    head, colon, rest = line.partition(": ")
    of = "starter" if f" {STARTER}" in head else "solution"
    words = head.replace(STARTER, "").split()
    if not colon or len(words) not in (2, 3) or ARROW not in rest:
        what = "accepted is NAME VERDICT [a mistake or a reason]: old text => new text"
        raise EditLineError(f"edits: {line[:80]!r}: {what}")
    name, verdict, *told = words
    expected = told[0] if told else name if name in mistakes else ""
    key = "mistake" if expected in mistakes else "reason"
    return Edit(
        name, verdict, of, tuple(_change(part) for part in rest.split(FURTHER)), {key: expected} if expected else {}
    )


def _change(text: str) -> tuple[str, str]:
    old, arrow, new = text.partition(ARROW)
    if not arrow:
        raise EditLineError(f"edits: {text[:80]!r}: accepted is old text => new text")
    return _text(old.strip()), _text(new.strip())


def _text(written: str) -> str:
    """As it stands; or of one quoted text after the other."""
    parts, rest = [], written if written.startswith('"') else ""
    while rest:
        try:
            part, end = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            raise EditLineError(f"edits: {written[:80]} begins as a quoted text and is none") from None
        parts.append(str(part))
        rest = rest[end:].lstrip()
    return "".join(parts) if parts else written
