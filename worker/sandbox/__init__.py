"""The sandbox around everything that touches submitted code. `docs/sandbox.md` tells what it promises and how.

`Sandbox.run` executes a command, `Sandbox.session` a Python text in a fork of a warm interpreter; both end in a `Finished`.
SandboxError is our fault, never the program's.
"""

from __future__ import annotations

from .layers import Layer, Layers, layers_table
from .outcome import End, Finished, Limits, SandboxError, SessionEnded
from .sandbox import Sandbox
from .session import Session

__all__ = [
    "End",
    "Finished",
    "Layer",
    "Layers",
    "Limits",
    "Sandbox",
    "SandboxError",
    "Session",
    "SessionEnded",
    "layers_table",
]
