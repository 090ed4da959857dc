"""How long one honest submission takes from POST to verdict, on a running service with a warm worker.

    make up                                         # in another terminal
    .venv/bin/python benchmarks/latency.py --token kg_…

Submits a stage's solution one after another (each with a comment of its own, so that no two are the same file), waits for
each verdict in the same request, and prints the median, the spread, where the time went and what machine this is. The
numbers go to `benchmarks/results/latency.json`. Submissions stay on the account of the token.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "latency.json"
AIM_S = 1.0
WAIT_S = 60.0
PASSING = ("accepted", "correct")


@dataclass(frozen=True)
class Sample:
    """One submission. total_s: POST sent to answer read. phases_ms: what the worker says it spent."""

    total_s: float
    phases_ms: dict[str, float]

    @property
    def grading_s(self) -> float:
        return sum(self.phases_ms.values()) / 1000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Latency of one honest submission on a running service.")
    parser.add_argument("--url", default=os.environ.get("KERNELGATE_URL", "http://127.0.0.1:8000"))
    parser.add_argument("--token", default=os.environ.get("KERNELGATE_TOKEN"), help="an account's token, kg_…")
    parser.add_argument("--stage", default="online_softmax")
    parser.add_argument("--file", type=Path, help="what to submit; the stage's solution by default")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=2, help="submissions before the first that counts")
    parser.add_argument("--output", type=Path, default=RESULTS)
    stated = parser.parse_args()
    if not stated.token:
        parser.error("no token: --token or KERNELGATE_TOKEN; `kernelgate token create HANDLE` makes one")
    return stated


def chosen_file(stated: argparse.Namespace) -> Path:
    if stated.file:
        return Path(stated.file)
    files = sorted((ROOT / "graders" / str(stated.stage) / "solution").glob("*"))
    if not files:
        sys.exit(f"graders/{stated.stage}/solution holds no file; name one with --file")
    return files[0]


def submit(client: httpx.Client, stage: str, filename: str, source: str) -> Sample:
    """One submission and its verdict. Ends the program when it is not a passing one: only honest files are timed."""
    started = time.perf_counter()
    answer = client.post("/submit", json={"stage": stage, "filename": filename, "source": source, "wait": WAIT_S})
    total = time.perf_counter() - started
    if answer.status_code != httpx.codes.OK:
        sys.exit(f"POST /submit answered {answer.status_code}: {answer.text[:1000]}")
    body: dict[str, Any] = answer.json()
    if body["verdict"] not in PASSING:
        sys.exit(f"the verdict is {body['verdict']!r}; only a file that passes is worth timing\n{answer.text[:2000]}")
    return Sample(total, dict((body.get("result") or {}).get("phases", {})))


def machine(client: httpx.Client) -> dict[str, str]:
    """What the numbers depend on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [
            line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        cpu = models[0] if models else cpu
    return {
        "cpu": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "load_at_start": f"{os.getloadavg()[0]:.2f}",
        "system": platform.platform(),
        "python": platform.python_version(),
        "service": str(client.get("/openapi.json").json()["info"]["version"]),
    }


def summary(samples: list[Sample]) -> dict[str, float]:
    """Seconds, and ratios of them."""
    totals = sorted(sample.total_s for sample in samples)
    median = statistics.median(totals)
    grading = statistics.median(sample.grading_s for sample in samples)
    return {
        "median_s": median,
        "fastest_s": totals[0],
        "slowest_s": totals[-1],
        "slowest_to_median": totals[-1] / median,
        "grading_median_s": grading,
        "grading_share": grading / median,
        "median_to_aim": median / AIM_S,
    }


def main() -> None:
    stated = arguments()
    path = chosen_file(stated)
    source = path.read_text()
    headers = {"Authorization": f"Bearer {stated.token}", "Accept": "application/json"}
    with httpx.Client(base_url=stated.url, headers=headers, timeout=WAIT_S + 30) as client:
        facts = machine(client)
        samples = []
        for number in range(-stated.warm_up, stated.count):
            sample = submit(client, stated.stage, path.name, f"{source}\n# run {time.time_ns()}\n")
            if number >= 0:
                samples.append(sample)
                print(f"{number + 1:3}  {sample.total_s:.3f} s", flush=True)
    found = summary(samples)
    for name, value in [*facts.items(), *((name, f"{value:.3f}") for name, value in found.items())]:
        print(f"{name:18} {value}")
    stated.output.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "stage": stated.stage,
        "count": len(samples),
        "machine": facts,
        **found,
        "samples": [asdict(s) for s in samples],
    }
    stated.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
