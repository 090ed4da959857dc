"""What nvcc's front end says of a file, with columns: it shows them by a caret alone, under the line without its indent."""

from __future__ import annotations

import re

_SAID = re.compile(r"(?P<file>[\w.-]+)\((?P<line>\d{1,6})\)(?P<rest>: (?:catastrophic error|error|warning)\b.*)")


def with_columns(log: str, file: str, source: str) -> str:
    """The log with `FILE:LINE:COLUMN` where it says `FILE(LINE)` and shows a caret, as the host's compiler writes it."""
    lines, texts = log.splitlines(), source.splitlines()
    for at, text in enumerate(lines):
        said = _SAID.fullmatch(text)
        if said is None or said["file"] != file:
            continue
        column = _column(lines[at + 1 : at + 3], texts[int(said["line"]) - 1 : int(said["line"])])
        if column:
            lines[at] = f"{file}:{said['line']}:{column}{said['rest']}"
    return "\n".join(lines)


def _column(shown: list[str], texts: list[str]) -> int:
    """Counted from 1; 0 where no caret stands under the line."""
    if len(shown) < 2 or not texts or shown[1].strip() != "^" or shown[0].strip() != texts[0].strip():
        return 0
    before = len(shown[0]) - len(shown[0].lstrip())  # it differs: less before a line without an indent
    indent = len(texts[0]) - len(texts[0].lstrip())
    return max(0, shown[1].index("^") - before + indent + 1)
