"""What the worker makes of what two players say: a player that computes on the CPU stands in for the process on the card."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelgate.stages import Limits, Tolerance
from kernelgate.verdicts import Verdict
from worker.gpu.arena import Arena, Layout
from worker.gpu.baselines import HeldBaseline
from worker.gpu.bench_client import Bench, BenchError, GoneError
from worker.gpu.draws import Draw, Draws
from worker.gpu.masking import KEY_BYTES, masked, new_key, tree_root
from worker.gpu.measurement import Measurement
from worker.gpu.player import Player, SubmissionPlayer
from worker.gpu.protocol import (
    Answer,
    Attend,
    Attending,
    Collect,
    Collected,
    Done,
    Ended,
    Loaded,
    LoadModule,
    Order,
    Ready,
    Stage,
    Staged,
    Start,
    TimedCall,
)
from worker.gpu.side import Side, timed_call
from worker.gpu.statistics import Ratio
from worker.judging.failures import Failure
from worker.recording.placement import Edge, place

WORDS, CALLS, REST_MS = 4096, 3, 0.2
TOLERANCE = Tolerance(absolute=1e-5, relative=1e-5)
READY = Ready("a card", 1 << 30, 13000, {"16": 132}, (9, 0), False, 1.98e9, 6.7e13, 4.8e12, 1, ())
Values = NDArray[np.float32]


@dataclass
class Card:
    """What a player shows. ms: what a call takes. events_ms: what the card's events say that it took; the same by default.

    forged_ms: what they say in every second bracket instead.
    compute: the outputs of a call. late: outputs that are written only after the clock has stopped.
    """

    ms: float
    events_ms: float | None = None
    forged_ms: float | None = None
    compute: Callable[[Values], Values] = lambda values: 2 * values
    late: bool = False
    changed: str = ""
    strayed: str = ""
    dies: bool = False
    fault: str = ""


@dataclass
class PlayerOnCpu:
    """The seam between worker and card, where this one stands in for a process with a CUDA context."""

    card: Card
    arena: Arena = field(default_factory=Arena)
    calls: tuple[TimedCall, ...] = ()
    answers: deque[tuple[Answer, bytes]] = field(default_factory=deque)
    inputs: list[Values] = field(default_factory=list)
    brackets: int = 0

    def ready(self) -> Ready:
        return READY

    def send(self, order: Order, payload: bytes = b"") -> None:
        match order:
            case Stage():
                self.answers.append((Staged(), b""))
            case Attend():
                self.answers.append((Attending(), b""))
            case Start():
                self.answers.append(self._played(payload))
            case Collect():
                self.answers.append((self._collected(), b""))
            case LoadModule():
                self.answers.append((Ended("fault", "load", self.card.fault) if self.card.fault else Loaded(), b""))

    def _played(self, keys: bytes) -> tuple[Answer, bytes]:
        self.brackets += 1
        roots = []
        for number, call in enumerate(self.calls):
            key = keys[number * KEY_BYTES : (number + 1) * KEY_BYTES]
            at = call.inputs["x"]
            (plain,) = masked([self.arena.bytes[at : at + 4 * WORDS]], key)
            output = self.card.compute(plain.view(np.float32)).astype(np.float32)
            self._write(call, output)
            roots.append(tree_root(np.zeros_like(output) if self.card.late else output))
        wobble = 1e-6 * (self.brackets * 7 % 11)
        taken_ms = CALLS * self.card.ms + REST_MS + wobble
        return Done(round(1e6 * taken_ms)), np.array(roots, np.uint64).tobytes()

    def _write(self, call: TimedCall, output: Values) -> None:
        at = call.outputs["out"]
        self.arena.bytes[at : at + output.nbytes] = output.view(np.uint8)

    def _collected(self) -> Collected:
        each = self.card.ms if self.card.events_ms is None else self.card.events_ms
        if self.card.forged_ms is not None and self.brackets % 2:
            each = self.card.forged_ms
        return Collected((each,) * CALLS, self.card.changed, self.card.strayed, 1980, 40, "")

    def await_at_once(self, within_s: float) -> None:
        del within_s
        time.sleep(0.004)  # longer than any bracket here: the player's own clock is the smaller one

    def receive(self, within_s: float, cancelled: Any = None) -> tuple[Answer, bytes]:
        del within_s, cancelled
        if self.card.dies:
            raise GoneError("the bench process ended (status -11)")
        return self.answers.popleft()


class FreshNumbers:
    """Draws of normal numbers."""

    def ahead(self, count: int) -> None:
        del count

    def wait(self) -> None: ...

    def drop(self) -> None: ...

    def take(self, count: int) -> list[Draw]:
        rng = np.random.default_rng()
        made = []
        for _ in range(count):
            key = new_key()
            made.append(Draw(key, masked([rng.standard_normal(WORDS).astype(np.float32)], key), {"": TOLERANCE}))
        return made


DRAWS = cast(Draws, FreshNumbers())


def unwatched(pairs: int, ratio: Ratio) -> None:
    del pairs, ratio


def side(card: Card, *, submission: bool) -> Side:
    bench = PlayerOnCpu(card)
    layout = Layout()
    buffers = [place({"x": 4 * WORDS, "out": 4 * WORDS}, frozenset({"out"}), Edge.END) for _ in range(CALLS)]
    bench.calls = tuple(timed_call(layout, each, 0, {"out": 4 * WORDS}) for each in buffers)
    stand_in = cast(Bench, bench)
    player = SubmissionPlayer(stand_in, Limits(), lambda: False) if submission else Player(stand_in)
    return Side(player, "timed", bench.calls, {"out": 4 * WORDS}, "profile")


def measured(user: Card, baseline: Card | None = None) -> tuple[float, Measurement]:
    """The speedup, after everything that is checked of a measurement."""
    sides = side(baseline or Card(0.6), submission=False), side(user, submission=True)
    run = Measurement(*sides, DRAWS, {"out": "float32"}, 1.0, unwatched)
    run.ahead()
    samples, ratio = run.run(None, 60.0)
    run.check()
    run.check_clock(samples.clock())
    assert ratio is not None
    return ratio.value, run


def failure(user: Card) -> Failure:
    with pytest.raises(Failure) as raised:
        measured(user)
    return raised.value


def test_an_honest_submission_has_its_ratio() -> None:
    speedup, _ = measured(Card(0.3))
    assert speedup == pytest.approx(2.0)


@pytest.mark.parametrize("events_ms", [0.03, 0.27, 0.33, 3.0])
def test_events_that_tell_another_time_than_the_host_break_the_contract(events_ms: float) -> None:
    found = failure(Card(0.3, events_ms=events_ms))
    assert (found.verdict, found.reason) == (Verdict.CONTRACT_VIOLATION, "clock_moved")
    assert "than the host's clock explains" in found.message


def test_events_that_are_forged_at_random_are_no_noise_of_ours() -> None:
    found = failure(Card(0.3, forged_ms=0.003))
    assert (found.verdict, found.reason) == (Verdict.CONTRACT_VIOLATION, "clock_moved")


@pytest.mark.parametrize("events_ms", [0.0, -1.0, float("nan"), float("inf")])
def test_no_time_at_all_is_no_speed(events_ms: float) -> None:
    found = failure(Card(0.3, events_ms=events_ms))
    assert (found.verdict, found.reason) == (Verdict.CONTRACT_VIOLATION, "clock_moved")


def test_three_microseconds_are_noise_and_ten_are_not() -> None:
    speedup, _ = measured(Card(0.3, events_ms=0.297))
    assert speedup == pytest.approx(0.6 / 0.297)
    assert failure(Card(0.3, events_ms=0.29)).reason == "clock_moved"


def test_outputs_that_come_after_the_clock_has_stopped_break_the_contract() -> None:
    found = failure(Card(0.3, late=True))
    assert (found.verdict, found.reason) == (Verdict.CONTRACT_VIOLATION, "clock_moved")
    assert "still written" in found.message


def test_answers_that_were_right_for_another_input_are_wrong_when_timed() -> None:
    kept: list[Values] = []

    def remembered(values: Values) -> Values:
        kept.append(2 * values)
        return kept[0]

    found = failure(Card(0.3, compute=remembered))
    assert (found.verdict, found.reason) == (Verdict.WRONG_ANSWER, "wrong_when_timed")


def test_nan_is_wrong_when_timed() -> None:
    assert failure(Card(0.3, compute=lambda values: np.full_like(values, np.nan))).reason == "wrong_when_timed"


def test_two_right_answers_may_differ_by_twice_the_tolerance() -> None:
    measured(Card(0.3, compute=lambda values: 2 * values + np.float32(1.5e-5)))
    assert failure(Card(0.3, compute=lambda values: 2 * values + np.float32(6e-5))).reason == "wrong_when_timed"


def test_a_changed_input_and_a_stray_write_are_told_as_in_judged_runs() -> None:
    assert failure(Card(0.3, changed="x")).reason == "inputs_changed"
    assert failure(Card(0.3, strayed="out")).reason == "illegal_address"


def test_a_player_that_dies_with_a_submission_is_the_submissions_doing() -> None:
    found = failure(Card(0.3, dies=True))
    assert (found.verdict, found.reason) == (Verdict.RUNTIME_ERROR, "driver_crashed")


def test_a_baseline_that_dies_is_ours() -> None:
    with pytest.raises(BenchError):
        measured(Card(0.3), Card(0.6, dies=True))


@pytest.mark.parametrize(
    ("name", "ours"), [("CUDA_ERROR_NO_BINARY_FOR_GPU", False), ("CUDA_ERROR_ECC_UNCORRECTABLE", True)]
)
def test_who_is_to_blame_for_what_the_driver_refuses(name: str, ours: bool) -> None:
    player = side(Card(0.3, fault=name), submission=True).player
    with pytest.raises(BenchError if ours else Failure):
        player.ask(LoadModule(), Loaded, b"an image")


def held(card: Card, alone_ms: float) -> HeldBaseline:
    return HeldBaseline(side(card, submission=False), DRAWS, {}, 1.0, alone_ms)


def test_a_baseline_that_something_slowed_down_breaks_the_contract() -> None:
    baseline = held(Card(0.6), 0.6)
    assert not baseline.slowed(0.61)
    assert baseline.slowed(0.7)
    with pytest.raises(Failure) as raised:
        baseline.check_alone(0.7)
    assert (raised.value.verdict, raised.value.reason) == (Verdict.CONTRACT_VIOLATION, "clock_moved")


def test_a_card_that_became_slower_is_nobodys_fault() -> None:
    baseline = held(Card(0.7), 0.6)
    assert baseline.slowed(0.7)
    baseline.check_alone(0.7)
    assert baseline.alone_ms == pytest.approx(0.7)


def test_a_bracket_goes_first_on_either_side_as_often() -> None:
    order: list[str] = []
    sides = {"baseline": side(Card(0.6), submission=False), "user": side(Card(0.3), submission=True)}
    for name, each in sides.items():
        bench = cast(PlayerOnCpu, each.player.bench)
        played = bench._played

        def noted(keys: bytes, name: str = name, played: Any = played) -> Any:
            order.append(name)
            return played(keys)

        bench._played = noted  # type: ignore[method-assign]
    run = Measurement(sides["baseline"], sides["user"], DRAWS, {"out": "float32"}, 1.0, unwatched)
    run.run(None, 60.0)
    firsts: Sequence[str] = order[::2]
    assert abs(firsts.count("user") - firsts.count("baseline")) <= 2
