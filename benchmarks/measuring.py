"""How steady and how honest the measurement is on this host's GPU.

    .venv/bin/python benchmarks/measuring.py --output benchmarks/results/h200_measuring.json

Regrades a stage's solution again and again, one grading after the other; grades its baseline against itself; sets the gate a
little below and a little above the solution's speedup; and prints how far the ratios lie apart, what the two clocks said of
each other, how long the card was held, and what machine this is. Needs no service.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kernelgate.protocol import Result  # noqa: E402
from kernelgate.settings import settings  # noqa: E402
from kernelgate.stage_folders import load_stage  # noqa: E402
from kernelgate.stages import Gate, Stage  # noqa: E402
from kernelgate.verdicts import Phase, Verdict  # noqa: E402
from worker.backends import open_sandbox  # noqa: E402
from worker.grade import grade, new_seed  # noqa: E402
from worker.sandbox import Sandbox  # noqa: E402

ON_THE_CARD = (Phase.LOAD, Phase.CASES, Phase.MEASURE)
AIMS = {"spread_percent": 0.5, "card_held_s": 1.0, "baseline_against_itself": 0.005, "gate_percent": 1.5}
CLOCKS = (
    "host_less_events_us",
    "host_less_events_of_baseline_us",
    "clocks_may_differ_us",
    "by_host_ms",
    "baseline_alone_ms",
)


def grading(stage: Stage, source: str, sandbox: Sandbox) -> tuple[Result, float]:
    """One grading and its seconds, told as soon as it is there: a run that is broken off has not been for nothing."""
    start = time.perf_counter()
    result = grade(stage, source.encode(), sandbox=sandbox, seed=new_seed())
    took = time.perf_counter() - start
    speedup = f"{result.timing.speedup:.4f}x" if result.timing else result.message[:200]
    print(f"{result.verdict} ({result.reason}) {speedup} in {took:.2f} s", flush=True)
    return result, took


def row(result: Result, total_s: float) -> dict[str, Any]:
    """A grading in figures. Raises SystemExit where nothing was measured."""
    if result.timing is None:
        raise SystemExit(f"not measured: {result.verdict} ({result.reason}): {result.message}")
    timing = result.timing
    return {
        "verdict": str(result.verdict),
        "speedup": round(timing.speedup, 4),
        "interval": [round(timing.speedup_low, 4), round(timing.speedup_high, 4)],
        "baseline_ms": round(timing.baseline_ms, 5),
        "user_ms": round(timing.user_ms, 5),
        "total_s": round(total_s, 3),
        "card_held_s": round(sum(result.phases.get(phase, 0.0) for phase in ON_THE_CARD) / 1e3, 3),
        "phases_ms": {str(phase): round(ms, 1) for phase, ms in result.phases.items()},
        "clocks": {name: timing.facts[name] for name in CLOCKS},
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    speedups = [each["speedup"] for each in rows]
    middle = statistics.median(speedups)
    moved = [c["clocks"]["host_less_events_us"] - c["clocks"]["host_less_events_of_baseline_us"] for c in rows]
    return {
        "gradings": len(rows),
        "median_speedup": middle,
        "lowest": min(speedups),
        "highest": max(speedups),
        "spread_percent": round(100 * (max(speedups) - min(speedups)) / middle, 3),
        "median_card_held_s": statistics.median(each["card_held_s"] for each in rows),
        "median_total_s": statistics.median(each["total_s"] for each in rows),
        "clocks_apart_us": {"lowest": round(min(moved), 1), "highest": round(max(moved), 1)},
        "rows": rows,
    }


def with_gate(stage: Stage, speedup: float) -> Stage:
    """The stage with another gate. Its measurement goes on until it is clear of it."""
    spec = stage.spec.model_copy(update={"gate": Gate(speedup=round(speedup, 4))})
    return Stage(stage.folder, spec, stage.files, stage.form)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", default="online_attention")
    parser.add_argument("--gradings", type=int, default=20)
    parser.add_argument("--near-the-gate", type=int, default=6, help="gradings on either side")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    stage = load_stage(settings().graders_dir / arguments.stage)
    solution, baseline = stage.text(f"solution/{stage.spec.file}"), stage.text("baseline.cu")
    with open_sandbox() as sandbox:
        first = grading(stage, solution, sandbox)  # starts players and fills caches; it does not count
        regradings = summary([row(*grading(stage, solution, sandbox)) for _ in range(arguments.gradings)])
        itself = summary([row(*grading(stage, baseline, sandbox)) for _ in range(max(2, arguments.gradings // 4))])
        near = {}
        for name, factor in (("below", 1 - AIMS["gate_percent"] / 100), ("above", 1 + AIMS["gate_percent"] / 100)):
            moved = with_gate(stage, regradings["median_speedup"] * factor)
            results = [grading(moved, solution, sandbox)[0] for _ in range(arguments.near_the_gate)]
            passed = sum(result.verdict is Verdict.ACCEPTED for result in results)
            near[name] = {"gate": moved.spec.gate and moved.spec.gate.speedup, "passed": passed, "of": len(results)}
    report = {
        "machine": first[0].machine,
        "stage": stage.name,
        "stage_hash": stage.hash,
        "aims": AIMS,
        "regradings": regradings,
        "baseline_against_itself": itself,
        "gate_1.5_percent": near,
    }
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    for part in ("regradings", "baseline_against_itself"):
        print(part, {name: value for name, value in report[part].items() if name != "rows"})
    print("gate", near)
    print("machine", report["machine"])


if __name__ == "__main__":
    main()
