"""TMA descriptors, encoded by the driver from the arguments that the seam gave."""

from __future__ import annotations

import ctypes

from worker.recording.tape import DESCRIPTOR_BYTES, Descriptor

ALIGNED = 64


class RefusedDescriptorError(ValueError):
    """The driver does not encode it: a stride, a box or a swizzle that the hardware lacks."""


def encode(wanted: Descriptor, address: int) -> bytes:
    """The 128 bytes of cuTensorMapEncodeTiled for a tensor at `address`. Raises RefusedDescriptorError."""
    room = ctypes.create_string_buffer(DESCRIPTOR_BYTES + ALIGNED)
    start = -(-ctypes.addressof(room) // ALIGNED) * ALIGNED
    rank = len(wanted.sizes)
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(start),
        ctypes.c_int(wanted.type),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*wanted.sizes),
        (ctypes.c_uint64 * max(1, rank - 1))(*wanted.strides),
        (ctypes.c_uint32 * rank)(*wanted.box),
        (ctypes.c_uint32 * rank)(*wanted.steps),
        ctypes.c_int(wanted.interleave),
        ctypes.c_int(wanted.swizzle),
        ctypes.c_int(wanted.promotion),
        ctypes.c_int(wanted.fill),
    )
    if status:
        raise RefusedDescriptorError(
            f"the driver refuses a tensor map of sizes {list(wanted.sizes)}, strides {list(wanted.strides)} bytes and box "
            f"{list(wanted.box)} (error {status})"
        )
    return ctypes.string_at(start, DESCRIPTOR_BYTES)
