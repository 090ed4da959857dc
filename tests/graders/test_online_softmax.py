"""`online_softmax` keeps every promise it ships with."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.timeout(900)
def test_every_promise_holds(failures: Callable[[str], list[str]]) -> None:
    assert failures("online_softmax") == []
