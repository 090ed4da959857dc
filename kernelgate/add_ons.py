"""Backends of installed packages, found by the entry point that such a package has in the group `kernelgate.backends`.

The entry point's name is the backend's word in stages and results; its object says what every process has to know of it. How it
grades is loaded by workers alone.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points

from kernelgate.verdicts import Phase

GROUP = "kernelgate.backends"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AddOn:
    """A backend that is not ours. ways: where its ways to grade are, "module:attribute" (worker/judging/way.py). how: what a
    result says of values that were not computed as a GPU would, or "". phases: what a grading goes through.
    """

    ways: str
    how: str = ""
    phases: frozenset[Phase] = frozenset({Phase.LOAD, Phase.CASES, Phase.JUDGE})


@cache
def backends() -> dict[str, AddOn]:
    """Add-on backends by their word. One that does not load is missing with a warning: everything else goes on working."""
    loaded = {}
    for point in sorted(set(entry_points(group=GROUP))):
        try:
            about = point.load()
            if not isinstance(about, AddOn):
                raise TypeError(f"{point.value} is no kernelgate.add_ons.AddOn")
        except Exception as error:  # a package may fail in any way
            log.warning("backend %r of %s does not load: %s: %s", point.name, point.value, type(error).__name__, error)
        else:
            loaded[point.name] = about
    return loaded
