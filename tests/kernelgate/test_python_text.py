"""Reading Python's text on several threads."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import pytest

from kernelgate import python_text


class Waiting:
    """Garbage that lets other threads run when it is collected, wherever that happens."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sleep(0)


@pytest.fixture
def switching() -> Iterator[None]:
    """Threads that are switched, and garbage that is collected, as often as can be."""
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(1)
    yield
    gc.set_threshold(*thresholds)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("switching")
def test_threads_read_side_by_side() -> None:
    def read(thread: int) -> None:
        for number in range(1000):
            _ = [Waiting() for _ in range(3)]
            python_text.expression(f"(a{thread} * {number}) + 1")
            python_text.module(f"def f(a):\n    return (a, {number})")

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(read, range(6)))


def test_a_literal_is_its_value_and_a_call_is_none() -> None:
    assert python_text.literal(" [[1, -2.5], [3, 4]]") == [[1, -2.5], [3, 4]]
    with pytest.raises(ValueError, match="malformed"):
        python_text.literal("open('x')")
