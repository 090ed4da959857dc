"""Where in the source a kernel went wrong: the failed case once more, untimed, under compute-sanitizer where that is installed.

It adds a line number to a verdict that stands already; when it finds nothing, or is not there, the verdict is the same.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from kernelgate.text import line
from worker.gpu import lock
from worker.gpu.bench_client import Bench, BenchError
from worker.gpu.protocol import CaseResult, Loaded, LoadModule, Order, RunCase
from worker.judging.failures import Failure
from worker.recording.native import BuildError, cuda_root

TOOLS = {
    "illegal_address": "memcheck",
    "misaligned_address": "memcheck",
    "kernel_failed": "memcheck",
    "not_repeatable": "racecheck",
}
"""The tool that explains a failure, by its reason."""
WITHIN_S = 30.0
_ERROR = re.compile(r"^=+ +(?:Error: )?((?:Invalid|Misaligned|Race reported|Potential \w+ hazard).*)$")
_PLACE = re.compile(r" in (?:\S*/)?([\w.]+):(\d+)")
_THREAD = re.compile(r"by thread (\([\d,]+\)) in block (\([\d,]+\))")


@cache
def sanitizer() -> str | None:
    """compute-sanitizer's full path, from PATH or the CUDA toolkit, or None."""
    try:
        own = [str(cuda_root() / "bin")]
    except BuildError:
        own = []
    return next((path for folder in (None, *own) if (path := shutil.which("compute-sanitizer", path=folder))), None)


def explained(
    failure: Failure,
    module: bytes,
    orders: list[tuple[RunCase, bytes]],
    cancelled: Callable[[], bool],
) -> Failure:
    """The failure, with the place in the source where its reason can be found there. Not to be called in a turn at the card.

    module: the submission's cubin. orders: those that failed, with their payloads.
    """
    tool, program = TOOLS.get(failure.reason), sanitizer()
    if tool is None or program is None or not orders:
        return failure
    with tempfile.NamedTemporaryFile(prefix="sanitizer-") as log:
        # The bench asks its driver things that fail, on purpose; reported, they would use up what may be printed.
        quiet = ["--report-api-errors", "no"] if tool == "memcheck" else []
        under = [program, "--tool", tool, *quiet, "--print-limit", "1", "--log-file", log.name]
        bench = Bench(under)
        try:
            _repeat(bench, module, orders, cancelled)
            bench.leave(5.0)
        finally:
            bench.close()
        place = found(Path(log.name).read_text(errors="replace"))
    if place is not None:
        failure.message = f"{failure.message} compute-sanitizer: {place}."
    return failure


def _repeat(bench: Bench, module: bytes, orders: list[tuple[RunCase, bytes]], cancelled: Callable[[], bool]) -> None:
    """Runs the cases until one fails, which under the tool may be another than before, or none."""
    try:
        bench.ready()  # before the turn: the bench needs one of its own to start
        with lock.shared():
            listed: list[tuple[Order, bytes]] = [(LoadModule(), module), *orders]
            for order, payload in listed:
                bench.send(order, payload)
                answer, _ = bench.receive(WITHIN_S, cancelled)
                if not isinstance(answer, Loaded | CaseResult):
                    return
    except BenchError:
        return  # the tool's log is all that is wanted


def found(log: str) -> str | None:
    """The first error of a log: what it was, in which file and line, and by which thread. None when there is none."""
    lines = log.splitlines()
    for number, text in enumerate(lines):
        error = _ERROR.match(text)
        if error:
            near = "\n".join(lines[number : number + 4])
            place, thread = _PLACE.search(near), _THREAD.search(near)
            what = line(error[1].split(" at ")[0], 200)
            where = f" in {line(place[1], 60)}:{place[2]}" if place else ""
            who = f", by thread {thread[1]} of block {thread[2]}" if thread else ""
            return f"{what}{where}{who}"
    return None
