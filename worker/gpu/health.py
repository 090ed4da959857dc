"""Whether the card may be given work: asked before each submission, and remembered for all processes that see this card.

A worker is two processes. The one that grades asks the card before it claims a submission; when it is not well, it writes why
into a file and leaves the submission queued. The one that keeps the worker reads the file, stops taking work, says so, and
asks again until the card is well.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from kernelgate.text import line
from worker.gpu.lock import card_file

log = logging.getLogger(__name__)

Look = Callable[[], str | None]
"""Asks the card: why it is not well, or None."""


def why_unwell() -> str | None:
    """Why this host's card takes no work, as it was found last, or None."""
    try:
        return _file().read_text().strip() or "not known"
    except FileNotFoundError:
        return None


def unwell_since() -> datetime | None:
    """When this host's card was first found unwell, or None while it is well."""
    return _written(_file())


def looked_at() -> datetime | None:
    """When the card was asked last, by whichever process; None before the first time."""
    return _written(card_file("looked"))


def fit(look: Look) -> bool:
    """Whether the card is well now. What is found is remembered; a card once found unwell is not asked here again."""
    if why_unwell() is not None:
        return False
    return _note(look())


def recovered(look: Look) -> bool:
    """Asks a card that was found unwell again, and forgets the finding when it is well."""
    return _note(look())


def _note(why: str | None) -> bool:
    card_file("looked").touch()
    if why is None:
        _file().unlink(missing_ok=True)
        return True
    log.error("the card is not well and takes no work: %s", why)
    first = unwell_since()
    _file().write_text(line(why, 500) + "\n")
    if first is not None:  # the file's time says since when, whatever is found meanwhile
        os.utime(_file(), (first.timestamp(), first.timestamp()))
    return False


def _written(file: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except FileNotFoundError:
        return None


def _file() -> Path:
    return card_file("unwell")
