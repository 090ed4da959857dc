"""Both clocks of a measurement: what honest noise looks like, and what a clock that was moved does."""

from __future__ import annotations

import numpy as np
import pytest

from worker.gpu.clock import EACH_ALLOWED_US, LEAST_ALLOWED_US, read

CONSTANT_MS = 0.4
"""What the host sees of a bracket besides its calls: some hundred microseconds on an H200."""


def rests(seed: int, brackets: int = 15, scatter_us: float = 20.0, moved_us: float = 0.0) -> list[float]:
    rng = np.random.default_rng(seed)
    late = rng.random(brackets) < 0.05  # now and then the host is woken late
    return list(CONSTANT_MS + 1e-3 * (scatter_us * rng.standard_normal(brackets) + 200.0 * late + moved_us))


def test_clocks_that_agree() -> None:
    wrong = sum(not read(rests(seed), rests(1000 + seed), calls=2, call_ms=1.0).agree for seed in range(300))
    assert wrong <= 3


def test_sixteen_microseconds_a_call_are_seen_or_more_pairs_are_asked_for() -> None:
    seen = 0
    for seed in range(100):
        reading = read(
            rests(seed, scatter_us=5.0, moved_us=3 * 16.0), rests(1000 + seed, scatter_us=5.0), calls=3, call_ms=0.15
        )
        assert not reading.agree or not reading.sharp
        seen += not reading.agree
    assert seen >= 95


def test_a_clock_that_hides_much_of_a_call_is_not_sharp() -> None:
    short, long = (
        read(rests(1, scatter_us=200.0), rests(2, scatter_us=200.0), calls=2, call_ms=ms) for ms in (0.2, 20.0)
    )
    assert not short.sharp
    assert long.sharp


@pytest.mark.parametrize("moved_us", [1000.0, -1000.0])
def test_a_clock_that_was_moved_shows_in_either_direction(moved_us: float) -> None:
    reading = read(rests(1, moved_us=moved_us), rests(2), calls=1, call_ms=1.0)
    assert not reading.agree
    assert np.sign(reading.moved_us) == np.sign(moved_us)


def test_noise_is_allowed_for_and_said() -> None:
    quiet, loud = (
        read(rests(1, scatter_us=0.5), rests(2, scatter_us=0.5), 1, 1.0),
        read(rests(1, scatter_us=200.0), rests(2), 1, 1.0),
    )
    least_us = LEAST_ALLOWED_US + EACH_ALLOWED_US
    assert quiet.allowed_us == least_us
    assert loud.allowed_us > least_us


def test_half_a_percent_of_a_long_bracket_is_allowed_for() -> None:
    late = rests(1, scatter_us=0.5, moved_us=150.0)  # the end was looked for every 200 µs
    assert read(late, rests(2, scatter_us=0.5), calls=10, call_ms=4.0).agree
    assert not read(late, rests(2, scatter_us=0.5), calls=10, call_ms=2.0).agree


def test_noise_of_the_submissions_side_alone_is_its_own() -> None:
    quiet = rests(2, brackets=100, scatter_us=10.0)
    forged = [rest + 9.6 * (number % 2) for number, rest in enumerate(rests(1, brackets=100, scatter_us=10.0))]
    assert read(forged, quiet, calls=16, call_ms=0.4).blurred


@pytest.mark.parametrize("scatter_us", [5.0, 50.0, 400.0])
def test_a_noisy_host_is_nobodys_forgery(scatter_us: float) -> None:
    for seed in range(300):
        user, baseline = (rests(each, brackets=10, scatter_us=scatter_us) for each in (seed, 1000 + seed))
        assert not read(user, baseline, calls=2, call_ms=0.2).blurred
