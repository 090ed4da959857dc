"""The scratch folder on the host, where there is no mount namespace to hold it: made, measured, removed.

Its contents are hostile: links, folders without permissions, paths longer than a path may be, files without a name.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator


def make(owner: int | None) -> str:
    """A new folder that only `owner` (None: the caller) may enter."""
    folder = tempfile.mkdtemp(prefix="kernelgate-run-")
    if owner is not None:
        os.chown(folder, owner, owner)
    return folder


def usage(folder: str, most_entries: int) -> tuple[int, int]:
    """Bytes and entries below a folder of hostile contents; stops counting at `most_entries`.

    Where a path is too long to be read the folder counts as full: nobody makes such a tree in good faith.
    """
    size = entries = 0
    todo = [folder]
    while todo and entries <= most_entries:
        try:
            with os.scandir(todo.pop()) as found:
                for entry in found:
                    entries += 1
                    facts = entry.stat(follow_symlinks=False)
                    size += facts.st_blocks * 512
                    if stat.S_ISDIR(facts.st_mode):
                        todo.append(entry.path)
                    if entries > most_entries:
                        break
        except FileNotFoundError:
            continue
        except PermissionError:
            continue
        except OSError:
            return size, most_entries + 1
    return size, entries


def unlinked(pids: list[int], device: int) -> int:
    """Bytes of files on `device` that the processes hold open after their names are gone."""
    seen: dict[int, int] = {}
    for pid in pids:
        for facts in _open_files(pid):
            if facts.st_nlink == 0 and facts.st_dev == device and stat.S_ISREG(facts.st_mode):
                seen[facts.st_ino] = facts.st_blocks * 512
    return sum(seen.values())


def _open_files(pid: int) -> Iterator[os.stat_result]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for name in names:
        try:
            yield os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue


def remove(folder: str) -> None:
    """Removes the folder. Nobody may be working in it any more.

    Walks by descriptors, one level at a time, so that neither depth nor the length of a path matters. It starts no process:
    a supervisor whose pid namespace has ended cannot.
    """
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    depth = 0
    while True:
        inner = _clear(here)
        if inner is None and depth == 0:
            break
        below = os.open(inner or "..", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
        os.close(here)
        here = below
        depth += 1 if inner else -1
    os.close(here)
    os.rmdir(folder)


def _clear(here: int) -> str | None:
    """Removes what can be removed at once from a folder; the name of a folder that is not empty, or None."""
    for name in os.listdir(here):
        if not stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=here)
            continue
        try:
            os.rmdir(name, dir_fd=here)
        except OSError:
            os.chmod(name, 0o700, dir_fd=here)
            return name
    return None
