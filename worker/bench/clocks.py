"""What NVML says of the card while it is measured: SM clock, temperature, and why clocks are held down."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

SLOWED = {0x08: "hardware slowdown", 0x20: "thermal, software", 0x40: "thermal, hardware", 0x80: "power brake"}
"""Reasons that make a sample worthless; a power cap (0x04) is how a busy card ordinarily runs."""
SM_CLOCK, TEMPERATURE_GPU = 1, 0


@dataclass(frozen=True)
class Reading:
    """sm_mhz and celsius are 0 where NVML does not say."""

    sm_mhz: int
    celsius: int
    slowed: str | None


class Clocks:
    """NVML, where it is installed; without it every reading is empty.

    bus: the card's PCI bus id, for NVML counts cards that CUDA_VISIBLE_DEVICES hides from CUDA.
    """

    def __init__(self, bus: bytes) -> None:
        self.nvml: ctypes.CDLL | None = None
        self.device = ctypes.c_void_p()
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByPciBusId_v2(bus, ctypes.byref(self.device)) == 0:
            self.nvml = nvml

    def _number(self, function: str, *arguments: int, width: type[ctypes.c_uint] = ctypes.c_uint) -> int:
        value = width(0)
        if self.nvml is None or not hasattr(self.nvml, function):
            return 0
        status = getattr(self.nvml, function)(self.device, *arguments, ctypes.byref(value))
        return int(value.value) if status == 0 else 0

    def read(self) -> Reading:
        reasons = self._reasons()
        slowed = next((why for bit, why in SLOWED.items() if reasons & bit), None)
        clock = self._number("nvmlDeviceGetClockInfo", SM_CLOCK)
        return Reading(clock, self._number("nvmlDeviceGetTemperature", TEMPERATURE_GPU), slowed)

    def _reasons(self) -> int:
        names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        known = [getattr(self.nvml, name) for name in names if hasattr(self.nvml, name)]
        value = ctypes.c_ulonglong(0)
        return int(value.value) if known and known[0](self.device, ctypes.byref(value)) == 0 else 0

    def highest_sm_mhz(self) -> int:
        return self._number("nvmlDeviceGetMaxClockInfo", SM_CLOCK)
