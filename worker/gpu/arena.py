"""Memory that a worker and one player share: masked inputs on the way in, outputs on the way out.

A memory file that cannot be resized: shrinking it would make the other side fault. Pages that are never touched cost nothing.
"""

from __future__ import annotations

import fcntl
import mmap
import os

import numpy as np
from numpy.typing import NDArray

SIZE = 4 << 30
ALIGNMENT = 256
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class ArenaError(ValueError):
    """More than fits."""


class Arena:
    """The worker's end: `fd` is handed to the player's process when that starts."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("timed", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, SIZE)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, SEALS)
        self.bytes = mapped(self.fd)

    def close(self) -> None:
        os.close(self.fd)


def mapped(fd: int) -> NDArray[np.uint8]:
    """All bytes of an arena's file, shared."""
    return np.frombuffer(mmap.mmap(fd, SIZE), np.uint8)


class Layout:
    """Hands out offsets one after the other. Raises ArenaError when the arena is full."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, size: int) -> int:
        at = self.used
        self.used += -(-size // ALIGNMENT) * ALIGNMENT
        if self.used > SIZE:
            raise ArenaError(f"{self.used:,} bytes of timed inputs and outputs; at most {SIZE:,} fit")
        return at
