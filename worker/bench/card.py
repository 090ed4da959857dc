"""The card itself: its context, what it is, and whether it is fit to measure on."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from cuda.bindings import driver as cu

from worker.bench.clocks import Clocks
from worker.bench.driver import check

LANES = 128
"""fp32 multiply-adds a multiprocessor starts in a clock, on every architecture from 8.6 on (8.0: 64)."""
LEAST_FREE = 1 << 30


class UnfitCardError(RuntimeError):
    """The card computes wrongly or has no memory left; the text says which."""


class Card:
    """The first visible device, with its primary context current in this process."""

    def __init__(self) -> None:
        check(cu.cuInit(0), "cuInit")
        self.ordinal = 0
        self.device = int(check(cu.cuDeviceGet(self.ordinal)))
        self.context = check(cu.cuDevicePrimaryCtxRetain(self.device), "context")
        check(cu.cuCtxSetCurrent(self.context))
        self.attributes = {
            int(which): int(answer[1])
            for which in cu.CUdevice_attribute
            if which.name != "CU_DEVICE_ATTRIBUTE_MAX"
            and (answer := cu.cuDeviceGetAttribute(which, self.device))[0] == cu.CUresult.CUDA_SUCCESS
        }
        self._examine()

    def _examine(self) -> None:
        """A fill that reads back, and memory to work in. Raises UnfitCardError."""
        self.free, self.memory = (int(size) for size in check(cu.cuMemGetInfo()))
        if self.free < LEAST_FREE:
            raise UnfitCardError(f"{self.free >> 20} MiB of device memory are free; {LEAST_FREE >> 20} are needed")
        words = np.zeros(1 << 16, np.uint32)
        at = check(cu.cuMemAlloc(words.nbytes))
        check(cu.cuMemsetD32(at, 0x12345678, words.size))
        check(cu.cuMemcpyDtoH(words.ctypes.data, at, words.nbytes))
        check(cu.cuMemFree(at))
        if (words != 0x12345678).any():
            raise UnfitCardError("a fill did not read back")

    def _attribute(self, name: str) -> int:
        return self.attributes.get(int(getattr(cu.CUdevice_attribute, name)), 0)

    def fp32_peak(self) -> float:
        """FLOP/s at the highest SM clock."""
        clocks = Clocks(self.ordinal)
        mhz = clocks.highest_sm_mhz() or self._attribute("CU_DEVICE_ATTRIBUTE_CLOCK_RATE") // 1000
        return 2.0 * LANES * self._attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT") * mhz * 1e6

    @property
    def host_readable(self) -> bool:
        """Whether device code could read this process's memory (HMM)."""
        return bool(self._attribute("CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS"))

    def facts(self) -> dict[str, Any]:
        """For the `ready` answer."""
        return {
            "name": check(cu.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode(),
            "memory": self.memory,
            "driver": int(check(cu.cuDriverGetVersion())),
            "attributes": {str(which): value for which, value in self.attributes.items()},
            "capability": [
                self._attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"),
                self._attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"),
            ],
            "host_readable": self.host_readable,
            "process": os.getpid(),
        }
