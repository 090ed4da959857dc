"""Device buffers inside an electric fence: mapped at the address they were recorded with, with nothing mapped beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from worker.bench.driver import check
from worker.recording.placement import STRIDE, Buffer

POISON = 0xFFFFFFFF
"""Every word a quiet NaN with all its bits set: a value that was never written shows, whatever the dtype's width."""
CANARY = 0xA5A5A5A5


class AddressTakenError(RuntimeError):
    """The driver would not reserve the address that the tape was recorded with."""


class Mapped:
    """One mapped buffer. A context manager: leaving it wipes and unmaps the memory."""

    def __init__(self, buffer: Buffer, device: int) -> None:
        self.buffer = buffer
        self.reserved, self.span = buffer.mapping // STRIDE * STRIDE, STRIDE
        got = int(check(cu.cuMemAddressReserve(self.span, 0, self.reserved, 0), "reserve"))
        if got != self.reserved:
            cu.cuMemAddressFree(got, self.span)
            raise AddressTakenError(f"{self.reserved:#x} for {buffer.name}")
        self.handle = _allocate(buffer.mapped, device)
        check(cu.cuMemMap(buffer.mapping, buffer.mapped, 0, self.handle, 0), "map")
        access = cu.CUmemAccessDesc()
        access.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = device
        access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        check(cu.cuMemSetAccess(buffer.mapping, buffer.mapped, [access], 1), "access")
        self.fill(CANARY, whole=True)

    def __enter__(self) -> Mapped:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            return  # a fault or an endless kernel: the context frees nothing any more, and goes with the process
        self.fill(0, whole=True)
        check(cu.cuCtxSynchronize())
        check(cu.cuMemUnmap(self.buffer.mapping, self.buffer.mapped))
        check(cu.cuMemRelease(self.handle))
        check(cu.cuMemAddressFree(self.reserved, self.span))

    def fill(self, word: int, *, whole: bool = False) -> None:
        """Writes one 32-bit word over the buffer, or over all of its mapping."""
        start, size = (self.buffer.mapping, self.buffer.mapped) if whole else (self.buffer.address, self.buffer.size)
        check(cu.cuMemsetD32(start, word, size // 4), "fill")

    def write(self, values: NDArray[Any]) -> None:
        check(cu.cuMemcpyHtoD(self.buffer.address, values.ctypes.data, values.nbytes), "upload")

    def read(self) -> NDArray[np.float32]:
        """The buffer's content as a flat float32 array."""
        values = np.empty(self.buffer.size // 4, np.float32)
        check(cu.cuMemcpyDtoH(values.ctypes.data, self.buffer.address, self.buffer.size), "download")
        return values

    def strayed(self) -> bool:
        """Whether anything was written inside the mapping but outside the buffer."""
        slack = self.buffer.mapped - self.buffer.size
        if not slack:
            return False
        start = self.buffer.mapping
        if self.buffer.address == start:
            start += self.buffer.size
        words = np.empty(slack // 4, np.uint32)
        check(cu.cuMemcpyDtoH(words.ctypes.data, start, slack), "download")
        return bool((words != CANARY).any())


def _allocate(size: int, device: int) -> Any:
    wanted = cu.CUmemAllocationProp()
    wanted.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = device
    return check(cu.cuMemCreate(size, wanted, 0), "allocate")
