"""Several measured cases as one time."""

from __future__ import annotations

import pytest

from kernelgate.protocol import Timing
from kernelgate.stages import Measured
from worker.gpu.together import speeds, together


def timing(baseline: float, user: float, **facts: float) -> Timing:
    speedup = baseline / user
    return Timing(
        baseline_ms=baseline, user_ms=user, speedup=speedup, speedup_low=0.9 * speedup, speedup_high=1.1 * speedup,
        gate=None, baseline_samples_ms=(baseline,), user_samples_ms=(user,), facts=dict(facts),
    )  # fmt: skip


CASES = {"short": timing(1.0, 0.25), "long": timing(8.0, 8.0)}


def test_the_geometric_mean_counts() -> None:
    found = together(CASES, Measured.MEAN)
    assert found is not None
    assert found.speedup == pytest.approx(2.0)
    assert found.speedup == pytest.approx(found.baseline_ms / found.user_ms)
    assert (found.speedup_low, found.speedup_high) == (pytest.approx(1.8), pytest.approx(2.2))
    assert found.facts["counts"] == "the mean of 2 cases"
    assert (found.facts["short_speedup"], found.facts["long_speedup"]) == (4.0, 1.0)


def test_the_worst_counts_where_the_stage_says_so() -> None:
    found = together(CASES, Measured.WORST)
    assert found is not None
    assert (found.speedup, found.user_ms, found.facts["worst_case"]) == (1.0, 8.0, "long")


def test_one_case_is_its_own_time_and_none_is_no_time() -> None:
    assert together({"short": CASES["short"]}, Measured.MEAN) is CASES["short"]
    assert together({}, Measured.MEAN) is None


def test_what_was_timed_beside_the_baseline_has_a_column() -> None:
    (table,) = speeds({"one": timing(2.0, 1.0, beside_dense_fp32_ms=5.0), "other": timing(1.0, 1.0)})
    assert table.columns[5] == "dense fp32 ms"
    assert [row[5] for row in table.rows] == [5.0, ""]
    assert speeds({}) == ()
