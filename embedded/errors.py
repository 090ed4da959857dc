"""What can go wrong while the embedded services start: one exception, whose text is all a person needs."""

from __future__ import annotations


class EmbeddedError(Exception):
    """An embedded service cannot run. The text says what happened, where, and the next step."""
