"""Registers, spills and shared memory of a submission's kernels, from nvcc where it is installed: that takes no GPU."""

from __future__ import annotations

from dataclasses import replace

from kernelgate.protocol import KernelResources
from worker.judging.failures import Failure
from worker.judging.job import Job
from worker.judging.phases import Phases, Unwatched
from worker.recording.compile import compile_cuda
from worker.recording.native import BuildError, cuda_root

TARGET = "90a"
"""The architecture that resources are reported for: Hopper, as the virtual GPU says of itself."""


def kernel_resources(job: Job) -> tuple[KernelResources, ...]:
    """What nvcc says of the job's kernels; empty where it is not installed.

    The verdict never depends on it: when nvcc refuses a file that ran here, its first words are added to the job's log.
    """
    try:
        cuda_root()
    except BuildError:
        return ()
    asked = replace(job, phases=Phases(Unwatched()), resources=())
    try:
        compile_cuda(asked, TARGET)
    except Failure as failure:
        job.log = f"{job.log}\nnvcc would refuse this file: {failure.message[:1000]}".strip()
    return asked.resources
