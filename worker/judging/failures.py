"""How a submission's grading ends early: by the submission's own doing. Our own faults are ordinary exceptions."""

from __future__ import annotations

from kernelgate.reasons import Reason
from kernelgate.verdicts import Verdict


class Failure(Exception):  # noqa: N818 - a verdict on its way, not an error of this program
    """The submission failed: the reason, its verdict, which is never `judge_error`, and the sentence for the submitter.

    verdict: where it is not the usual one of the reason.
    case: the case it happened in, if any. log: compiler or interpreter text, bounded. mistake: a named mistake it shows.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        verdict: Verdict | None = None,
        case: str | None = None,
        log: str = "",
        mistake: str | None = None,
    ) -> None:
        super().__init__(message)
        self.verdict = verdict or reason.verdicts[0]
        self.reason = reason
        self.message = message
        self.case = case
        self.log = log
        self.mistake = mistake


class Cancelled(Exception):  # noqa: N818 - the submitter's wish, not an error
    """The submission was cancelled while it was graded."""
