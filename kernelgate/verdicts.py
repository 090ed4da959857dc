"""The ten answers a submission can get, and the states it passes through on the way.

A verdict says who has to act: `judge_error` is our fault and never counts against the submitter; every other verdict but
`accepted` and `correct` is the submission's. The two never share a code path.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """What a grading concluded. Ordered as in the documentation: good news first, our own fault last."""

    ACCEPTED = "accepted"
    CORRECT = "correct"
    GATE_MISSED = "gate_missed"
    WRONG_ANSWER = "wrong_answer"
    CONTRACT_VIOLATION = "contract_violation"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    JUDGE_ERROR = "judge_error"

    @property
    def about(self) -> About:
        return ABOUT[self]

    @property
    def passes(self) -> bool:
        """True for the verdicts that end the command line with status 0."""
        return self in PASSING


class About(NamedTuple):
    """What a person is told about a verdict.

    title: words for a badge. meaning: one sentence. mark: a sign that carries the verdict without colour.
    exit_status: what `kernelgate submit` and `kernelgate check` exit with.
    """

    title: str
    meaning: str
    mark: str
    exit_status: int


ABOUT: dict[Verdict, About] = {
    Verdict.ACCEPTED: About("Accepted", "Everything the stage asks for, its speed gate included.", "✓", 0),
    Verdict.CORRECT: About("Correct", "Right in every value; speed was not judged on this machine.", "≈", 0),
    Verdict.GATE_MISSED: About("Gate missed", "Right in every value, but slower than the stage's gate.", "◔", 10),
    Verdict.WRONG_ANSWER: About("Wrong answer", "At least one value differs from the reference.", "✗", 11),
    Verdict.CONTRACT_VIOLATION: About(
        "Contract violation", "The stage's contract was broken before values could count.", "⊘", 12
    ),
    Verdict.COMPILE_ERROR: About("Compile error", "The source could not be compiled or loaded.", "{", 13),
    Verdict.RUNTIME_ERROR: About("Runtime error", "The submission stopped with an error while it ran.", "!", 14),
    Verdict.TIME_LIMIT: About("Time limit", "The submission was stopped at the stage's time limit.", "◷", 15),
    Verdict.MEMORY_LIMIT: About("Memory limit", "The submission was stopped at the stage's memory limit.", "▤", 16),
    Verdict.JUDGE_ERROR: About("Judge error", "The service failed, not the submission; it does not count.", "?", 17),
}

PASSING = frozenset({Verdict.ACCEPTED, Verdict.CORRECT})


def passing(*, gated: bool) -> frozenset[Verdict]:
    """The verdicts that pass a stage: where a gate has to be reached, right values with the gate left open do not."""
    return frozenset({Verdict.ACCEPTED}) if gated else PASSING


class State(StrEnum):
    """Where a submission is. `done` has a verdict, `cancelled` has none."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (State.DONE, State.CANCELLED)


class Phase(StrEnum):
    """The steps of one grading, in the order they can happen; each is an event and a stored duration."""

    COMPILE = "compile"
    RECORD = "record"
    LOAD = "load"
    CASES = "cases"
    MEASURE = "measure"
    JUDGE = "judge"
