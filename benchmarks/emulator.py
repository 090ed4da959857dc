"""What a verdict costs on the CPU, by part: of the capstone's solution, whole and in short, of its starter and of a race.

    .venv/bin/python -m benchmarks.emulator [FILE …]

Grades files as a worker does, but outside the sandbox, because what a sandboxed process took is not handed on: only for files
you trust. Prints processor seconds, which a machine that does other things besides stretches less than the clock: of nvcc,
of the C++ compiler, of the runs by build, and of this process (translation, references, comparisons); then what passed by the
clock, and the load at the end; and the same for a file that was compiled before. On two
idle cores a verdict takes a little more than half the sum. The runtimes are built before. Figures go to
`benchmarks/results/emulator.json`; those of the way by rewritten source, which went before, stand there under `by source`.
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
from worker.recording.native import recorder
from worker.sandbox import End, Finished, Sandbox

RESULTS = Path(__file__).parent / "results" / "emulator.json"
SEED = "5eed" * 8
SHADOW = b"visit_words"
"""A symbol of the check build's programs."""
AIMS = (
    ("solution/attention.cu", "whole", 12),
    ("solution/attention.cu", "quick", 4),
    ("starter/attention.cu", "whole", 15),
    ("submissions/wrong_answer/racing_tile.cu", "whole", 5),
)
"""A file, whether as a whole or in short, and how many seconds its verdict may take on two quiet cores."""


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
            part = "g++" if "EMULATOR_CHECK" in command else "g++, once more"
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


def cold_and_warm(stage: Stage, file: str, how: str) -> dict[str, Any]:
    """A file that nobody has sent before, and the same once more."""
    with tempfile.TemporaryDirectory() as builds:
        os.environ["KERNELGATE_BUILD_CACHE"] = builds
        settings.cache_clear()
        row = measure(stage, file, quick=how == "quick")
        again = measure(stage, file, quick=how == "quick")
    return {"how": how, **row, "all, compiled before": again["all"], "clock, compiled before": again["clock"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="instead of the four that there is an aim for")
    asked = parser.parse_args()
    stage = load_stage(settings().graders_dir / "online_attention")
    compiler, _ = toolchain().compiler.version, recorder()  # what is built once for all lies where it always does
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = {(row["file"], row["how"]): row for row in kept.get("verdicts", ())}
    for file, how, aim in [(file, "whole", None) for file in asked.files] or AIMS:
        row = cold_and_warm(stage, file, how) | ({"aim": aim} if aim else {})
        print(json.dumps(row), flush=True)
        rows[file, how] = row
    kept |= {"verdicts": [*rows.values()], "compiler": compiler, "machine": facts()}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
