"""Device buffers inside an electric fence: mapped at the address they were recorded with, with nothing mapped beside them."""

from __future__ import annotations

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from worker.bench.driver import Handle, check
from worker.recording.placement import STRIDE, Buffer

POISON = 0xFF
"""Every byte of what has to be written: as a float of any width a NaN, so a value that was never written shows."""
CANARY = 0xA5


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
        self.refill()

    def __enter__(self) -> Mapped:
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is not None:
            return  # a fault or an endless kernel: the context frees nothing any more, and goes with the process
        self._fill(self.buffer.mapping, self.buffer.mapped, 0)
        check(cu.cuCtxSynchronize())
        check(cu.cuMemUnmap(self.buffer.mapping, self.buffer.mapped))
        check(cu.cuMemRelease(self.handle))
        check(cu.cuMemAddressFree(self.reserved, self.span))

    def _fill(self, start: int, size: int, byte: int) -> None:
        check(cu.cuMemsetD8(start, byte, size), "fill")

    def refill(self) -> None:
        """Canaries over the whole mapping; over what has to be written, poison."""
        self._fill(self.buffer.mapping, self.buffer.mapped, CANARY)
        if self.buffer.written:
            self._fill(self.buffer.address, self.buffer.size, POISON)

    def write(self, values: NDArray[np.generic]) -> None:
        check(cu.cuMemcpyHtoD(self.buffer.address, values.ctypes.data, values.nbytes), "upload")

    def read_into(self, values: NDArray[np.uint8]) -> None:
        """Copies the buffer's bytes to `values`, which has as many."""
        check(cu.cuMemcpyDtoH(values.ctypes.data, self.buffer.address, self.buffer.size), "download")

    def read(self) -> NDArray[np.uint8]:
        values = np.empty(self.buffer.size, np.uint8)
        self.read_into(values)
        return values

    @property
    def slack(self) -> tuple[int, int]:
        """(address, bytes) of the mapping's part that is no part of the buffer."""
        start = self.buffer.mapping
        if self.buffer.address == start:
            start += self.buffer.size
        return start, self.buffer.mapped - self.buffer.size

    def strayed(self) -> bool:
        """Whether anything was written inside the mapping but outside the buffer."""
        start, size = self.slack
        if not size:
            return False
        data = np.empty(size, np.uint8)
        check(cu.cuMemcpyDtoH(data.ctypes.data, start, size), "download")
        return bool((data != CANARY).any())


def _allocate(size: int, device: int) -> Handle:
    wanted = cu.CUmemAllocationProp()
    wanted.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = device
    return check(cu.cuMemCreate(size, wanted, 0), "allocate")
