"""A way to grade: how a backend runs one language. A package states its own in a tuple that `worker/backends.py` finds."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from kernelgate.settings import settings
from worker.judging.job import Run


@dataclass(frozen=True)
class Way:
    """How a backend grades one language.

    run: yields each case as it has run; raises Failure for what the submission did. why_missing: why this host cannot, or None.
    warm: modules that the sandbox's interpreter has imported before a session begins.
    """

    language: str
    run: Run
    why_missing: Callable[[], str | None]
    warm: tuple[str, ...] = ()


def cannot_import(module: str) -> str | None:
    """Why the sandbox's interpreter cannot find `module`, or None. Finding is enough: importing torch takes seconds."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    python = settings().runner_python
    try:
        found = subprocess.run([python, "-I", "-c", code], capture_output=True, timeout=60, check=False)
    except OSError as error:
        return f"{python} does not start: {error}"
    return None if found.returncode == 0 else f"{python} has no {module}; install requirements/grade.txt for it"
