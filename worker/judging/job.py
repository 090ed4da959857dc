"""One submission on its way through a backend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kernelgate.protocol import KernelResources, Table, Timing, Trial
from kernelgate.stages import Case, Stage
from worker.judging.arrays import RawTensor
from worker.judging.grader import Arrays, Grader
from worker.judging.phases import Phases
from worker.judging.traffic import Traffic
from worker.sandbox import Sandbox

Ask = Callable[[Case, Arrays], Mapping[str, RawTensor]]
"""Runs a case that was run before on other inputs, of the same shapes and dtypes; raises Failure."""


def never() -> bool:
    return False


def nothing(ask: Ask) -> None:
    del ask


@dataclass
class Job:
    """What a backend needs to run a submission, and where it leaves what is no tensor.

    right: whether every case judged so far is; a wrong submission is not measured.
    explain: called by a backend that can run a case again, when all have run and before it lets go of the submission.
    source: the text of the file that the stage names. beside: the submission's further files, by name.
    seed: hex, of all inputs. cancelled: asked often; true ends the grading.
    finding: a sentence on what was found beside the grading, which changes no verdict.
    held: why the time is kept from every board until an administrator has looked at it; "" for no reason.
    trial: the one case that is run, where nothing is judged beyond it.
    traffic: how the kernels of a right submission used memory, where a player counted it.
    output, log: bounded text that the submission or a compiler printed. machine: facts for the result; tables likewise.
    """

    stage: Stage
    source: str
    grader: Grader
    sandbox: Sandbox
    seed: str
    phases: Phases
    cancelled: Callable[[], bool] = never
    output: str = ""
    log: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    resources: tuple[KernelResources, ...] = ()
    timing: Timing | None = None
    tables: tuple[Table, ...] = ()
    traffic: Traffic | None = None
    right: bool = True
    explain: Callable[[Ask], None] = nothing
    finding: str = ""
    held: str = ""
    trial: Trial | None = None
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def importable(self) -> dict[str, str]:
        """Files that stand beside the source, by name: the submission's own and, before them, the stage's."""
        return {**self.beside, **self.stage.provided}

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """What is judged: the stage's listed cases, then those drawn for this grading; of a trial its one case."""
        if self.trial is not None:
            runnable = self.stage.runnable
            return tuple(case for case in runnable if case.name == self.trial.case) or runnable[:1]
        return (*self.stage.spec.cases, *self.grader.drawn(self.seed))

    @cached_property
    def cases_without_gpu(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if not case.needs_gpu)


@dataclass(frozen=True)
class CaseRun:
    """A case that came to its end: its inputs and the raw tensors that came out, by name. ms: host clock."""

    case: Case
    inputs: Arrays
    outputs: Mapping[str, RawTensor]
    ms: float | None


Run = Callable[[Job], Iterator[CaseRun]]
"""A backend: yields the stage's cases in order as they have run; raises Failure for what the submission did."""
