"""One of the two sides of a measurement, as the worker sees it: a player that holds a bracket of calls."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from worker.gpu import priority
from worker.gpu.arena import Layout
from worker.gpu.draws import Draw
from worker.gpu.player import GRACE_S, Player
from worker.gpu.protocol import Attend, Attending, Collect, Collected, Done, Stage, Staged, Start, TimedCall
from worker.recording.placement import WORKSPACE, Buffer

Bytes = NDArray[np.uint8]


def timed_call(layout: Layout, buffers: Mapping[str, Buffer], tape: int, outputs: Mapping[str, int]) -> TimedCall:
    """A call with places in the arena for its inputs and for `outputs`: name → bytes."""
    inputs = {name: layout.take(buffer.size) for name, buffer in buffers.items() if buffer.given}
    return TimedCall(dict(buffers), tape, inputs, {name: layout.take(size) for name, size in outputs.items()})


@dataclass(frozen=True)
class Bracketed:
    """One bracket that was played. ms: of each call, by events. host_ms: by a clock that device code cannot reach.

    roots: of the hash tree over each output, call by call, as they were known when the clock stopped.
    """

    host_ms: float
    ms: tuple[float, ...]
    roots: tuple[int, ...]
    collected: Collected


class Side:
    """A player with a held bracket. sizes: bytes of each output of a call."""

    def __init__(
        self, player: Player, name: str, calls: Sequence[TimedCall], sizes: Mapping[str, int], case: str
    ) -> None:
        self.player, self.name, self.calls, self.case = player, name, tuple(calls), case
        self.reachable = player.bench.ready().host_readable
        self.sizes = {output: size for output, size in sizes.items() if output != WORKSPACE}
        self.arena = player.bench.arena.bytes
        self._played: tuple[float, bytes] = (0.0, b"")

    def stage(self, draws: Sequence[Draw]) -> None:
        """Hands the inputs over and has everything refilled; `staged` waits for it."""
        for call, draw in zip(self.calls, draws, strict=True):
            for at, data in zip(call.inputs.values(), draw.masked, strict=True):
                self.arena[at : at + data.size] = data
        self.player.order(Stage(self.name))

    def staged(self) -> None:
        self.player.answer(Staged, GRACE_S, self.case)

    def play(self, keys: bytes, within_s: float) -> None:
        """Starts the bracket and takes the time until it is over.

        This process's clock bounds the player's, and takes its place where device code can write to the memory of the process
        that launches it (HMM). Elsewhere the player's is as good and not disturbed by what messages take.
        """
        with priority.first(priority.WORKER):
            self.player.ask(Attend(self.name), Attending, b"", GRACE_S, self.case)
            start = time.perf_counter_ns()
            self.player.order(Start(self.name), keys)
            self.player.bench.await_at_once(within_s)
            here_ns = time.perf_counter_ns() - start
        done, roots = self.player.answer(Done, within_s + GRACE_S, self.case)
        self._played = ((here_ns if self.reachable or done.ns > here_ns else done.ns) / 1e6, roots)

    def collect(self) -> None:
        """Asks for what the bracket left; `collected` has it."""
        self.player.order(Collect(self.name))

    def collected(self) -> Bracketed:
        answer, _ = self.player.answer(Collected, GRACE_S, self.case)
        host_ms, roots = self._played
        known = tuple(int(root) for root in np.frombuffer(roots, np.uint64))
        return Bracketed(host_ms, answer.ms, known, answer)

    def outputs(self) -> list[dict[str, Bytes]]:
        """Copies of what the calls wrote, call by call."""
        return [
            {name: self.arena[at : at + self.sizes[name]].copy() for name, at in call.outputs.items()}
            for call in self.calls
        ]
