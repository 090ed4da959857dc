"""`python -m worker.bench PRINTS ARENA`: a player. Serves the orders of worker/gpu/protocol.py on its standard streams.

PRINTS: a file for what device code prints, so that it never reaches the channel. ARENA: the descriptor of the shared memory
that timed inputs and outputs lie in. With `--probe` it only says what the card is.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import BinaryIO

import numpy as np
from cuda.bindings import driver as cu
from numpy.typing import NDArray

from kernelgate.settings import settings
from worker.bench.card import Card
from worker.bench.clocks import Clocks
from worker.bench.driver import CudaError, Events, TimedOutError, check, settle
from worker.bench.guard import Guard
from worker.bench.memory import AddressTakenError, Mapped
from worker.bench.replay import Joined, Module, Replay, UnplayableError
from worker.bench.timed import Bracket, Call, mapped_call
from worker.bench.torch_graphs import NoTorchError, torch_calls
from worker.gpu import lock, priority, protocol
from worker.gpu.arena import mapped as mapped_arena
from worker.judging import frames
from worker.recording.placement import WORKSPACE
from worker.recording.tape import read_tape

MAX_PAYLOAD = 1 << 30
PRINT_BYTES = 64 << 10
"""Device memory for what kernels print; a call that prints more overwrites its own words."""
SPIN_S = 0.05
Send = Callable[..., None]


class Player:
    """One side's modules and the card they run on."""

    def __init__(self, card: Card, send: Send, prints: int, arena: NDArray[np.uint8] | None) -> None:
        self.card, self.send, self.prints, self.arena = card, send, prints, arena
        self.modules = Joined()
        self.guard: Guard | None = None
        self.brackets: dict[str, Bracket] = {}
        self.stack, self.hurry = ExitStack(), ExitStack()
        self.stream = check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.events = Events(self.stream)
        self.clocks = Clocks(card.bus)
        check(cu.cuCtxSetLimit(cu.CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE, PRINT_BYTES))

    def serve(self, order: protocol.Order, payload: bytes) -> None:
        match order:
            case protocol.Examine():
                self._examine()
            case protocol.LoadModule():
                self._load(order, payload)
            case protocol.RunCase():
                self._run_case(order, payload)
            case protocol.Hold() | protocol.HoldTorch():
                self._hold(order, payload)
            case protocol.Stage():
                self._held(order.name).stage([self.modules])
                self.send(protocol.Staged())
            case protocol.Attend():
                self.hurry.enter_context(priority.first(priority.PLAYER))
                self._held(order.name).attend()
                self.send(protocol.Attending())
            case protocol.Start():
                ns, roots = self._held(order.name).start(payload)
                self.send(protocol.Done(ns), roots)
                self.hurry.close()
            case protocol.Collect():
                self._collect(order.name)
            case protocol.TimeAlone():
                self.send(protocol.Timed(self._held(order.name).alone(order.times)))

    def _held(self, name: str) -> Bracket:
        if name not in self.brackets:
            raise ValueError(f"no bracket {name!r} is held")
        return self.brackets[name]

    def _examine(self) -> None:
        """This process may have waited long for its submission."""
        with lock.shared():
            self.card.examine()
        self.send(protocol.Well(tuple(self.card.strangers())))

    def _load(self, order: protocol.LoadModule, payload: bytes) -> None:
        if order.trusted:
            self.guard = Guard(payload, self.stream)
        else:
            module = Module(payload)
            module.variables  # noqa: B018 - read before anything is launched
            self.modules.add(order.prefix, module)
        self.send(protocol.Loaded())

    def _run_case(self, order: protocol.RunCase, payload: bytes) -> None:
        """Runs one tape once: poisoned outputs, given inputs; answers with the outputs and what else was touched."""
        at = order.tape
        free = int(check(cu.cuMemGetInfo())[0])
        with ExitStack() as stack:
            held = {n: stack.enter_context(Mapped(buffer, self.card.device)) for n, buffer in order.buffers.items()}
            replay = Replay(self.modules, read_tape(payload[:at], order.buffers), self.card.context)
            self.modules.restore()
            inputs = {}
            for name, mapped in held.items():
                if mapped.buffer.given:
                    inputs[name] = np.frombuffer(payload, np.uint8, mapped.buffer.size, at)
                    at += mapped.buffer.size
                    mapped.write(inputs[name])
            settle()
            self.events.begin()
            replay.launch(self.stream)
            ms = self.events.finish(order.within_s)
            settle()
            peak = free - int(check(cu.cuMemGetInfo())[0])
            kept = [name for name in inputs if not held[name].buffer.written]
            changed = [name for name in kept if not np.array_equal(held[name].read(), inputs[name])]
            strayed = [name for name, mapped in held.items() if mapped.strayed()]
            written = [mapped for name, mapped in held.items() if mapped.buffer.written and name != WORKSPACE]
            outputs = b"".join(mapped.read().tobytes() for mapped in written)
            replay.close()
        printed = os.fstat(self.prints).st_size
        self.send(
            protocol.CaseResult(ms, tuple(changed), tuple(strayed), replay.occupancy, peak, printed),
            outputs,
        )

    def _hold(self, order: protocol.Hold | protocol.HoldTorch, payload: bytes) -> None:
        facts: dict[str, str | float] = {}
        if isinstance(order, protocol.HoldTorch):
            calls, facts = torch_calls(order, payload.decode(), self.stack, self.card.device, self.stream)
        else:
            calls = self._replays(order, payload)
        if self.guard is None or self.arena is None:
            raise ValueError("timed calls need the guard's kernels and an arena")
        self.brackets[order.name] = Bracket(calls, self.guard, self.arena, self.stream, order.within_s)
        self.send(protocol.Held(facts))

    def _replays(self, order: protocol.Hold, payload: bytes) -> list[Call]:
        calls, at = [], 0
        for places in order.calls:
            inputs, written, outputs = mapped_call(self.stack, places, self.card.device)
            tape = read_tape(payload[at : at + places.tape], places.buffers)
            at += places.tape
            work = Replay(self.modules, tape, self.card.context)
            calls.append(Call(work, inputs, written, dict(outputs), places))
        return calls

    def _collect(self, name: str) -> None:
        ms, changed, strayed = self._held(name).collect()
        reading = self.clocks.read()
        self.send(
            protocol.Collected(ms, changed, strayed, reading.sm_mhz, reading.celsius, reading.slowed or ""),
        )


def serve(channel: BinaryIO, send: Send, prints: int, arena: NDArray[np.uint8] | None) -> None:
    """Answers orders until the worker closes the channel or the submission ends the context."""

    def read(count: int) -> bytes:
        data = channel.read(count)
        if len(data) != count:
            raise EOFError
        return data

    try:
        with lock.shared():
            card = Card()
            player = Player(card, send, prints, arena)
        send(card.ready())
        if "--torch" in sys.argv:
            _warm_torch()
        while True:
            header, payload = frames.receive(read, max_payload=MAX_PAYLOAD)
            order = protocol.message(header)
            player.serve(order, payload)
            if isinstance(order, protocol.Attend):
                _look_out(channel)
    except EOFError:
        return
    except Exception as error:
        send(_ending(error))


def _look_out(channel: BinaryIO) -> None:
    """Waits a moment for the order to start without sleeping: waking up would take longer than some calls, and never the
    same.
    """
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    deadline = time.monotonic() + SPIN_S
    while not poll.poll(0) and time.monotonic() < deadline:
        pass


def _ending(error: Exception) -> protocol.Ended:
    match error:
        case TimedOutError():
            return protocol.Ended("time_limit")
        case CudaError():
            return protocol.Ended("fault", str(error)[:500], error.name)
        case UnplayableError():
            return protocol.Ended("refused", str(error)[:1000])
        case AddressTakenError():
            return protocol.Ended("address_taken", str(error)[:1000])
        case NoTorchError():
            return protocol.Ended("no_torch", str(error)[:300])
        case _:
            return protocol.Ended("broken", f"{type(error).__name__}: {str(error)[:1000]}")


def _warm_torch() -> None:
    """Imports torch before it is needed; that it is missing is said when it is."""
    from worker.bench.torch_graphs import program

    try:
        program()
    except NoTorchError:
        return


def main() -> None:
    probe = sys.argv[1:] == ["--probe"]
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    prints = os.open(os.devnull, os.O_WRONLY) if probe else _prints(sys.argv[1])
    os.dup2(prints, 1)

    def send(answer: protocol.Answer, payload: bytes = b"") -> None:
        data = memoryview(frames.encode(protocol.header(answer), payload))
        while data:
            data = data[out.write(data) :]

    settings()
    channel = open(os.devnull, "rb") if probe else sys.stdin.buffer  # noqa: SIM115, PTH123
    serve(channel, send, prints, None if probe else mapped_arena(int(sys.argv[2])))
    os._exit(0)  # a hung kernel would keep the driver's own exit handlers waiting


def _prints(path: str) -> int:
    """A file for what device code prints; the driver writes it to descriptor 1."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


if __name__ == "__main__":
    main()
