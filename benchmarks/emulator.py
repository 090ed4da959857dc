"""What a verdict costs in the emulator: processor time and clock, for the capstone's starter and solution.

    .venv/bin/python -m benchmarks.emulator [--quick] [FILE …]

Prints processor seconds, because a machine that does other things besides stretches the clock more than the work, and the clock
by phase, with the load at the end. On two idle cores the clock shows little more than half the processor time. The runtimes are
built before. Figures go to `benchmarks/results/emulator.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

from kernelgate.settings import settings
from kernelgate.stages import load_stage
from worker.emulate import backend
from worker.emulate.toolchain import toolchain
from worker.grade import grade
from worker.host import open_sandbox
from worker.machine import facts

RESULTS = Path(__file__).parent / "results" / "emulator.json"
SEED = "5eed" * 8


def processor_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(path: Path, *, quick: bool) -> dict[str, Any]:
    """One grading. processor_s: of the sandboxed compilers and runs, and of this process (references, comparisons).

    The rest is the clock's: the phases, and of the cases the longest.
    """
    stage = load_stage(settings().graders_dir / "online_attention")
    sandboxed, own, start = processor_s(resource.RUSAGE_CHILDREN), processor_s(resource.RUSAGE_SELF), time.monotonic()
    with open_sandbox() as sandbox:
        result = grade(stage.short() if quick else stage, path.read_bytes(), sandbox=sandbox, seed=SEED)
    longest = max(result.cases, key=lambda case: case.ms or 0)
    return {
        "file": str(path),
        "verdict": str(result.verdict),
        "cases": len(result.cases),
        "processor_s": {
            "sandboxed": round(processor_s(resource.RUSAGE_CHILDREN) - sandboxed, 1),
            "judging": round(processor_s(resource.RUSAGE_SELF) - own, 1),
        },
        "clock_s": {
            "all": round(time.monotonic() - start, 1),
            **{str(phase): round(ms / 1e3, 1) for phase, ms in result.phases.items()},
            f"longest case, {longest.name}": round((longest.ms or 0) / 1e3, 1),
        },
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="leave out the lengths that are measured on a GPU")
    asked = parser.parse_args()
    folder = (settings().graders_dir / "online_attention").relative_to(Path.cwd())
    backend.kernel_resources = lambda _: ()  # nvcc's report is no part of the emulator
    compiler = toolchain().version
    rows = []
    for path in asked.files or [folder / "solution" / "attention.cu", folder / "starter" / "attention.cu"]:
        rows.append(measure(path, quick=asked.quick))
        print(json.dumps(rows[-1]), flush=True)
    told = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    told |= {"quick" if asked.quick else "full": rows, "compiler": compiler, "machine": facts()}
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
