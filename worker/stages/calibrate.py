"""Grades one file again and again on this machine's GPU, each time in a fresh bench, for `bench` and `stage calibrate`."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kernelgate.calibration import Calibrated, Calibration, ordered
from kernelgate.evidence import timing_lines
from kernelgate.protocol import Result, Timing
from kernelgate.stages import Stage
from worker.grade import grade, new_seed
from worker.sandbox import Sandbox
from worker.stages.pool import GradingPool


class NotMeasuredError(RuntimeError):
    """A file whose speed was not measured; the text says which and what came of it."""


@dataclass(frozen=True)
class Grading:
    """One grading of a file. total_s: from its start to the verdict, waiting for a bench and for the card included."""

    file: str
    result: Result
    total_s: float

    @property
    def timing(self) -> Timing:
        """Raises NotMeasuredError."""
        if self.result.timing is None:
            verdict = f"{self.result.verdict} ({self.result.reason})"
            raise NotMeasuredError(f"{self.file} was not measured: {verdict}: {self.result.message[:500]}")
        return self.result.timing


def gradings(stage: Stage, pool: GradingPool, files: list[Path], times: int) -> Iterator[Grading]:
    """Every file `times` times, one file after the other."""
    return pool.map(stage, _grading, [file for file in files for _ in range(times)])


def _grading(stage: Stage, sandbox: Sandbox, file: Path) -> Grading:
    start = time.perf_counter()
    result = grade(stage, file.read_bytes(), sandbox=sandbox, seed=new_seed())
    return Grading(file.stem, result, time.perf_counter() - start)


def calibrate(
    stage: Stage, pool: GradingPool, times: int, watch: Callable[[Grading], None] = lambda _: None
) -> Calibration:
    """Measures starter, solution and what the stage's `calibrated` lists. Raises NotMeasuredError."""
    folder, name = stage.folder, stage.spec.file
    files = {
        folder / "starter" / name: ("starter", "starter"),
        folder / "solution" / name: ("solution", "solution"),
        **{folder / "submissions" / short: (Path(short).stem, "shipped") for short in stage.spec.calibrated},
    }
    rows: list[Calibrated] = []
    found: list[Grading] = []
    for done in gradings(stage, pool, list(files), times):
        watch(done)
        found.append(done)
    for number, (row, role) in enumerate(files.values()):
        rows.append(_row(row, role, found[number * times : (number + 1) * times]))
    machine = found[0].result.machine
    return Calibration(
        gpu=machine["gpu"],
        driver=machine.get("driver", ""),
        measured_on=datetime.now(UTC).date(),
        stage_hash=stage.hash,
        gate=stage.spec.gate.speedup if stage.spec.gate else None,
        rows=ordered(rows),
    )


def _row(name: str, role: str, found: list[Grading]) -> Calibrated:
    timings = [each.timing for each in found]
    speedups = [timing.speedup for timing in timings]
    return Calibrated.model_validate(
        {
            "name": name,
            "role": role,
            "verdict": found[0].result.verdict,
            "gradings": len(found),
            "baseline_ms": _median(timing.baseline_ms for timing in timings),
            "user_ms": _median(timing.user_ms for timing in timings),
            "speedup": _median(speedups),
            "speedup_low": round(min(speedups), 4),
            "speedup_high": round(max(speedups), 4),
            "gflop_per_s": _fact(timings, "gflop_per_s"),
            "share_of_fp32_peak": _fact(timings, "share_of_fp32_peak"),
        }
    )


def _median(values: Iterator[float] | list[float]) -> float:
    return round(statistics.median(values), 4)


def _fact(timings: list[Timing], name: str) -> float | None:
    known = [value for timing in timings if isinstance(value := timing.facts.get(name), float)]
    return _median(known) if known else None


def told(stage: Stage, found: list[Grading]) -> str:
    """The timing lines of the grading in the middle, and how far the gradings lie apart. Raises NotMeasuredError."""
    in_order = sorted(found, key=lambda each: each.timing.speedup)
    low, high = in_order[0].timing.speedup, in_order[-1].timing.speedup
    middle = in_order[len(in_order) // 2].result
    spread = f"{(high - low) / statistics.median(each.timing.speedup for each in found):.2%}"
    lines = [("GRADINGS", f"{len(found)}, from {low:.3f}x to {high:.3f}x (spread {spread})")]
    return timing_lines(middle, stage.spec.evidence, lines)


def as_json(stage: Stage, found: list[Grading]) -> dict[str, object]:
    """Everything that was measured, every sample included."""
    kept = {"verdict", "reason", "seed", "phases", "timing", "resources"}
    return {
        "stage": stage.name,
        "stage_hash": stage.hash,
        "file": found[0].file,
        "machine": found[0].result.machine,
        "gradings": [
            {"total_s": round(each.total_s, 3), **each.result.model_dump(mode="json", include=kept)} for each in found
        ],
    }
