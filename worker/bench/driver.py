"""The CUDA driver API with its error codes turned into exceptions."""

from __future__ import annotations

import time
from typing import Any

from cuda.bindings import driver as cu

Handle = Any
"""An object of the driver's bindings, which carry no types."""


class CudaError(RuntimeError):
    """A driver call that failed. `name` is CUDA's own, e.g. CUDA_ERROR_ILLEGAL_ADDRESS."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{what}: {name}")
        self.name = name


class TimedOutError(RuntimeError):
    """Device work that did not end in its time. The process has to end: nothing else stops a kernel."""


def check(answer: tuple[Handle, ...], what: str = "CUDA") -> Handle:
    """The results of a driver call without its status. Raises CudaError."""
    status, *results = answer
    if status != cu.CUresult.CUDA_SUCCESS:
        raise CudaError(status.name, what)
    return results[0] if len(results) == 1 else tuple(results)


class Events:
    """Two events around a piece of work on one stream."""

    def __init__(self, stream: Handle) -> None:
        self.stream = stream
        self.start = check(cu.cuEventCreate(0))
        self.end = check(cu.cuEventCreate(0))

    def begin(self) -> None:
        check(cu.cuEventRecord(self.start, self.stream))

    def finish(self, within_s: float) -> float:
        """Waits for what came after `begin`; its milliseconds. Raises TimedOutError, and CudaError for a fault."""
        check(cu.cuEventRecord(self.end, self.stream), "launch")
        deadline = time.monotonic() + within_s
        spin = time.monotonic() + 0.005
        while True:
            (status,) = cu.cuEventQuery(self.end)
            if status == cu.CUresult.CUDA_SUCCESS:
                return float(check(cu.cuEventElapsedTime(self.start, self.end)))
            if status != cu.CUresult.CUDA_ERROR_NOT_READY:
                raise CudaError(status.name, "kernel")
            now = time.monotonic()
            if now > deadline:
                raise TimedOutError(f"{within_s:g} s")
            if now > spin:
                time.sleep(0.0002)


def settle(what: str = "kernel") -> None:
    """Waits until the whole device is idle."""
    check(cu.cuCtxSynchronize(), what)
