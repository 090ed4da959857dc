"""Players of baselines. One never holds submitted code, serves one stage for as long as the worker lives, and knows what its
calls take while no submission is anywhere near.
"""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil

from kernelgate.reasons import Reason
from kernelgate.stages import Case, Stage
from worker.gpu import lock
from worker.gpu.bench_client import Bench
from worker.gpu.draws import Draws
from worker.gpu.player import Player
from worker.gpu.protocol import Loaded, LoadModule, TimeAlone, Timed
from worker.gpu.side import Side
from worker.gpu.statistics import middle
from worker.judging.failures import Failure
from worker.recording.native import guard_image

MOST_PLAYERS = 3
BRACKET_MS, MOST_CALLS, MOST_BYTES = 2.5, 16, 64 << 20
"""A bracket has as many calls as take the baseline about so long: what the host's clock cannot tell is then little of
each. But not so many that the card waits for their inputs and outputs, which cross the bus for each.
"""
ALONE = 10
TOLERATED, AGREED = 0.03, 0.015
"""Beside a submission a baseline may be so much slower than it was alone; beyond that it is timed alone again, and has to
agree.
"""
EVENTS_MS = 0.002
"""And by so much in any case: events tell microseconds, not parts of them."""
Facts = Mapping[str, str | float]
Hold = Callable[[Player, str, int], tuple[Side, Facts]]
"""Makes a player hold so many calls under a name."""


@dataclass
class HeldBaseline:
    """A baseline's side of one case. alone_ms: the middle mean of its calls, timed with the card held alone."""

    side: Side
    draws: Draws
    facts: Facts
    within_s: float
    alone_ms: float = 0.0

    @property
    def calls(self) -> int:
        return len(self.side.calls)

    def ahead(self) -> None:
        """Draws what `time_alone` plays, and waits until it is there."""
        self.draws.ahead(ALONE * self.calls)
        self.draws.wait()

    def time_alone(self) -> float:
        """The middle mean of its calls in milliseconds, by events. The caller holds the card alone, and no submission's
        player is there.
        """
        samples: list[float] = []
        for _ in range(ALONE):
            draws = self.draws.take(self.calls)
            self.side.stage(draws)
            self.side.staged()
            self.side.play(b"".join(draw.key for draw in draws), self.within_s * self.calls)
            self.side.collect()
            samples += self.side.collected().ms
        self.draws.drop()
        return middle(samples)

    def slowed(self, measured_ms: float) -> bool:
        """Whether the baseline was slower beside the submission than it is by itself, as far as is known already."""
        if measured_ms < self.alone_ms:
            self.alone_ms = measured_ms
        return measured_ms > (1 + TOLERATED) * self.alone_ms + EVENTS_MS

    def check_alone(self, measured_ms: float) -> None:
        """To be asked when `slowed`, after the submission's player has been closed. Raises Failure unless the card is slower
        now.
        """
        self.ahead()
        self.alone_ms = self.time_alone()
        if measured_ms > (1 + AGREED) * self.alone_ms + EVENTS_MS:
            case = self.side.case
            message = (
                f"Case {case}: beside the submission the baseline took {measured_ms:.4f} ms, by itself {self.alone_ms:.4f} ms: "
                "something of the submission's ran while the baseline was timed."
            )
            raise Failure(Reason.CLOCK_MOVED, message, case=case)


class BaselinePlayer:
    """One stage's baseline on this host's card. target: the architecture. options: of the player's process."""

    def __init__(self, target: str, *options: str) -> None:
        self.player = Player(Bench(options=options))
        self.held: dict[str, HeldBaseline] = {}
        self.player.bench.ready()
        self.player.ask(LoadModule(trusted=True), Loaded, guard_image(target))

    def hold(self, case: Case, hold: Hold, draws: Draws, within_s: float) -> HeldBaseline:
        """The case's baseline; held and timed alone when it is asked for the first time. Raises BenchError."""
        if case.name not in self.held:
            side, facts = hold(self.player, case.name, self._calls(case, hold))
            made = HeldBaseline(side, draws, facts, within_s)
            made.ahead()
            with lock.exclusive():
                made.alone_ms = made.time_alone()
            self.held[case.name] = made
        return self.held[case.name]

    def _calls(self, case: Case, hold: Hold) -> int:
        """How many calls make a bracket."""
        side, _ = hold(self.player, f"{case.name}, once", 1)
        with lock.exclusive():
            timed, _ = self.player.ask(TimeAlone(side.name, 5), Timed, within_s=60.0)
        moved = sum(buffer.size for buffer in side.calls[0].buffers.values())
        return max(1, min(MOST_CALLS, ceil(BRACKET_MS / middle(timed.ms)), MOST_BYTES // moved))

    def close(self) -> None:
        self.player.bench.close()


class BaselinePlayers:
    """The players of the stages that were graded last. Those of others are closed: each holds memory of the card."""

    def __init__(self) -> None:
        self._players: OrderedDict[str, BaselinePlayer] = OrderedDict()

    def get(self, stage: Stage, make: Callable[[], BaselinePlayer]) -> BaselinePlayer:
        """The stage's player, made where there is none. Raises BenchError."""
        player = self._players.pop(stage.hash, None) or make()
        self._players[stage.hash] = player
        while len(self._players) > MOST_PLAYERS:
            self._players.popitem(last=False)[1].close()
        return player

    def drop(self, stage: Stage) -> None:
        """Closes a stage's player, which failed."""
        player = self._players.pop(stage.hash, None)
        if player is not None:
            player.close()

    def close(self) -> None:
        while self._players:
            self._players.popitem()[1].close()


baselines = BaselinePlayers()
atexit.register(baselines.close)
