"""`python -m worker.bench`: serves one submission over frames on its standard input and output, then ends.

Orders: `examine`, `module` (a cubin), `case` (a tape and its inputs), `measure`. Answers: `ready`, `well`, `loaded`, `result`,
`progress`, `measured`, or an ending: `fault`, `time_limit`, `refused`, `wrong_when_timed`, `broken` (ours). What device code
prints goes to a file, never to the channel. With `--probe` it only says what the card is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from cuda.bindings import driver as cu

from kernelgate.settings import settings
from kernelgate.stages import load_stage
from worker.bench import against_torch
from worker.bench.card import Card
from worker.bench.clocks import Clocks
from worker.bench.driver import CudaError, Events, TimedOutError, check, settle
from worker.bench.measure import Bout, Samples, WrongWhenTimedError
from worker.bench.memory import POISON, AddressTakenError, Mapped
from worker.bench.outcome import Call, Peaks, measured
from worker.bench.replay import Joined, Module, Replay, UnplayableError
from worker.bench.statistics import Ratio
from worker.gpu import lock
from worker.judging import frames
from worker.judging.grader import Grader
from worker.recording.placement import WORKSPACE, Buffer
from worker.recording.tape import read_tape

MAX_PAYLOAD = 1 << 30


class Bench:
    """One submission's modules and the card they run on."""

    def __init__(self, card: Card, send: Callable[..., None]) -> None:
        self.card = card
        self.send = send
        self.modules: dict[str, Module] = {}
        self.stream = check(cu.cuStreamCreate(cu.CUstream_flags.CU_STREAM_NON_BLOCKING))
        self.events = Events(self.stream)

    def examine(self, order: dict[str, Any], payload: bytes) -> None:
        """Looks at the card again: this process may have waited long for its submission."""
        del order, payload
        with lock.shared():
            self.card.examine()
        self.send({"kind": "well", "strangers": self.card.strangers()})

    def module(self, order: dict[str, Any], payload: bytes) -> None:
        if "prefix" in order:
            joined = self.modules.setdefault(order["which"], Joined())
            assert isinstance(joined, Joined)  # noqa: S101 - one `which` has prefixes or has none
            joined.add(order["prefix"], Module(payload))
        else:
            self.modules[order["which"]] = Module(payload)
        self.send({"kind": "loaded"})

    def case(self, order: dict[str, Any], payload: bytes) -> None:
        """Runs one tape once: poisoned outputs, given inputs; answers with the outputs and what else was touched."""
        buffers = {name: Buffer(**fields) for name, fields in order["buffers"].items()}
        tape, at = payload[: order["tape"]], order["tape"]
        free = int(check(cu.cuMemGetInfo())[0])
        with ExitStack() as stack:
            mapped = {name: stack.enter_context(Mapped(buffer, self.card.device)) for name, buffer in buffers.items()}
            replay = Replay(self.modules["user"], read_tape(tape, buffers), self.card.context)
            inputs = {}
            for name, held in mapped.items():
                if held.buffer.written:
                    held.fill(POISON)
                else:
                    inputs[name] = np.frombuffer(payload, np.float32, held.buffer.size // 4, at)
                    at += held.buffer.size
                    held.write(inputs[name])
            settle()
            self.events.begin()
            replay.launch(self.stream)
            ms = self.events.finish(order["within_s"])
            settle()
            peak = free - int(check(cu.cuMemGetInfo())[0])
            changed = [n for n, values in inputs.items() if mapped[n].read().tobytes() != values.tobytes()]
            strayed = [name for name, held in mapped.items() if held.strayed()]
            written = [held for name, held in mapped.items() if held.buffer.written and name != WORKSPACE]
            outputs = b"".join(held.read().tobytes() for held in written)
            replay.close()
        found = {"ms": ms, "changed": changed, "strayed": strayed, "occupancy": replay.occupancy, "peak": peak}
        self.send({"kind": "result", **found}, outputs)

    def measure(self, order: dict[str, Any], payload: bytes) -> None:
        """Times baseline and submission in turn. The payload is both tapes and then the input to draw others from."""
        if order.get("peer") == "torch":
            against_torch.measure(self, order, payload)
            return
        stage = load_stage(Path(order["stage"]))
        grader = Grader(stage)
        case = next(case for case in stage.spec.cases if case.name == order["case"])
        groups = {
            group: {name: Buffer(**fields) for name, fields in order[group].items()}
            for group in ("inputs", "user", "baseline")
        }
        user_tape, baseline_tape = payload[: order["tapes"][0]], payload[order["tapes"][0] : sum(order["tapes"])]
        at, base = sum(order["tapes"]), {}
        for name, shape in order["shapes"].items():
            count = int(np.prod(shape))
            base[name] = np.frombuffer(payload, np.float32, count, at).reshape(shape)
            at += 4 * count
        with ExitStack() as stack:
            held = {
                group: {name: stack.enter_context(Mapped(b, self.card.device)) for name, b in buffers.items()}
                for group, buffers in groups.items()
            }
            bout = Bout(
                stream=self.stream,
                baseline=self._replay("baseline", baseline_tape, {**groups["inputs"], **groups["baseline"]}),
                user=self._replay("user", user_tape, {**groups["inputs"], **groups["user"]}),
                inputs=held["inputs"],
                baseline_outputs=held["baseline"],
                user_outputs=held["user"],
                fresh=lambda rng: grader.again(case, base, rng),
                tolerance=stage.tolerance(case),
                clocks=Clocks(self.card.bus),
                call_s=order["within_s"],
                ahead=not self.card.host_readable,
            )
            result: tuple[Samples, Ratio | None] = (Samples(), None)
            for result in bout.run(order["gate"], order["measure_s"]):
                self._progress(*result)
            bout.close()
        moved = sum(buffer.size for group in ("inputs", "baseline") for buffer in groups[group].values())
        peaks = Peaks(self.card.fp32_peak(), self.card.bandwidth_peak())
        self.send(measured(*result, Call(grader.work(case), moved), peaks, {}))

    def _replay(self, which: str, tape: bytes, buffers: dict[str, Buffer]) -> Replay:
        return Replay(self.modules[which], read_tape(tape, buffers), self.card.context)

    def _progress(self, samples: Samples, found: Ratio | None) -> None:
        if found is not None:
            numbers = {"speedup": found.value, "low": found.low, "high": found.high}
            self.send({"kind": "progress", "pairs": len(samples.user), **numbers})


def serve(channel: BinaryIO, send: Callable[..., None]) -> None:
    """Answers orders until the worker closes the channel or the submission ends the context."""

    def read(count: int) -> bytes:
        data = channel.read(count)
        if len(data) != count:
            raise EOFError
        return data

    try:
        with lock.shared():
            card = Card()
            bench = Bench(card, send)
        send({"kind": "ready", **card.facts()})
        if "--torch" in sys.argv:
            against_torch.warm()
        while True:
            order, payload = frames.receive(read, max_payload=MAX_PAYLOAD)
            kinds = {"examine": bench.examine, "module": bench.module, "case": bench.case, "measure": bench.measure}
            kinds[order["kind"]](order, payload)
    except EOFError:
        return
    except TimedOutError:
        send({"kind": "time_limit"})
    except CudaError as error:
        send({"kind": "fault", "name": error.name, "what": str(error)[:500]})
    except (UnplayableError, AddressTakenError, WrongWhenTimedError) as error:
        endings = {
            UnplayableError: "refused",
            AddressTakenError: "address_taken",
            WrongWhenTimedError: "wrong_when_timed",
        }
        send({"kind": endings[type(error)], "what": str(error)[:1000]})
    except Exception as error:
        send({"kind": "broken", "what": f"{type(error).__name__}: {str(error)[:1000]}"})


def main() -> None:
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(
        os.open(os.devnull, os.O_WRONLY) if len(sys.argv) < 2 or sys.argv[1] == "--probe" else _prints(sys.argv[1]), 1
    )

    def send(header: dict[str, Any], payload: bytes = b"") -> None:
        data = memoryview(frames.encode(header, payload))
        while data:
            data = data[out.write(data) :]

    settings()
    channel = open(os.devnull, "rb") if sys.argv[1:] == ["--probe"] else sys.stdin.buffer  # noqa: SIM115, PTH123
    serve(channel, send)
    os._exit(0)  # a hung kernel would keep the driver's own exit handlers waiting


def _prints(path: str) -> int:
    """A file for what device code prints; the driver writes it to descriptor 1."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)


if __name__ == "__main__":
    main()
