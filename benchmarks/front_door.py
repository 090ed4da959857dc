"""Every file that a stage ships, sent through the front door: what each got, and whether that is what was promised.

    make up                                         # in another terminal
    .venv/bin/python -m benchmarks.front_door STAGE --token kg_… [--jobs N] [--only PART …]

POSTs starter, solution and every file under `submissions/` to a running service, N at once, waits for each verdict, and holds
it against the folder it lies in and `submissions/expected.toml`, as `kernelgate stage verify` does without a service. Prints
a line each and writes a table to `benchmarks/results/front_door_STAGE.md`. Exits with 1 when something is not as promised.
A stage with a hundred files meets `KERNELGATE_HOURLY_LIMIT`: start the service with a higher one.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from kernelgate.protocol import Result
from kernelgate.settings import ROOT, settings
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Example, Stage
from kernelgate.verdicts import Verdict
from worker.judging.machine import facts
from worker.stages.verify import judged

RESULTS = ROOT / "benchmarks" / "results"
WAIT_S = 60
PATIENCE_S = 900


@dataclass(frozen=True)
class Row:
    """One file's way. seconds: from POST to the answer read; why: what was promised instead, "" when it was kept."""

    file: str
    result: Result
    seconds: float
    why: str


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Sends every file of a stage through a running service.")
    parser.add_argument("stage")
    parser.add_argument("--url", default=os.environ.get("KERNELGATE_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--token", default=os.environ.get("KERNELGATE_TOKEN"), help="an account's token, kg_…")
    parser.add_argument("--jobs", type=int, default=1, help="files on their way at once; seconds then include waiting")
    parser.add_argument("--output", type=Path, help="where the table goes; nowhere for a part of the files")
    parser.add_argument("--only", nargs="*", default=[], help="files whose path has one of these in it")
    stated = parser.parse_args()
    if not stated.token:
        parser.error("no token: --token or KERNELGATE_TOKEN; `kernelgate token create HANDLE` makes one")
    return stated


def shipped(stage: Stage) -> Iterable[Example]:
    """Solution and starter, which may be right but never all that is asked for, and every file with its promise."""
    gated = stage.spec.gate is not None
    starter = Verdict.GATE_MISSED if gated else Verdict.WRONG_ANSWER
    yield Example(path=stage.folder / "solution" / stage.spec.file, verdict=Verdict.ACCEPTED)
    yield Example(path=stage.folder / "starter" / stage.spec.file, verdict=starter)
    yield from stage.examples()


def sent(client: httpx.Client, stage: Stage, path: Path) -> tuple[Result, float]:
    """The verdict of one file and its seconds. Raises HTTPStatusError when the door refuses it.

    Some files of a stage are derived and lie in no folder.
    """
    text = stage.files[path.relative_to(stage.folder).as_posix()]
    start = time.monotonic()
    answer = client.post(
        "/submit", data={"stage": stage.name, "wait": str(WAIT_S)}, files={"file": (stage.spec.file, text)}
    )
    found = answer.raise_for_status().json()
    while found["state"] not in ("done", "cancelled") and time.monotonic() - start < PATIENCE_S:
        time.sleep(0.2)
        found = client.get(f"/submissions/{found['id']}").raise_for_status().json()
    return Result.model_validate(found["result"]), time.monotonic() - start


def graded(client: httpx.Client, stage: Stage, example: Example) -> Row | None:
    """None: the door itself refused the file, as it does what is no text."""
    name = example.path.relative_to(stage.folder).as_posix().removeprefix("submissions/")
    try:
        result, seconds = sent(client, stage, example.path)
    except httpx.HTTPStatusError as refused:
        if refused.response.status_code != httpx.codes.UNPROCESSABLE_ENTITY:
            sys.exit(f"POST /submit answered {refused.response.status_code}: {refused.response.text[:1000]}")
        print(f"door {name}: {refused.response.status_code} {refused.response.text[:120]}", flush=True)
        return None
    check = judged(stage, example, result)
    row = Row(name, result, seconds, "" if check.ok else check.detail)
    print(f"{'ok  ' if check.ok else 'FAIL'} {seconds:6.1f} s  {name}: {check.detail}", flush=True)
    return row


def table(rows: Iterable[Row]) -> str:
    lines = ["| file | verdict | reason | first wrong tensor | mistake named | s |", "|---|---|---|---|---|---:|"]
    for row in rows:
        wrong, mistake = row.result.wrong, row.result.mistake
        where = f"{wrong.tensor} in {wrong.case}, {list(wrong.index)}" if wrong else ""
        told = [row.file, str(row.result.verdict), row.result.reason, where, mistake.name if mistake else ""]
        lines.append(f"| {' | '.join(told)} | {row.seconds:.1f} |")
    return "\n".join(lines)


def main() -> None:
    stated = arguments()
    stage = load_stage(settings().graders_dir / stated.stage)
    chosen = [it for it in shipped(stage) if not stated.only or any(part in str(it.path) for part in stated.only)]
    with httpx.Client(base_url=stated.url, timeout=WAIT_S + 30) as client, ThreadPoolExecutor(stated.jobs) as senders:
        client.headers["Authorization"] = f"Bearer {stated.token}"
        rows = [row for row in senders.map(lambda example: graded(client, stage, example), chosen) if row]
    failed = [row for row in rows if row.why]
    kept = f"{len(rows) - len(failed)} of {len(rows)} as promised"
    output = stated.output or (None if stated.only else RESULTS / f"front_door_{stage.name}.md")
    if output:
        machine = ", ".join(f"{key} {value}" for key, value in facts().items())
        title = f"# {stage.name}: every shipped file through the front door"
        output.write_text(f"{title}\n\n{kept}. {machine}; load {os.getloadavg()[0]:.0f}.\n\n{table(rows)}\n")
    print(kept)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
