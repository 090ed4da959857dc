"""Makes the kernel kill a process when its parent dies (PR_SET_PDEATHSIG), so that nothing outlives a killed worker."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Has the kernel kill this process when the thread that started it ends. Safe between fork and exec."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
