"""What a compiler made, kept by the content of all that it was made from: what comes again costs no compiler.

A stage that is proven again, a file that is judged again or sent by a whole class meets its compiled files here. Submitted text
is compiled in the sandbox and may make a compiler misbehave, so this is how little that gains: the name of an entry is a hash
over the whole text, the command, the compilers and this release's own files, so what a text made of its compiler comes back
for that text alone, as it would without; the sandbox neither sees the folder nor names an entry; what is read is parsed with
the distrust of a first time. Only results of compilers that ended well are kept, so no limit that was hit by chance stays.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from kernelgate.settings import settings

log = logging.getLogger(__name__)
FOLDER_BYTES = 2 << 30
"""When there is more, what was not used for longest goes."""
ENTRY_BYTES = 64 << 20
"""More than this is compiled every time: one submission takes no other's place."""


def folder() -> Path:
    """Where builds are kept: where the setting says, else in the data folder."""
    stated = settings().build_cache
    return (Path(stated) if stated else settings().data_dir / "builds").resolve()


def key(*parts: str | bytes | Iterable[str | bytes]) -> str:
    """The name of what is made from these parts; their borders count."""
    digest = hashlib.sha256()
    for part in parts:
        words = [part] if isinstance(part, str | bytes) else list(part)
        digest.update(f"{len(words)}:".encode())
        for word in words:
            data = word.encode(errors="surrogatepass") if isinstance(word, str) else word
            digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


@cache
def identity(program: Path) -> str:
    """A program as it lies here: another release under the same name makes other entries."""
    found = program.resolve()
    if not found.exists():
        return f"no {found}"
    state = found.stat()
    return f"{found} {state.st_size} {state.st_mtime_ns}"


def read(name: str) -> dict[str, bytes] | None:
    """The files of an entry, or None where there is none that is whole."""
    path = _path(name)
    try:
        with zipfile.ZipFile(path) as archive:
            files = {each: archive.read(each) for each in archive.namelist()}
        os.utime(path)
    except (OSError, zipfile.BadZipFile, EOFError):
        return None
    return files


def write(name: str, files: Mapping[str, bytes]) -> None:
    """Keeps the files of an entry, whole or not at all: another process may read or write the same one.

    A disk that is full costs time later, and no submission its verdict.
    """
    if sum(map(len, files.values())) > ENTRY_BYTES:
        return
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for each, content in files.items():
            archive.writestr(each, content)
    path = _path(name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            made.write_bytes(data.getbuffer())
            made.rename(path)
        _make_room(path.parent)
    except OSError:
        log.exception("what was compiled could not be kept in %s", path.parent)


def _make_room(place: Path) -> None:
    """Removes what was not used for longest until the rest is small enough; another process may do the same meanwhile."""
    with os.scandir(place) as entries:
        states = []
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file():
                    state = entry.stat()
                    states.append((state.st_mtime_ns, state.st_size, entry.path))
    over = sum(size for _, size, _ in states) - FOLDER_BYTES
    for _, size, path in sorted(states):
        if over <= 0:
            return
        Path(path).unlink(missing_ok=True)
        over -= size


def _path(name: str) -> Path:
    return folder() / "kept" / f"{name}.zip"
