"""The interval of a speedup, and when a measurement may stop."""

from __future__ import annotations

import numpy as np
import pytest

from worker.gpu.statistics import Ratio, enough, middle, middle_error, ratio


def samples(pairs: int, spread: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return 1.0 + spread * rng.standard_normal(pairs), 0.5 + 0.5 * spread * rng.standard_normal(pairs)


def test_the_ratio_of_middle_means_and_its_interval() -> None:
    found = ratio(*samples(100, 0.001), np.random.default_rng(0))
    assert found.low <= found.value <= found.high
    assert found.value == pytest.approx(2.0, abs=0.002)
    assert found.narrow


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        found = ratio(*samples(40, 0.01, seed), rng)
        covered += found.low <= 2.0 <= found.high
    assert 180 <= covered <= 200


def test_what_disturbs_both_of_a_pair_leaves_the_ratio_alone() -> None:
    baseline, user = samples(60, 0.001)
    baseline[:10] *= 1.5
    user[:10] *= 1.5
    assert ratio(baseline, user, np.random.default_rng(0)).value == pytest.approx(2.0, abs=0.005)


def test_noise_widens_the_interval() -> None:
    rng = np.random.default_rng(0)
    quiet, loud = ratio(*samples(40, 0.001), rng), ratio(*samples(40, 0.05), rng)
    assert loud.high - loud.low > 10 * (quiet.high - quiet.low)
    assert not loud.narrow


@pytest.mark.parametrize(
    ("low", "high", "gate", "stops"),
    [
        (1.995, 2.005, None, True),
        (1.9, 2.1, None, False),
        (1.9, 2.1, 1.8, True),
        (1.7, 2.1, 1.8, False),
        (1.7, 2.1, 2.2, True),
    ],
)
def test_when_it_is_enough(low: float, high: float, gate: float | None, stops: bool) -> None:
    assert enough(Ratio(2.0, low, high), gate) is stops


def test_a_middle_mean_leaves_a_quarter_out_at_either_end() -> None:
    assert middle([1.0, 2.0, 3.0, 4.0, 1e9]) == 3.0
    assert middle([5.0]) == 5.0
    assert middle([1.0, 3.0]) == 2.0


def test_the_error_of_a_middle_mean_is_that_of_many_repetitions() -> None:
    rng = np.random.default_rng(0)
    runs = rng.standard_normal((2000, 15))
    spread = np.std([middle(run) for run in runs])
    assert np.mean([middle_error(run) for run in runs]) == pytest.approx(spread, rel=0.15)
