"""The measurement: baseline and submission in turn, on input that did not exist a moment before.

Theory of operation. One pair is one fresh input. It is uploaded only after every earlier piece of submitted work has ended, so
nothing could be computed ahead; outputs are poisoned with NaN before each timed call; the L2 cache is flushed before each timed
call; and whenever submitted code runs, no correct output of this input is in device memory: the baseline's is wiped first and
computed again afterwards, untimed, to compare with. The order within a pair alternates (ABBA). Every timed output is checked,
and so is the input, which must be as it was.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from kernelgate.stages import Tolerance
from worker.bench.clocks import Clocks, Reading
from worker.bench.driver import Events, check, settle
from worker.bench.memory import POISON, Mapped
from worker.bench.replay import Replay
from worker.bench.statistics import Ratio, enough, ratio
from worker.recording.placement import WORKSPACE

WARM_UP = 3
MOST_PAIRS = 200
ASK_EVERY = 5

Arrays = dict[str, NDArray[Any]]


class WrongWhenTimedError(RuntimeError):
    """A timed call whose output or input is not right; the text says which and how."""


@dataclass
class Samples:
    """Milliseconds of the kept pairs, and what was seen of the card."""

    baseline: list[float] = field(default_factory=list)
    user: list[float] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    dropped: int = 0


@dataclass
class Bout:
    """Everything one measurement works with. `fresh` draws an input; buffers are mapped; graphs are instantiated."""

    stream: Any
    baseline: Replay
    user: Replay
    inputs: dict[str, Mapped]
    baseline_outputs: dict[str, Mapped]
    user_outputs: dict[str, Mapped]
    fresh: Callable[[np.random.Generator], Arrays]
    tolerance: Tolerance
    clocks: Clocks
    call_s: float
    ahead: bool = False
    """Whether the next input may be drawn, in host memory, while this one is timed: not where the device could read it."""
    values: Callable[[NDArray[np.float32]], NDArray[Any]] = lambda words: words
    """The numbers in a buffer's words: by default they are float32 themselves."""

    def __post_init__(self) -> None:
        size = 4 * int(check(cu.cuDeviceGetAttribute(cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0)))
        self.sweep_size = max(size, 64 << 20)
        self.sweep = check(cu.cuMemAlloc(self.sweep_size))
        self.events = Events(self.stream)
        self.rng = np.random.default_rng(secrets.randbits(128))
        self._drawer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="input") if self.ahead else None
        self._drawn: Future[Arrays] | None = None

    def _draw(self) -> Arrays:
        if self._drawer is None:
            return self.fresh(self.rng)
        drawn = self._drawn or self._drawer.submit(self.fresh, self.rng)
        values = drawn.result()
        self._drawn = self._drawer.submit(self.fresh, self.rng)
        return values

    def timed(self, replay: Replay, outputs: dict[str, Mapped]) -> float:
        """Milliseconds of one replay, on a swept cache and into poisoned outputs.

        The device is idle before the sweep starts. The clock starts behind the sweep, on the device: by the time it is over,
        the replay is queued, so the host's way of launching is no part of what is measured.
        """
        for output in outputs.values():
            output.fill(POISON)
        settle()
        check(cu.cuMemsetD32Async(self.sweep, 0, self.sweep_size // 4, self.stream))
        self.events.begin()
        replay.launch(self.stream)
        ms = self.events.finish(self.call_s)
        settle()
        return ms

    def pair(self, user_first: bool) -> tuple[float, float]:
        """One fresh input, both sides timed, everything checked: (baseline ms, user ms)."""
        values = self._draw()
        for name, mapped in self.inputs.items():
            mapped.write(values[name])
        if user_first:
            user_ms = self.timed(self.user, self.user_outputs)
            changed = self._changed(values)
            baseline_ms = self.timed(self.baseline, self.baseline_outputs)
        else:
            baseline_ms = self.timed(self.baseline, self.baseline_outputs)
            for output in self.baseline_outputs.values():
                output.fill(POISON)
            user_ms = self.timed(self.user, self.user_outputs)
            changed = self._changed(values)
            self.baseline.launch(self.stream)
        settle()
        if changed:
            raise WrongWhenTimedError(f"the input {changed} was changed")
        self._compare()
        return baseline_ms, user_ms

    def _changed(self, values: Arrays) -> str | None:
        for name, mapped in self.inputs.items():
            if not np.array_equal(mapped.read().view(np.uint32), values[name].reshape(-1).view(np.uint32)):
                return name
        return None

    def _compare(self) -> None:
        for name, mapped in self.user_outputs.items():
            if name == WORKSPACE:
                continue  # filled anew before every timed call like an output, and judged like none
            got, want = self.values(mapped.read()), self.values(self.baseline_outputs[name].read())
            with np.errstate(all="ignore"):
                right = np.abs(got - want) <= self.tolerance.absolute + self.tolerance.relative * np.abs(want)
            if not right.all():
                first = int(np.argmin(right))
                raise WrongWhenTimedError(
                    f"{int((~right).sum())} of {right.size} values of {name} are wrong, the first at {first}: "
                    f"{got[first]:.9g}, not {want[first]:.9g}"
                )

    def run(self, gate: float | None, within_s: float) -> Iterator[tuple[Samples, Ratio | None]]:
        """Measures until it is enough; yields now and then. The last thing yielded is the result."""
        samples = Samples()
        for round_ in range(WARM_UP):
            self.pair(bool(round_ % 2))
        deadline = time.monotonic() + within_s
        judge = np.random.default_rng(0)
        for round_ in range(MOST_PAIRS):
            baseline_ms, user_ms = self.pair(round_ % 4 in (1, 2))
            reading = self.clocks.read()
            if reading.slowed:
                samples.dropped += 1
            else:
                samples.baseline.append(baseline_ms)
                samples.user.append(user_ms)
                samples.readings.append(reading)
            late = time.monotonic() > deadline and len(samples.user) >= 2
            if late or (samples.user and round_ % ASK_EVERY == ASK_EVERY - 1):
                found = ratio(np.array(samples.baseline), np.array(samples.user), judge)
                yield samples, found
                if late or enough(found, len(samples.user), gate):
                    return
        if not samples.user:
            yield samples, None

    def close(self) -> None:
        if self._drawer is not None:
            self._drawer.shutdown()
        check(cu.cuMemFree(self.sweep))
