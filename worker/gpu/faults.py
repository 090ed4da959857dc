"""What the driver's errors mean, and whose doing they are."""

from __future__ import annotations

import re

from kernelgate.reasons import Reason
from kernelgate.stages import Limits
from worker.gpu.protocol import Ended
from worker.judging.device_faults import OUTSIDE
from worker.judging.failures import Failure

FAULTS = {
    "CUDA_ERROR_ILLEGAL_ADDRESS": (Reason.ILLEGAL_ADDRESS, OUTSIDE),
    "CUDA_ERROR_MISALIGNED_ADDRESS": (Reason.MISALIGNED_ADDRESS, "a kernel used an address that its type cannot have"),
    "CUDA_ERROR_LAUNCH_FAILED": (Reason.KERNEL_FAILED, "a kernel failed on the device"),
    "CUDA_ERROR_ILLEGAL_INSTRUCTION": (Reason.ILLEGAL_INSTRUCTION, "a kernel ran an illegal instruction or a trap"),
    "CUDA_ERROR_ASSERT": (Reason.ASSERTION, "an assert in a kernel did not hold"),
    "CUDA_ERROR_HARDWARE_STACK_ERROR": (Reason.STACK_OVERFLOW, "a kernel's stack overflowed"),
    "CUDA_ERROR_INVALID_ADDRESS_SPACE": (Reason.ILLEGAL_ADDRESS, "a kernel used an address of the wrong memory space"),
    "CUDA_ERROR_INVALID_PC": (Reason.ILLEGAL_INSTRUCTION, "a kernel jumped to no code"),
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES": (Reason.LAUNCH_REFUSED, "a launch asked for more than the card has"),
    "CUDA_ERROR_INVALID_VALUE": (Reason.LAUNCH_REFUSED, "the driver refused a launch"),
    "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": (
        Reason.LAUNCH_REFUSED,
        "a cooperative launch does not fit on the card at once",
    ),
    "CUDA_ERROR_INVALID_CLUSTER_SIZE": (Reason.LAUNCH_REFUSED, "a cluster size is not possible"),
    "CUDA_ERROR_INVALID_IMAGE": (Reason.LAUNCH_REFUSED, "the device code does not load"),
    "CUDA_ERROR_OUT_OF_MEMORY": (Reason.OUT_OF_MEMORY, "the device ran out of memory"),
}
"""What a CUDA error is called, and means, where its name says more than that the driver refused something."""
REFUSED = (Reason.LAUNCH_REFUSED, "the driver refuses this device code")
OURS = re.compile(
    r"ECC|NVLINK|DEVICE_UNAVAILABLE|NO_DEVICE|DEVICES_|SYSTEM_|MPS_|NOT_INITIALIZED|DEINITIALIZED|CONTAINED|REMOTE"
)
"""Errors of the card and its host, which no device code earns. Any other error of the order that names the submission's image
or tape is the submission's: a driver that knows more errors than this list must not make a way around a verdict."""


def ending(answer: Ended, name: str | None, limits: Limits) -> Failure | None:
    """The failure that device code earned by how its player ended, or None where that is ours. name: the case's."""
    where = f"Case {name}: " if name else ""
    match answer.why:
        case "time_limit":
            message = f"{where}the kernels were stopped after {limits.case_s:g} s."
            return Failure(Reason.TIME_LIMIT, message, case=name)
        case "fault" if not OURS.search(answer.name):
            reason, meaning = FAULTS.get(answer.name, REFUSED)
            return Failure(reason, f"{where}{meaning} ({answer.name}).", case=name)
        case "refused":
            return Failure(Reason.LAUNCH_REFUSED, f"{where}{answer.what}.", case=name)
        case _:
            return None
