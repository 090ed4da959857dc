"""The gauges of a card are read as NVML gives them, and what it does not give is left out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from worker.gpu.backend import missing_gpu
from worker.gpu.nvml import Gauges, cards

SLOT = "00000000:1B:00.0"
NVML = r"""
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory_t;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
    *device = (void *)0x5eed;
    return strcmp(bus, "00000000:1B:00.0") ? 6 : 0;
}
static int is(void *device) { return device == (void *)0x5eed; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *out) { *out = 41; return is(d) && sensor == 0 ? 0 : 1; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *out) { *out = 118600; return is(d) ? 0 : 1; }
int nvmlDeviceGetClockInfo(void *d, int which, unsigned *out) { *out = 1755; return is(d) && which == 1 ? 0 : 1; }
int nvmlDeviceGetMaxClockInfo(void *d, int which, unsigned *out) { *out = 1980; return is(d) && which == 1 ? 0 : 1; }
int nvmlDeviceGetTotalEccErrors(void *d, int kind, int counter, unsigned long long *out) { return 3; /* not supported */ }
int nvmlDeviceGetMemoryInfo(void *d, memory_t *out) {
    out->total = 143771ull << 20; out->used = 2051ull << 20; out->free = out->total - out->used;
    return is(d) ? 0 : 1;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *count, void *found) { *count = 2; return found ? 0 : 7; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *out) { *out = 0x44; return is(d) ? 0 : 1; }
int nvmlSystemGetDriverVersion(char *out, unsigned size) { strncpy(out, "580.65.06", size); return 0; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with NVML's functions and one card's answers, for hosts that have none."""
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(NVML)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "nvml.so", folder / "nvml.c"], check=True, timeout=60)
    return folder / "nvml.so"


def test_every_gauge_is_read_in_its_unit(library: Path) -> None:
    assert Gauges(SLOT, str(library)).read() == {
        "celsius": 41,
        "watts": 119,
        "sm_mhz": 1755,
        "highest_sm_mhz": 1980,
        "programs": 2,
        "slowed": "too hot (hardware)",
        "driver": "580.65.06",
        "memory_used_mib": 2051,
        "memory_mib": 143_771,
    }


def test_an_unknown_card_and_a_host_without_nvml_show_nothing(library: Path) -> None:
    assert Gauges("00000000:99:00.0", str(library)).read() == {}
    assert Gauges(SLOT, str(library.with_name("absent.so"))).read() == {}


@pytest.mark.skipif(missing_gpu() is None, reason="this host has a GPU")
def test_a_host_without_a_gpu_reports_no_card() -> None:
    assert cards() == []


@pytest.mark.gpu
@pytest.mark.skipif(missing_gpu() is not None, reason=str(missing_gpu()))
def test_this_hosts_own_card_is_reported() -> None:
    (card,) = cards()
    assert card["well"]
    assert 0 < card["celsius"] < 110
    assert 0 < card["memory_used_mib"] < card["memory_mib"]
    assert 0 < card["sm_mhz"] <= card["highest_sm_mhz"]
