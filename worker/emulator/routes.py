"""A submission's way through the emulator: by its source or, where that cannot be, by the PTX that nvcc makes of it."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.reasons import Reason
from worker.emulator import backend, ptx
from worker.judging.failures import Failure
from worker.judging.job import CaseRun, Job
from worker.recording.native import BuildError, cuda_root


def run_cases(job: Job) -> Iterator[CaseRun]:
    """Yields each case as it has run, in the stage's order; raises Failure for what the submission did."""
    started = False
    try:
        for case in backend.run_cases(job):
            started = True
            yield case
        return
    except Failure as failure:
        if started or failure.reason is not Reason.CANNOT_EMULATE:
            raise
        why = no_nvcc()
        if why:
            failure.message = f"{failure.message} With nvcc here it would be translated from PTX ({why})."
            raise
    yield from ptx.run_cases(job)


def no_nvcc() -> str | None:
    """Why PTX cannot be had on this machine, or None."""
    try:
        cuda_root()
    except BuildError as error:
        return str(error)
    return None
