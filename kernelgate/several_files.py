"""Several files as one text: what a submission is where a stage takes more than one file.

A line `//@file tiles.cuh` (`#@file tiles.py` in Python) begins a further file; what stands before the first such line is the
file that the stage names. So a submission stays one text to store, show, compare and edit, and its files keep their own line
numbers.
"""

from __future__ import annotations

import io
import re
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kernelgate.languages import LANGUAGES

MOST = 16
_MARK = re.compile(r"(?://|#)@file[ \t]+(\S{1,100})[ \t]*")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_NOT_ANOTHERS = frozenset({"driver", "contract", "torch", "triton", "numpy", *sys.stdlib_module_names})
"""Modules that a file beside the submission would stand in for."""


class FilesError(ValueError):
    """Files that cannot stand beside one another; the text names the file and what is accepted."""


class Part(NamedTuple):
    """A file of a submission. first: the line of the whole text that its first line is, counted from 1."""

    name: str
    text: str
    first: int


def parts(text: str, main: str) -> list[Part]:
    """The files of a text, `main` first. Names are as they were written: `check` says whether they can be."""
    found, name, kept, first = [], main, list[str](), 1
    for at, line in enumerate(text.splitlines(keepends=True), 1):
        marked = _MARK.fullmatch(line.rstrip("\r\n"))
        if marked is None:
            kept.append(line)
            continue
        found.append(Part(name, "".join(kept), first))
        name, kept, first = marked[1], [], at + 1
    return [*found, Part(name, "".join(kept), first)]


def check(found: Sequence[Part], language: str, taken: Collection[str]) -> None:
    """Raises FilesError. taken: names of files that the stage provides."""
    main = found[0].name
    names = [part.name for part in found]
    if len(names) > MOST:
        raise FilesError(f"There are {len(names)} files; at most {MOST} are accepted.")
    endings = LANGUAGES[language].endings
    for name in names[1:]:
        stem, dot, ending = name.partition(".")
        shown = name[:80]
        if not _NAME.fullmatch(stem) or dot + ending not in endings:
            accepted = f"lower-case letters, digits and `_`, then {' or '.join(endings)}"
            raise FilesError(f"{shown!r} cannot be the name of a file here; accepted are {accepted}.")
        if names.count(name) > 1 or name == main:
            raise FilesError(f"{shown} stands twice; every file stands once.")
        if name in taken:
            raise FilesError(f"{shown} is provided by the stage; give yours another name.")
        if ending == "py" and stem in _NOT_ANOTHERS:
            raise FilesError(f"{shown} would stand in for the module {stem}; give it another name.")


def joined(files: Mapping[str, str], main: str, language: str) -> str:
    """Files as one text, `main` first. Raises FilesError where it is not there."""
    if main not in files:
        given = ", ".join(sorted(files))[:200]
        raise FilesError(f"No file is called {main}, which is the one that is judged; sent are {given}.")
    sign = LANGUAGES[language].comment
    text = files[main]
    for name in sorted(files.keys() - {main}):
        text = f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{sign}@file {name}\n{files[name]}"
    return text


def unzipped(body: bytes, limit: int) -> dict[str, bytes]:
    """The files of a zip archive by their names without folders. Raises FilesError for more than `limit` bytes in all."""
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return dict(_entries(archive, limit))
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, FilesError):
            raise
        raise FilesError(f"The zip archive cannot be read: {str(error)[:120]}.") from error


def _entries(archive: zipfile.ZipFile, limit: int) -> Iterator[tuple[str, bytes]]:
    """Of a hostile archive no more is unpacked than may be kept, whatever sizes it states."""
    entries = [each for each in archive.infolist() if not each.is_dir()]
    if len(entries) > MOST:
        raise FilesError(f"The zip archive has {len(entries)} files; at most {MOST} are accepted.")
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename.rsplit("/", 1)[-1]
        if name in seen:
            raise FilesError(f"{name[:80]!r} stands twice in the zip archive; every file stands once.")
        seen.add(name)
        with archive.open(entry) as file:
            body = file.read(limit + 1)
        limit -= len(body)
        if limit < 0:
            raise FilesError("The zip archive's files are larger than the stage accepts.")
        yield name, body
