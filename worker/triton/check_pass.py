"""The check pass of a Triton file: short cases interpreted on the CPU, with each launch's programs in two orders.

A card runs programs in an order of its own, nearly always the same. What cannot be interpreted has no finding, and what masked
loads leave undefined is none either: what stands there on a card is its own affair, and was judged.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgate.settings import settings
from kernelgate.stages import Case
from worker.judging.check_pass import CheckPass
from worker.judging.failures import Failure
from worker.judging.grader import Arrays, Grader
from worker.judging.job import Job
from worker.triton.interpret import ANOTHER_ORDER, interpreted

CASES, MOST_BYTES = 4, 96 << 10
"""So many cases are interpreted, the largest of those whose inputs have so few bytes."""


class OrderCheck(CheckPass):
    """Programs in two orders. inputs: of all cases, by name."""

    survived = "On the GPU the values came out right this time; programs that race may give others in the next run."
    looked_at = "short cases in two orders of programs"

    def __init__(self, job: Job, inputs: dict[str, Arrays]) -> None:
        super().__init__(job)
        self._cases = short(job.cases_without_gpu, inputs)

    def offered(self) -> bool:
        return settings().check_pass

    def own_job(self) -> Job:
        """With a grader of its own: what is computed ahead for the grading is taken once."""
        return replace(super().own_job(), grader=Grader(self.job.stage))

    def check(self, job: Job) -> int:
        return sum(1 for _ in interpreted(job, self._cases))

    def is_finding(self, failure: Failure) -> bool:
        return ANOTHER_ORDER in failure.message


def short(cases: tuple[Case, ...], inputs: dict[str, Arrays]) -> list[Case]:
    """The cases that are interpreted."""
    sizes = {case.name: sum(array.nbytes for array in inputs[case.name].values()) for case in cases}
    small = [case for case in cases if sizes[case.name] <= MOST_BYTES]
    return sorted(small, key=lambda case: -sizes[case.name])[:CASES]
