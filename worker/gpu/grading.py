"""One submission on a card, whatever language its kernels were written in: its player, one run of a case, one measured
case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgate.protocol import Timing
from kernelgate.stages import Case
from kernelgate.verdicts import Phase
from worker.gpu import lock
from worker.gpu.baselines import HeldBaseline
from worker.gpu.bench_client import Bench, BenchError
from worker.gpu.floor import Card, floor_ms, impossible
from worker.gpu.measurement import Measurement, Samples
from worker.gpu.outcome import Call, Peaks, clocks, conditions, throughput
from worker.gpu.player import GRACE_S, SubmissionPlayer
from worker.gpu.protocol import Buffers, CaseResult, Held, Hold, Loaded, LoadModule, Ready, RunCase, TimedCall
from worker.gpu.side import Side
from worker.gpu.statistics import Ratio, middle
from worker.judging.device_faults import check_memory, check_printed
from worker.judging.job import Job
from worker.recording.compile import architecture
from worker.recording.native import guard_image

MEASURE_S = 6.0
MULTIPROCESSORS = "16"
"""CUDA's number of the attribute."""


@dataclass(frozen=True)
class UserCalls:
    """What a submission's side plays: its calls with their tapes, and bytes and dtype of each output."""

    calls: tuple[TimedCall, ...]
    tapes: bytes
    sizes: Mapping[str, int]
    dtypes: Mapping[str, str]


@dataclass
class CardGrading:
    """The player that holds a submission. occupancy: by kernel, 0 to 1; peak: bytes of device memory, by case."""

    job: Job
    bench: Bench
    card: Ready
    occupancy: dict[str, float] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def __post_init__(self) -> None:
        self.limits = self.job.stage.spec.limits
        self.player = SubmissionPlayer(self.bench, self.limits, self.job.cancelled)
        version = self.card.driver
        self.job.machine = {"gpu": self.card.name, "driver": f"CUDA {version // 1000}.{version % 1000 // 10}"}

    def load(self, image: bytes, prefix: str = "", case: str | None = None) -> None:
        """Loads a cubin of the submission's."""
        self.player.ask(LoadModule(prefix), Loaded, image, GRACE_S, case)

    def run(self, case: str, order: RunCase, payload: bytes) -> tuple[CaseResult, bytes]:
        """Runs a case once; what was written, buffer by buffer. Raises Failure for what it touched besides its outputs."""
        result, written = self.player.ask(order, CaseResult, payload, self.limits.case_s + GRACE_S, case)
        check_memory(case, result.changed, result.strayed)
        check_printed(case, result.printed, self.limits.output_kb)
        self.occupancy.update(result.occupancy)
        self.peak[case] = max(result.peak, self.peak.get(case, 0))
        return result, written

    def order(self, buffers: Buffers, tape: bytes) -> RunCase:
        return RunCase(buffers, len(tape), self.limits.case_s)

    def measure(self, case: Case, baseline: HeldBaseline, user: UserCalls, gate: float | None) -> Timing:
        """Times a case against its baseline. Raises Failure where what was timed is wrong or a clock was moved."""
        if self.closed:
            raise BenchError("the card changed its speed while it measured; the submission has to be graded again")
        progress = self.job.phases.progress
        side = Side(self.player, case.name, user.calls, user.sizes, case.name)

        def watch(calls: int, ratio: Ratio) -> None:
            progress.measured(calls, ratio.value, ratio.low, ratio.high)

        run = Measurement(baseline.side, side, baseline.draws, user.dtypes, self.limits.case_s, watch)
        run.ahead()
        with lock.exclusive(), self.job.phases.during(Phase.MEASURE):
            self.player.ask(LoadModule(trusted=True), Loaded, guard_image(architecture(*self.card.capability)))
            self.player.ask(Hold(case.name, user.calls, self.limits.case_s), Held, user.tapes, GRACE_S, case.name)
            samples, ratio = run.run(gate, MEASURE_S)
            if ratio is not None and baseline.slowed(middle(samples.baseline)):
                self.close()
                baseline.check_alone(middle(samples.baseline))
        baseline.draws.drop()
        run.check()
        if ratio is None:
            raise BenchError(f"all {samples.dropped} samples were taken while the card was slowed down")
        return self._timing(case, baseline, user, run, samples, ratio, gate)

    def _timing(
        self,
        case: Case,
        baseline: HeldBaseline,
        user: UserCalls,
        run: Measurement,
        samples: Samples,
        ratio: Ratio,
        gate: float | None,
    ) -> Timing:
        """What was measured, as a result holds it. Raises Failure where a clock was moved."""
        reading = samples.clock()
        user_ms = middle(samples.user)
        run.check_clock(reading)
        read = sum(buffer.size for buffer in user.calls[0].buffers.values() if buffer.given)
        self.job.held = self.job.held or self._held_back(case, user_ms, read)
        call = Call(self.job.grader.work(case), read + sum(user.sizes.values()))
        return Timing(
            baseline_ms=middle(samples.baseline),
            user_ms=user_ms,
            speedup=ratio.value,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            gate=gate,
            baseline_samples_ms=tuple(samples.baseline),
            user_samples_ms=tuple(samples.user),
            facts={
                **conditions(samples),
                **clocks(samples, reading, baseline.alone_ms),
                **throughput(call, user_ms, self._peaks(case)),
                **baseline.facts,
            },
        )

    def _peaks(self, case: Case) -> Peaks:
        """No peak of arithmetic for 16-bit operands: tensor cores compute those, and the driver does not say how fast they
        are.
        """
        return Peaks(self.card.fp32_peak if case.dtype == "float32" else 0.0, self.card.bandwidth_peak)

    def _held_back(self, case: Case, user_ms: float, read: int) -> str:
        """Why the time is below what the card can do, or ''. Outputs may be in the cache still; inputs were swept out of
        it.
        """
        major, minor = self.card.capability
        multiprocessors = int(self.card.attributes[MULTIPROCESSORS])
        card = Card(10 * major + minor, multiprocessors, self.card.clock_hz, self.card.bandwidth_peak)
        return impossible(user_ms, floor_ms(card, case.dtype, self.job.grader.work(case), read))

    def close(self) -> None:
        """Ends the player, and with it everything of the submission's on the card."""
        self.bench.close()
        self.closed = True
