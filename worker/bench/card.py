"""The card itself: its context, what it is, and whether it is fit to measure on."""

from __future__ import annotations

import os

import numpy as np
from cuda.bindings import driver as cu

from worker.bench.clocks import Clocks
from worker.bench.driver import check
from worker.bench.strangers import strangers
from worker.gpu.protocol import Ready

LANES = 128
"""fp32 multiply-adds a multiprocessor starts in a clock, on every architecture from 8.6 on (8.0: 64)."""
LEAST_FREE = 1 << 30


TEST_WORDS = 1 << 14
TEST_KERNEL = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry squares(.param .u64 out) {
    .reg .b32 %r<5>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [out];
    cvta.to.global.u64 %d1, %d1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r3, %r1, 256, %r2;
    mul.lo.u32 %r4, %r3, %r3;
    mul.wide.u32 %d2, %r3, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r4;
    ret;
}
\0"""
"""out[i] = i * i, in PTX, which the driver compiles for whatever card this is."""


class UnfitCardError(RuntimeError):
    """The card computes wrongly or has no memory left; the text says which."""


class Card:
    """The first visible device, with its primary context current in this process."""

    def __init__(self) -> None:
        check(cu.cuInit(0), "cuInit")
        self.ordinal = 0
        self.device = int(check(cu.cuDeviceGet(self.ordinal)))
        self.bus = bytes(check(cu.cuDeviceGetPCIBusId(32, self.device))).split(b"\0")[0]
        self.context = check(cu.cuDevicePrimaryCtxRetain(self.device), "context")
        check(cu.cuCtxSetCurrent(self.context))
        self.attributes = {
            int(which): int(answer[1])
            for which in cu.CUdevice_attribute
            if which.name != "CU_DEVICE_ATTRIBUTE_MAX"
            and (answer := cu.cuDeviceGetAttribute(which, self.device))[0] == cu.CUresult.CUDA_SUCCESS
        }
        self._kernel = check(cu.cuModuleGetFunction(check(cu.cuModuleLoadData(TEST_KERNEL), "test kernel"), b"squares"))
        self.examine()

    def examine(self) -> None:
        """A kernel that computes what it should, and memory to work in. Raises UnfitCardError."""
        self.free, self.memory = (int(size) for size in check(cu.cuMemGetInfo()))
        if self.free < LEAST_FREE:
            raise UnfitCardError(f"{self.free >> 20} MiB of device memory are free; {LEAST_FREE >> 20} are needed")
        words = np.zeros(TEST_WORDS, np.uint32)
        at = check(cu.cuMemAlloc(words.nbytes))
        pointer = np.array([int(at)], np.uint64)
        arguments = np.array([pointer.ctypes.data], np.uint64)
        check(cu.cuMemsetD32(at, 0xFFFFFFFF, words.size))
        check(
            cu.cuLaunchKernel(self._kernel, words.size // 256, 1, 1, 256, 1, 1, 0, 0, arguments.ctypes.data, 0),
            "test kernel",
        )
        check(cu.cuMemcpyDtoH(words.ctypes.data, at, words.nbytes), "test kernel")
        check(cu.cuMemFree(at))
        wrong = int((words != np.arange(TEST_WORDS, dtype=np.uint32) ** 2).sum())
        if wrong:
            raise UnfitCardError(f"a test kernel computed {wrong} of {TEST_WORDS} values wrongly")

    def _attribute(self, name: str) -> int:
        return self.attributes.get(int(getattr(cu.CUdevice_attribute, name)), 0)

    def clock(self) -> float:
        """The highest SM clock in Hz."""
        mhz = Clocks(self.bus).highest_sm_mhz() or self._attribute("CU_DEVICE_ATTRIBUTE_CLOCK_RATE") // 1000
        return mhz * 1e6

    def fp32_peak(self) -> float:
        """FLOP/s at the highest SM clock."""
        return 2.0 * LANES * self._attribute("CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT") * self.clock()

    def bandwidth_peak(self) -> float:
        """Bytes/s of device memory: its clock's two edges over the whole bus; 0 where the driver does not say.

        As the CUDA C++ Best Practices Guide computes theoretical bandwidth.
        """
        khz = self._attribute("CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE")
        return 2.0 * khz * 1e3 * self._attribute("CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH") / 8

    @property
    def host_readable(self) -> bool:
        """Whether device code could read this process's memory (HMM)."""
        return bool(self._attribute("CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS"))

    def strangers(self) -> list[str]:
        return strangers(Clocks(self.bus))

    def ready(self) -> Ready:
        """What the card is, for the first answer."""
        return Ready(
            name=check(cu.cuDeviceGetName(128, self.device)).split(b"\0")[0].decode(),
            memory=self.memory,
            driver=int(check(cu.cuDriverGetVersion())),
            attributes={str(which): value for which, value in self.attributes.items()},
            capability=(
                self._attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR"),
                self._attribute("CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR"),
            ),
            host_readable=self.host_readable,
            clock_hz=self.clock(),
            fp32_peak=self.fp32_peak(),
            bandwidth_peak=self.bandwidth_peak(),
            process=os.getpid(),
            strangers=tuple(self.strangers()),
        )
