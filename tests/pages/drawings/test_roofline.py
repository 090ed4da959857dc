"""The roofline: which roof counts, where the points stand, and that nothing is drawn of what is not known."""

from __future__ import annotations

from itertools import pairwise

import pytest

from api.pages.drawings.roofline import roofline
from kernelgate.protocol import Timing


def timing(**facts: float | str) -> Timing:
    """A submission at 2.0 times the baseline's speed, gate 1.8."""
    return Timing(
        baseline_ms=0.8, user_ms=0.4, speedup=2.0, speedup_low=1.99, speedup_high=2.01, gate=1.8, baseline_samples_ms=(),
        user_samples_ms=(), facts=facts,
    )  # fmt: skip


def test_right_of_the_ridge_the_arithmetic_counts() -> None:
    found = roofline(timing(flops=4e9, bytes=16e6, gflop_per_s=10_000.0, peak_gflop_per_s=60_000.0, peak_gbps=4000.0))
    assert found is not None
    assert "250 operations for each byte" in found.words
    assert "right of the ridge at 15: the FP32 roof counts, 60 TFLOP/s" in found.words
    assert "Yours reaches 16.7 % of it, the baseline 8.3 %" in found.words
    assert [(point.title, point.words) for point in found.points] == [
        ("Yours", "Yours 10 TFLOP/s"),
        ("Gate", "Gate 9 TFLOP/s"),
        ("Baseline", "Baseline 5 TFLOP/s"),
    ]
    assert len({point.x for point in found.points}) == 1
    labels = [point.label_y for point in found.points]
    assert all(below - above >= 15 for above, below in pairwise(labels)), "labels cover each other"
    (_, slope_y), (ridge_x, ridge_y), (_, flat_y) = found.roof
    assert ridge_y == flat_y < found.points[0].y < slope_y
    assert found.ridge == (ridge_x, "15")
    assert ridge_x < found.points[0].x


def test_left_of_the_ridge_the_memory_counts() -> None:
    found = roofline(timing(flops=4e9, bytes=1e9, gflop_per_s=8000.0, peak_gflop_per_s=60_000.0, peak_gbps=4000.0))
    assert found is not None
    assert "left of the ridge at 15: the memory’s roof counts, 16 TFLOP/s" in found.words
    assert "Yours reaches 50.0 %" in found.words


def test_without_a_peak_there_is_only_the_memorys_roof() -> None:
    found = roofline(timing(flops=4e9, bytes=16e6, gflop_per_s=10_000.0, peak_gbps=4000.0))
    assert found is not None
    assert (found.peak, found.ridge, found.memory) == (None, None, "memory 4 TB/s")
    assert len(found.roof) == 2
    assert all(16 <= y <= 256 and 58 <= x <= 446 for x, y in found.roof), "the roof leaves the drawing"


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"gflop_per_s": 10_000.0, "share_of_fp32_peak": 0.2},
        {"flops": 4e9, "bytes": 16e6, "gflop_per_s": 10_000.0},
        {"flops": 4e9, "bytes": 0.0, "gflop_per_s": 10_000.0, "peak_gbps": 4000.0},
        {"flops": 4e9, "bytes": "many", "gflop_per_s": 10_000.0, "peak_gbps": 4000.0},
    ],
)
def test_nothing_is_drawn_of_what_is_not_known(facts: dict[str, float | str]) -> None:
    assert roofline(timing(**facts)) is None
