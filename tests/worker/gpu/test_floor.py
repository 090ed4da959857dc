"""Below which time no call can be, and which honest times lie above it."""

from __future__ import annotations

import pytest

from worker.gpu.floor import Card, floor_ms, impossible

H200 = Card(capability=90, multiprocessors=132, clock_hz=1.98e9, bandwidth=4.917e12)
ATTENTION_FLOPS, QKV_BYTES = 4_296_015_872.0, 2048 * 768 * 4


def test_the_floor_is_the_fastest_pipe_or_the_memory() -> None:
    computing = floor_ms(H200, "float32", ATTENTION_FLOPS, QKV_BYTES)
    assert computing == pytest.approx(0.95e3 * ATTENTION_FLOPS / (2048 * 132 * 1.98e9))
    assert floor_ms(H200, "float16", ATTENTION_FLOPS, QKV_BYTES) == pytest.approx(computing / 2)
    assert floor_ms(H200, "float32", 0.0, 1 << 30) == pytest.approx(0.95e3 * (1 << 30) / 4.917e12)


def test_times_measured_on_that_card_are_possible() -> None:
    assert impossible(0.1515, floor_ms(H200, "float32", ATTENTION_FLOPS, QKV_BYTES)) == ""


def test_a_time_below_says_why_it_is_held_back() -> None:
    why = impossible(0.001, floor_ms(H200, "float32", ATTENTION_FLOPS, QKV_BYTES))
    assert "0.00100 ms" in why
    assert "administrator" in why


def test_what_is_not_known_holds_nothing_back() -> None:
    assert floor_ms(H200, "int32", 1e15, 0) == 0.0
    assert floor_ms(Card(90, 132, 1.98e9, 0.0), "float32", 0.0, 1 << 30) == 0.0
    unknown = Card(capability=130, multiprocessors=200, clock_hz=3e9, bandwidth=0.0)
    assert floor_ms(unknown, "float32", 1e12, 0) < floor_ms(Card(100, 200, 3e9, 0.0), "float32", 1e12, 0)
