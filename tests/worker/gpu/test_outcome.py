"""The figures of a timed call that a roofline is drawn from."""

from __future__ import annotations

import pytest

from kernelgate.settings import ROOT
from worker.gpu.measurement import Samples
from worker.gpu.outcome import Call, Peaks, clocks, conditions, throughput

CALL = Call(flops=4_296_015_872.0, moved=2048 * (768 + 512) * 4)
H200 = Peaks(flops=2.0 * 128 * 132 * 1980e6, moved=2.0 * 3201e6 * 6144 / 8)


def test_a_call_stands_on_the_roofline() -> None:
    facts = throughput(CALL, 0.27, H200)
    assert facts["flops"] == CALL.flops
    assert facts["bytes"] == 10_485_760
    assert facts["gflop_per_s"] == pytest.approx(15911, rel=1e-3)
    assert facts["gb_per_s"] == pytest.approx(38.84, rel=1e-3)
    assert facts["peak_gflop_per_s"] == pytest.approx(66908, rel=1e-3)
    assert facts["peak_gbps"] == pytest.approx(4916.7, rel=1e-3)
    assert facts["share_of_fp32_peak"] == pytest.approx(0.2378, rel=1e-3)
    assert facts["share_of_peak_bandwidth"] == pytest.approx(0.0079, rel=1e-3)


def test_what_is_not_known_is_left_out() -> None:
    assert throughput(Call(flops=0.0, moved=0), 1.0, H200) == {}
    assert set(throughput(CALL, 1.0, Peaks())) == {"flops", "gflop_per_s", "bytes", "gb_per_s"}
    assert "peak_gflop_per_s" not in throughput(CALL, 1.0, Peaks(moved=1e12))


def test_every_fact_is_explained() -> None:
    samples = Samples([0.6] * 10, [0.3] * 10, [0.2] * 10, [0.21] * 10, sm_mhz=[1980, 1965], celsius=40, calls=2)
    page = (ROOT / "docs" / "measuring.md").read_text()
    facts = {**conditions(samples), **clocks(samples, samples.clock(), 0.6), **throughput(CALL, 0.3, H200)}
    assert [key for key in facts if f"`{key}`" not in page] == []
    assert facts["by_host_ms"] == pytest.approx(0.305)
