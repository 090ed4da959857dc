"""Exit statuses of the command line. Verdicts have their own: `verdicts.About.exit_status`, 0 and 10 to 17."""

from __future__ import annotations

from enum import IntEnum
from typing import NoReturn

import click


class Exit(IntEnum):
    """Statuses that are no verdict; each with what it means."""

    FAILED = 1
    USAGE = 2
    SIGN_IN = 3
    NETWORK = 4
    REFUSED = 5
    CANCELLED = 6
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        return MEANINGS[self]


MEANINGS: dict[Exit, str] = {
    Exit.FAILED: "The command could not do its work; the message says why.",
    Exit.USAGE: "The command line itself is wrong: an unknown option, a file that is not there.",
    Exit.SIGN_IN: "No token, or one that is unknown, expired, revoked or may not do this.",
    Exit.NETWORK: "The server could not be reached, or stopped answering.",
    Exit.REFUSED: "The server refused the request: unknown stage, a limit, a file that cannot be graded.",
    Exit.CANCELLED: "The submission was cancelled and has no verdict.",
    Exit.INTERRUPTED: "Interrupted by Ctrl-C; a submission that was made goes on.",
}


class Stop(click.ClickException):
    """Ends the command with a message on the error stream and one of our statuses."""

    def __init__(self, status: Exit, message: str) -> None:
        super().__init__(message)
        self.exit_code = int(status)  # type: ignore[misc]  # click reads it from the instance


def stop(status: Exit, message: str) -> NoReturn:
    raise Stop(status, message)
