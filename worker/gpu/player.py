"""Orders to a player, and whose fault it is when the answer does not come.

What the player of a submission dies of, or the driver refuses, after the process was up and while it did what the
submission's own image or tape asks for, is the submission's doing, at the first attempt. What goes wrong in the baseline's
player is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kernelgate.reasons import Reason
from kernelgate.stages import Limits
from worker.gpu.bench_client import Bench, BenchError, GoneError
from worker.gpu.faults import ending
from worker.gpu.protocol import Answer, Ended, Order
from worker.judging.failures import Failure
from worker.recording.placement import Slots

GRACE_S = 20.0
"""What a player may take beyond a kernel's own time: mapping, copies, instantiation."""
Wanted = TypeVar("Wanted")
Stop = Callable[[], bool]


class Player:
    """The baseline's player: every failure is ours. Raises BenchError, and Cancelled when `cancelled` says so.

    slots: of the memory that it holds for timed calls.
    """

    def __init__(self, bench: Bench, cancelled: Stop = lambda: False) -> None:
        self.bench = bench
        self.cancelled = cancelled
        self.slots = Slots()

    def order(self, order: Order, payload: bytes = b"") -> None:
        self.bench.send(order, payload)

    def answer(self, wanted: type[Wanted], within_s: float = GRACE_S, case: str | None = None) -> tuple[Wanted, bytes]:
        """The answer to the last order, which is of the kind that is wanted."""
        answer, payload = self._received(within_s, case)
        if isinstance(answer, wanted):
            return answer, payload
        raise self.blamed(answer, case)

    def ask(
        self,
        order: Order,
        wanted: type[Wanted],
        payload: bytes = b"",
        within_s: float = GRACE_S,
        case: str | None = None,
    ) -> tuple[Wanted, bytes]:
        self.order(order, payload)
        return self.answer(wanted, within_s, case)

    def _received(self, within_s: float, case: str | None) -> tuple[Answer, bytes]:
        del case
        return self.bench.receive(within_s, self.cancelled)

    def blamed(self, answer: Answer, case: str | None) -> Exception:
        del case
        return BenchError(f"{answer.why}: {answer.what}" if isinstance(answer, Ended) else f"it answered {answer.kind}")


class SubmissionPlayer(Player):
    """A player that holds a submission. Raises Failure for what that did, BenchError for us."""

    def __init__(self, bench: Bench, limits: Limits, cancelled: Stop) -> None:
        super().__init__(bench, cancelled)
        self.limits = limits

    def _received(self, within_s: float, case: str | None) -> tuple[Answer, bytes]:
        try:
            return self.bench.receive(within_s, self.cancelled)
        except GoneError as error:
            what = "the driver ended the process that held the device code; the image or a launch is damaged"
            raise Failure(Reason.DRIVER_CRASHED, f"{_where(case)}{what}.", case=case) from error

    def blamed(self, answer: Answer, case: str | None) -> Exception:
        failure = ending(answer, case, self.limits) if isinstance(answer, Ended) else None
        return failure or super().blamed(answer, case)


def _where(case: str | None) -> str:
    return f"Case {case}: " if case else ""
