"""The measurement: baseline and submission in turn, each in a process and a context of its own, on the same fresh inputs.

Theory of operation. A *bracket* is a few calls that follow each other, each on an input of its own, which was drawn from the
stage's whole mixture of distributions and which the device gets masked, with the key in the order to start. A *pair* is one
bracket on each side with the same inputs; which goes first alternates (ABBA). What the submission's context holds is not
believed:

- events give the precision, this process's clock gives the bound (clock.py): from the key's leaving until the root of the
  hash tree over the outputs is here. What comes after the key and before the root took that long, whatever device code did
  to events or to the driver's marks of completion. The outputs that are fetched afterwards must have that root;
- the baseline's player never holds submitted code, and its times must be those that it shows alone;
- outputs are compared with the baseline's, here, after the card was let go.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from kernelgate.reasons import Reason
from kernelgate.stages import Tolerance
from worker.gpu import clock
from worker.gpu.bench_client import BenchError
from worker.gpu.draws import Draw, Draws
from worker.gpu.masking import tree_root
from worker.gpu.side import Bracketed, Bytes, Side
from worker.gpu.statistics import Ratio, enough, middle, ratio
from worker.judging.arrays import ITEM_SIZE, Float64, RawTensor
from worker.judging.device_faults import input_changed, stray_write
from worker.judging.failures import Failure

WARM_UP = 2
LEAST_PAIRS, LEAST_CALLS, MOST_PAIRS = 16, 20, 100
ASK_EVERY = 5
KEPT_OUTPUTS = 2 << 30
"""Bytes of outputs that wait for being compared; beyond them they are compared while the card is held."""
_THREADS = ThreadPoolExecutor(max_workers=4, thread_name_prefix="timed-output")
Watch = Callable[[int, Ratio], None]


@dataclass
class Pair:
    """One pair of brackets and everything that it left."""

    draws: list[Draw]
    baseline: Bracketed
    user: Bracketed
    want: list[dict[str, Bytes]]
    got: list[dict[str, Bytes]]

    def size(self) -> int:
        return sum(data.size for outputs in (*self.want, *self.got) for data in outputs.values())


@dataclass
class Samples:
    """Milliseconds of a call, on the mean of each bracket of the kept pairs, by events; and what the host saw besides them.

    Means, not single calls: a submission may do a later call's work in an earlier one, as long as it does it.
    """

    baseline: list[float] = field(default_factory=list)
    user: list[float] = field(default_factory=list)
    baseline_rest: list[float] = field(default_factory=list)
    user_rest: list[float] = field(default_factory=list)
    sm_mhz: list[int] = field(default_factory=list)
    celsius: int = 0
    dropped: int = 0
    calls: int = 1

    @property
    def pairs(self) -> int:
        return len(self.user_rest)

    def take(self, pair: Pair) -> None:
        """Keeps a pair, unless the card was slowed down while it was played."""
        if pair.user.collected.slowed or pair.baseline.collected.slowed:
            self.dropped += 1
            return
        self.calls = len(pair.user.ms)
        self.baseline.append(statistics.fmean(pair.baseline.ms))
        self.user.append(statistics.fmean(pair.user.ms))
        self.baseline_rest.append(pair.baseline.host_ms - sum(pair.baseline.ms))
        self.user_rest.append(pair.user.host_ms - sum(pair.user.ms))
        self.sm_mhz += [pair.user.collected.sm_mhz, pair.baseline.collected.sm_mhz]
        self.celsius = max(self.celsius, pair.user.collected.celsius)

    def clock(self) -> clock.ClockReading:
        return clock.read(self.user_rest, self.baseline_rest, self.calls, middle(self.user))


class Measurement:
    """One measured case. dtypes: of the outputs, by name. watch: sees the interval converge. within_s: of one call."""

    def __init__(
        self, baseline: Side, user: Side, draws: Draws, dtypes: Mapping[str, str], within_s: float, watch: Watch
    ) -> None:
        self.baseline, self.user, self.draws = baseline, user, draws
        self.dtypes, self.within_s, self.watch = dtypes, within_s, watch
        self.case = user.case
        self.calls = len(user.calls)
        self.least = max(LEAST_PAIRS, -(-LEAST_CALLS // self.calls))
        """Pairs that count at least."""
        self.waiting: list[Pair] = []

    def ahead(self) -> None:
        """Draws the inputs of a measurement that needs no more pairs than it must, and waits until they are there."""
        self.draws.ahead((WARM_UP + self.least) * self.calls)
        self.draws.wait()

    def run(self, gate: float | None, most_s: float) -> tuple[Samples, Ratio | None]:
        """Plays pairs until it is enough. The card has to be held alone meanwhile. Raises Failure, BenchError and
        Cancelled.
        """
        samples = Samples()
        result: Ratio | None = None
        for result in self._pairs(samples, gate, most_s):
            if result is not None:
                self.watch(samples.pairs, result)
        return samples, result

    def _pairs(self, samples: Samples, gate: float | None, most_s: float) -> Iterator[Ratio | None]:
        for number in range(WARM_UP):
            self._keep(self._pair(bool(number % 2)))
        deadline = time.monotonic() + most_s
        judge = np.random.default_rng(0)
        for number in range(MOST_PAIRS):
            pair = self._pair(number % 4 in (1, 2))
            samples.take(pair)
            self._keep(pair)
            late = time.monotonic() > deadline and samples.pairs >= 2
            if late or (samples.pairs and number % ASK_EVERY == ASK_EVERY - 1):
                result = ratio(np.array(samples.baseline), np.array(samples.user), judge)
                yield result
                sharp = samples.clock().sharp
                if late or (samples.pairs >= self.least and sharp and enough(result, gate)):
                    return

    def _pair(self, user_first: bool) -> Pair:
        draws = self.draws.take(self.calls)
        keys = b"".join(draw.key for draw in draws)
        sides = (self.user, self.baseline) if user_first else (self.baseline, self.user)
        for side in sides:
            side.stage(draws)
        for side in sides:
            side.staged()
        for side in sides:
            side.play(keys, self.within_s * self.calls)
        for side in sides:
            side.collect()
        user, baseline = self.user.collected(), self.baseline.collected()
        if not all(0 < ms < math.inf for ms in user.ms):
            raise _moved(self.case, "by the card's events a call took no time, or less")
        if user.collected.changed:
            raise input_changed(self.case, user.collected.changed)
        if user.collected.strayed:
            raise stray_write(self.case, user.collected.strayed)
        return Pair(draws, baseline, user, self.baseline.outputs(), self.user.outputs())

    def _keep(self, pair: Pair) -> None:
        self.waiting.append(pair)
        if sum(each.size() for each in self.waiting) > KEPT_OUTPUTS:
            self.check()

    def check(self) -> None:
        """Compares every output that waits for it. Raises Failure for one that is wrong, or that came after the clock."""
        waiting, self.waiting = self.waiting, []
        for failure in _THREADS.map(self._wrong, waiting):
            if failure is not None:
                raise failure

    def _wrong(self, pair: Pair) -> Failure | None:
        roots = iter(pair.user.roots)
        for draw, want, got in zip(pair.draws, pair.want, pair.got, strict=True):
            for name, data in got.items():
                if tree_root(data) != next(roots):
                    what = f"{name} was still written when its call had ended by the card's own marks"
                    return _moved(self.case, what)
                wrong = difference(
                    name, self.dtypes[name], data, want[name], draw.tolerances.get(name) or draw.tolerances[""]
                )
                if wrong is not None:
                    message = (
                        f"Case {self.case}: right when it was judged, wrong when it was timed on new input: {wrong}."
                    )
                    return Failure(Reason.WRONG_WHEN_TIMED, message, case=self.case)
        return None

    def check_clock(self, reading: clock.ClockReading) -> None:
        """Raises Failure where the card's events tell another story than the host's clock, BenchError where that tells none."""
        off = f"±{reading.allowed_us / reading.calls:.1f} µs"
        if not reading.agree:
            what = (
                f"by the card's events a call took {abs(reading.moved_us):.1f} µs {'less' if reading.moved_us > 0 else 'more'} "
                f"than the host's clock explains ({off})"
            )
            raise _moved(self.case, what)
        if reading.blurred:
            what = (
                f"by the card's events its calls took times that the host's clock does not know ({off}, the baseline's "
                f"±{reading.quiet_us / reading.calls:.1f} µs)"
            )
            raise _moved(self.case, what)
        if not reading.sharp:
            what = f"{off} on a call of {1e3 * reading.call_ms:.0f} µs"
            raise BenchError(f"the host's clock was too noisy to bound the measurement ({what})")


def _moved(case: str, what: str) -> Failure:
    message = f"Case {case}: {what}. Times that device code can change do not count."
    return Failure(Reason.CLOCK_MOVED, message, case=case)


def difference(name: str, dtype: str, got: Bytes, want: Bytes, tolerance: Tolerance) -> str | None:
    """How two right answers differ by more than both may be off, or None. NaN is never right."""
    one, other = _numbers(dtype, got), _numbers(dtype, want)
    with np.errstate(all="ignore"):
        error, allowed = np.abs(one - other), 2 * (tolerance.absolute + tolerance.relative * np.abs(other))
    right = error <= allowed
    if np.count_nonzero(~right) <= (1 - tolerance.share) * right.size:
        right = error <= tolerance.cap * allowed
    if right.all():
        return None
    first = int(np.argmin(right))
    return (
        f"{int((~right).sum())} of {right.size} values of {name} are wrong, the first at {first}: "
        f"{one[first]:.9g}, not {other[first]:.9g}"
    )


def _numbers(dtype: str, data: Bytes) -> Float64:
    size = len(data) // ITEM_SIZE[dtype]
    return RawTensor(dtype, (size,), data.tobytes()).numbers()
