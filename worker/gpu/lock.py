"""A reader-writer lock on this host's GPU, from two lock files: cases hold it shared, a measurement exclusively.

The second file, the turnstile, keeps writers from starving: whoever wants the card passes it first, and a measurement keeps it.
Processes that see different cards (CUDA_VISIBLE_DEVICES) have different locks. The kernel lets go of a dead process's locks.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kernelgate.settings import settings


@contextmanager
def shared() -> Iterator[None]:
    """The card, with others beside: never while somebody measures."""
    with _opened("room") as room:
        with _opened("turnstile") as turnstile:
            fcntl.flock(turnstile, fcntl.LOCK_EX)
            fcntl.flock(room, fcntl.LOCK_SH)
        yield


@contextmanager
def exclusive() -> Iterator[None]:
    """The card, with nobody else of this host's on it."""
    with _opened("turnstile") as turnstile, _opened("room") as room:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX)
        yield


def _opened(part: str) -> IO[str]:
    """A lock file; closing it lets go. Never inherited, for a child would go on holding the lock."""
    return card_file(part).open("w")


def card_file(part: str) -> Path:
    """Where this host keeps something about the cards that this process sees. Its folder exists."""
    cards = "".join(letter if letter.isalnum() else "_" for letter in os.environ.get("CUDA_VISIBLE_DEVICES", ""))[:80]
    folder = settings().data_dir / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{cards or 'all'}.{part}"
