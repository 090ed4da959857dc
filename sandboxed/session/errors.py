"""What is said of a submission that breaks the contract, or that raises."""

import faulthandler
import os
import traceback
from contextlib import contextmanager

TEXT_LIMIT = 6000
BEFORE_THE_END_S = 0.3


@contextmanager
def saying_where(seconds):
    """Writes to the error stream which line runs shortly before the time is over: whoever ends the process reads it there."""
    watched = os.getpid()
    faulthandler.dump_traceback_later(max(seconds - BEFORE_THE_END_S, seconds / 2), file=2)
    try:
        yield
    finally:
        # A process that the submission forked lacks the thread that watches, and would wait for it for ever.
        if os.getpid() == watched:
            faulthandler.cancel_dump_traceback_later()


class Violation(Exception):  # noqa: N818 - drivers raise it as a statement about the submission
    """A word that the contract is broken: a reason for machines and a sentence for people."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason
        self.message = message


def violation(error):
    """The header of its frame."""
    return {"kind": "violation", "reason": error.reason, "message": error.message}


def failure(error, shown, more=""):
    """The header of a frame about an exception.

    shown(frame): whether a line of the traceback is the submitter's business. more: what is added to the traceback.
    """
    frames = [] if isinstance(error, SyntaxError) else traceback.extract_tb(error.__traceback__)
    lines = traceback.format_list([frame for frame in frames if shown(frame)])
    return {
        "kind": "failed",
        "type": type(error).__name__,
        "syntax": isinstance(error, SyntaxError),
        "import": isinstance(error, ImportError),
        "memory": isinstance(error, MemoryError),
        "message": str(error)[:2000],
        "text": ("".join(lines + traceback.format_exception_only(error)) + more)[-TEXT_LIMIT:],
    }
