"""What a verdict costs on the CPU: processor time by part, for the capstone's solution and starter, and for wrong files.

    .venv/bin/python -m benchmarks.emulator [--quick] [FILE …]

Grades files as a worker does, but outside the sandbox, because what a sandboxed process took is not handed on: only for files
you trust. Prints processor seconds, which a machine that does other things besides stretches less than the clock: of nvcc,
of the C++ compiler by pass, of the runs by build, and of this process (translation, references, comparisons); then what passed
by the clock, and the load at the end; and the same for a file that was compiled before. On two idle cores a verdict takes a
little more than half the sum. The runtimes are built before. Figures go to `benchmarks/results/emulator.json`, those of
`--quick` beside the others and those of the way by rewritten source, which went before, under `by source`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, cast

from kernelgate.settings import settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from worker.emulator.toolchain import toolchain
from worker.grade import grade
from worker.judging.machine import facts
from worker.sandbox import End, Finished, Sandbox

RESULTS = Path(__file__).parent / "results" / "emulator.json"
SEED = "5eed" * 8
SHADOW = b"__tsan_read4"
"""A symbol of the check build's programs."""
FILES = (
    "solution/attention.cu",
    "starter/attention.cu",
    "submissions/wrong_answer/alpha_missing.cu",
    "submissions/wrong_answer/racing_tile.cu",
)


def processor_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class Direct:
    """Runs what a sandbox would run, as the calling user, and adds up what it took by part."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}
        self.longest = 0.0
        self.lock = Lock()

    def run(
        self,
        argv: Sequence[str],
        *,
        files: Mapping[str, bytes] = {},
        collect: Sequence[str] = (),
        **_: object,
    ) -> Finished:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for file, body in files.items():
                (folder / file).write_bytes(body)
            with (folder / ".out").open("w+b") as out, (folder / ".err").open("w+b") as err:
                child = subprocess.Popen(argv, cwd=folder, stdout=out, stderr=err)
                _, status, used = os.wait4(child.pid, 0)
                child.returncode = os.waitstatus_to_exitcode(status)
            printed = [(folder / name).read_bytes() for name in (".out", ".err")]
            self._add(" ".join(argv), files, used.ru_utime + used.ru_stime)
            written = {file: (folder / file).read_bytes() for file in collect if (folder / file).is_file()}
        wall = (time.monotonic() - start) * 1e3
        return Finished(End.EXITED, child.returncode, None, *printed, wall, 0.0, written)

    def _add(self, command: str, files: Mapping[str, bytes], took: float) -> None:
        part = "other programs"
        if "case" in files:
            part = (
                "slices"
                if b"slice " in files["case"]
                else "checking runs"
                if SHADOW in files["submission"]
                else "plain runs"
            )
        elif "submission.cpp" in files:
            part = "g++, check" if "EMULATOR_CHECK" in command else "g++, plain"
        elif any(file.endswith(".cu") for file in files):
            part = "nvcc"
        with self.lock:
            self.longest = max(self.longest, took if "case" in files else 0.0)
            self.parts[part] = self.parts.get(part, 0.0) + took


def measure(stage: Stage, file: str, *, quick: bool) -> dict[str, Any]:
    """One grading, in seconds of processor time; `clock` in seconds that passed, which a busy machine stretches.

    file: one of the stage's, or a path.
    """
    source = stage.files[file] if file in stage.files else Path(file).read_bytes()
    direct, own, start = Direct(), processor_s(resource.RUSAGE_SELF), time.monotonic()
    chosen = stage.short() if quick else stage
    result = grade(chosen, source, sandbox=cast(Sandbox, direct), seed=SEED)
    parts = {**direct.parts, "translation, references, comparisons": processor_s(resource.RUSAGE_SELF) - own}
    return {
        "file": file,
        "verdict": f"{result.verdict} {result.reason}",
        "cases": len(result.cases),
        **{part: round(seconds, 1) for part, seconds in parts.items()},
        "all": round(sum(parts.values()), 1),
        "longest run": round(direct.longest, 1),
        "clock": round(time.monotonic() - start, 1),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--quick", action="store_true", help="leave out the lengths that are measured on a GPU")
    asked = parser.parse_args()
    stage = load_stage(settings().graders_dir / "online_attention")
    compiler = toolchain().compiler.version
    told = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = {row["file"]: row for row in told.get("quick" if asked.quick else "full", ())}
    for file in asked.files or FILES:
        with (
            tempfile.TemporaryDirectory() as builds
        ):  # nothing that was compiled before is taken up, but the second time
            os.environ["KERNELGATE_BUILD_CACHE"] = builds
            settings.cache_clear()
            rows[file] = measure(stage, file, quick=asked.quick)
            again = measure(stage, file, quick=asked.quick)
        rows[file] |= {"all, compiled before": again["all"], "clock, compiled before": again["clock"]}
        print(json.dumps(rows[file]), flush=True)
    told |= {"quick" if asked.quick else "full": [*rows.values()], "compiler": compiler, "machine": facts()}
    RESULTS.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
