"""What is said of a submission that breaks the contract, or that raises."""

import faulthandler
import signal
import traceback
from contextlib import contextmanager

TEXT_LIMIT = 6000
SHARE_BEFORE_IT_IS_SAID = 0.8  # the end comes by another clock, which began before this process had its order


@contextmanager
def saying_where(seconds):
    """Writes to the error stream which line runs when most of the time is over: whoever ends the process reads it there.

    A signal stops the thread that it reads. faulthandler's own timer reads the frames of a running thread from another one,
    which crashes where functions are called in a loop; and a process that the submission forks waits for ever for that thread.
    """
    faulthandler.register(signal.SIGALRM, file=2, all_threads=False)
    signal.setitimer(signal.ITIMER_REAL, seconds * SHARE_BEFORE_IT_IS_SAID)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


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
