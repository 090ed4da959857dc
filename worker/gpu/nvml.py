"""GPU telemetry through NVML, for the admin page: temperature, memory, power, clocks, errors, other programs on the card.

Read with NVML, which needs no CUDA context, by the process that keeps the worker; for people who look after it. No verdict and
no measurement depends on it: those ask the bench.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache

from worker.gpu import backend as gpu
from worker.gpu import health
from worker.gpu.bench_client import probe
from worker.gpu.protocol import Ready

_PCI_BUS, _PCI_DEVICE, _PCI_DOMAIN = "33", "34", "50"
"""CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, _DEVICE_ID, _DOMAIN_ID."""
_SM_CLOCK, _GPU_TEMPERATURE = 1, 0
_UNCORRECTED, _SINCE_DRIVER_LOAD = 1, 0
_MORE_THAN_ROOM = 7
"""NVML_ERROR_INSUFFICIENT_SIZE: the count that was asked for is written all the same."""
_SLOWED = {0x08: "hardware slowdown", 0x20: "too hot (software)", 0x40: "too hot (hardware)", 0x80: "power brake"}


class _Memory(ctypes.Structure):
    """nvmlMemory_t, in bytes."""

    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Gauges:
    """One card's. bus: its PCI address, for NVML counts cards that CUDA_VISIBLE_DEVICES hides; library: NVML's file."""

    def __init__(self, bus: str, library: str = "libnvidia-ml.so.1") -> None:
        self._device = ctypes.c_void_p()
        self._nvml: ctypes.CDLL | None = None
        try:
            nvml = ctypes.CDLL(library)
        except OSError:
            return
        if not nvml.nvmlInit_v2() and not nvml.nvmlDeviceGetHandleByPciBusId_v2(
            bus.encode(), ctypes.byref(self._device)
        ):
            self._nvml = nvml

    def read(self) -> dict[str, object]:
        """What can be read now: celsius, watts, sm_mhz, highest_sm_mhz, memory_used_mib, memory_mib, uncorrected_errors (since
        the driver was loaded), programs, slowed (why clocks are held down), driver. A gauge that does not answer is absent."""
        if self._nvml is None:
            return {}
        milliwatts = self._number("PowerUsage")
        found = {
            "celsius": self._number("Temperature", _GPU_TEMPERATURE),
            "watts": None if milliwatts is None else round(milliwatts / 1000),
            "sm_mhz": self._number("ClockInfo", _SM_CLOCK),
            "highest_sm_mhz": self._number("MaxClockInfo", _SM_CLOCK),
            "uncorrected_errors": self._number("TotalEccErrors", _UNCORRECTED, _SINCE_DRIVER_LOAD),
            "programs": self._programs(),
            "slowed": self._slowed(),
            "driver": self._driver(),
            **self._memory(),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _call(self, name: str, *arguments: object) -> int:
        """NVML's status; -1 where this version has no such function."""
        function = getattr(self._nvml, name, None)
        return -1 if function is None else int(function(*arguments))

    def _number(self, gauge: str, *which: int) -> int | None:
        value = ctypes.c_ulonglong(0)  # wide enough for every gauge; the machine is little-endian
        status = self._call(f"nvmlDeviceGet{gauge}", self._device, *which, ctypes.byref(value))
        return int(value.value) if status == 0 else None

    def _memory(self) -> dict[str, int]:
        found = _Memory()
        if self._call("nvmlDeviceGetMemoryInfo", self._device, ctypes.byref(found)):
            return {}
        return {"memory_used_mib": found.used >> 20, "memory_mib": found.total >> 20}

    def _programs(self) -> int | None:
        count = ctypes.c_uint(0)
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        status = self._call(name, self._device, ctypes.byref(count), None)
        return int(count.value) if status in (0, _MORE_THAN_ROOM) else None

    def _slowed(self) -> str | None:
        reasons = self._number("CurrentClocksThrottleReasons") or 0
        return next((why for bit, why in _SLOWED.items() if reasons & bit), None)

    def _driver(self) -> str | None:
        text = ctypes.create_string_buffer(96)
        return None if self._call("nvmlSystemGetDriverVersion", text, len(text)) else text.value.decode()


def cards() -> list[dict[str, object]]:
    """For a worker's row: the card it grades on, with whether it is fit for work, since when not and why. [] without one."""
    known = probe() if gpu.missing_gpu() is None else None
    if not isinstance(known, Ready):
        return []
    bus = _bus(known.attributes)
    why, since, looked = health.why_unwell(), health.unwell_since(), health.looked_at()
    found = {
        "name": known.name,
        "bus": bus,
        **_gauges(bus).read(),
        "well": why is None,
        "why": why,
        "since": since.isoformat() if since else None,
        "looked_at": looked.isoformat() if looked else None,
    }
    return [{name: value for name, value in found.items() if value is not None}]


@cache
def _gauges(bus: str) -> Gauges:
    return Gauges(bus)


def _bus(attributes: Mapping[str, int]) -> str:
    domain, bus, device = (attributes.get(name, 0) for name in (_PCI_DOMAIN, _PCI_BUS, _PCI_DEVICE))
    return f"{domain:08X}:{bus:02X}:{device:02X}.0"
