"""Timed inputs, each drawn by itself from the stage's mixture of distributions, ahead of time and in the worker's memory
alone.

No input is used twice, and nothing of one can be known from another: what a submission keeps of a call is of no use in the
next.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelgate.stages import Case, Tolerance
from worker.gpu.masking import masked, new_key
from worker.judging.grader import Grader

_THREADS = ThreadPoolExecutor(
    max_workers=max(1, min(6, len(os.sched_getaffinity(0)) // 2)), thread_name_prefix="timed-input"
)


@dataclass(frozen=True)
class Draw:
    """One timed input. masked: the bytes of each array under the key's stream, in the order of the names that were asked for.

    tolerances: by what the seam writes, of the distribution it was drawn from; "" for whatever else it writes.
    """

    key: bytes
    masked: list[NDArray[np.uint8]]
    tolerances: Mapping[str, Tolerance]


class Draws:
    """Inputs of one measured case, some of them drawn ahead. names: the arrays that a call is given, in their order."""

    def __init__(self, grader: Grader, case: Case, names: tuple[str, ...]) -> None:
        self.grader, self.case, self.names = grader, case, names
        self._waiting: deque[Future[Draw]] = deque()

    def ahead(self, count: int) -> None:
        """Sees to it that `count` inputs are drawn or being drawn."""
        while len(self._waiting) < count:
            self._waiting.append(_THREADS.submit(self._draw))

    def wait(self) -> None:
        """Returns when everything that was asked for ahead is there."""
        for waiting in self._waiting:
            waiting.result()

    def take(self, count: int) -> list[Draw]:
        self.ahead(count)
        return [self._waiting.popleft().result() for _ in range(count)]

    def drop(self) -> None:
        """Nothing more is needed."""
        for waiting in self._waiting:
            waiting.cancel()
        self._waiting.clear()

    def _draw(self) -> Draw:
        rng = np.random.default_rng(secrets.randbits(128))
        case = self.grader.timed(self.case, rng)
        inputs = self.grader.made(case, rng)
        key = new_key()
        return Draw(key, masked([inputs[name] for name in self.names], key), _tolerances(self.grader, case))


def _tolerances(grader: Grader, case: Case) -> dict[str, Tolerance]:
    return {**grader.tolerances(case), "": grader.loosest(case, "")}
