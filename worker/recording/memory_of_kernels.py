"""Memory that kernels have besides the buffers they are given: variables, the device's heap, stack frames.

It counts as workspace, whatever the language: variables of all cubins in sum, and for each launch the bytes of a stack frame
times the threads that can be resident at once. A frame is a store that outlives its call; nothing in it can be of use later,
because every call has inputs of its own, but a score matrix that lies in frames is a score matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelgate.reasons import Reason
from kernelgate.stages import Limits
from worker.judging.failures import Failure
from worker.recording.cubin import Cubin, Kernel

HEAP = frozenset({"malloc", "free", "__nv_aligned_device_malloc"})
MULTIPROCESSORS, THREADS_EACH = 16, 39
"""CUDA's numbers of the attributes: multiprocessors, and threads that one of them holds."""


def check_variables(cubins: Iterable[Cubin], limits: Limits, *, case: str | None = None) -> None:
    """Raises Failure where the variables of all cubins together, or the heap, are memory that the stage does not allow."""
    where = f"Case {case}: " if case else ""
    listed = list(cubins)
    if any(cubin.imported & HEAP for cubin in listed):
        message = (
            f"{where}A kernel calls malloc or new. The device's heap is memory that outlives the call and that nobody counts; "
            f"the stage allows {allowed(limits.workspace_kb)}."
        )
        raise Failure(Reason.WORKSPACE, message, case=case)
    limit, used = limits.static_kb * 1024, sum(cubin.static_bytes for cubin in listed)
    if used > limit:
        message = (
            f"{where}The __device__ and __constant__ variables take {used:,} bytes; the stage allows {limit:,} in "
            f"all and {allowed(limits.workspace_kb)}. Keep the row's state in registers and shared memory."
        )
        raise Failure(Reason.WORKSPACE, message, case=case)


def check_frames(
    launches: Iterable[tuple[Kernel, int]], attributes: Mapping[int, int], limits: Limits, *, case: str | None = None
) -> None:
    """Raises Failure where the stack frames of a launch are too much. launches: each kernel with its threads in all.

    attributes: of the card, by CUDA's number.
    """
    resident = attributes.get(MULTIPROCESSORS, 1) * attributes.get(THREADS_EACH, 2048)
    limit = (limits.workspace_kb + limits.frames_kb) * 1024
    for kernel, threads in launches:
        used = kernel.frame_bytes * min(threads, resident)
        if used > limit:
            where = f"Case {case}: " if case else ""
            message = (
                f"{where}{min(threads, resident):,} threads with a stack frame of {kernel.frame_bytes:,} bytes each take "
                f"{used:,} bytes; the stage allows {limit:,}. Arrays that are indexed by a variable lie in stack frames, and "
                "so does what spills; keep them small, or in registers by unrolled loops."
            )
            raise Failure(Reason.WORKSPACE, message, case=case)


def allowed(workspace_kb: int) -> str:
    return f"a workspace of {workspace_kb} KiB" if workspace_kb else "no workspace"
