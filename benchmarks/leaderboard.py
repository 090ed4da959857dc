"""How long a leaderboard of 10,000 people takes to open in a browser, and how much of the page goes over the wire.

    .venv/bin/python benchmarks/leaderboard.py            # --people 10000 --opens 15

Starts its own Postgres, broker and API in a temporary folder, fills a speedup board (each person with one to four graded
submissions, one of them accepted) and opens it in chromium with an empty cache each time. "open" is from the click to the
load event; "again" is with the scripts and styles kept. The figures go to `benchmarks/results/leaderboard.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psycopg  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from embedded import schema  # noqa: E402
from embedded.broker import Broker  # noqa: E402
from embedded.datadir import DataDir  # noqa: E402
from embedded.postgres import Postgres  # noqa: E402
from embedded.process import Child  # noqa: E402
from kernelgate.settings import Settings, environment  # noqa: E402
from tests.conftest import free_port, take_stages_as_proven, wait_until_ready  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "leaderboard.json"
STAGE = "online_attention"
AIM_MS, AIM_BYTES = 300, 100_000
FILL = """
SELECT setseed(0.5);
INSERT INTO users (handle, role) SELECT 'solver' || n, 'submitter' FROM generate_series(1, %(people)s) n;
INSERT INTO submissions (id, user_id, stage, stage_hash, filename, source, source_hash, via, state, queue, round, attempt,
                         cancel_requested, hidden, verdict, gpu_model, speedup, created_at, claimed_at, finished_at)
SELECT to_hex(n) || lpad(to_hex(k), 3, '0'), u.id, %(stage)s, '', 'attention.cu', '', '', 'web', 'done', 'cpu', 1, 1, false,
       false, CASE WHEN k = 1 THEN 'accepted' ELSE 'wrong_answer' END, CASE WHEN k = 1 THEN 'NVIDIA H200' END,
       CASE WHEN k = 1 THEN 1.8 + 2.7 * random() * random() END, now() - interval '1 minute' * (n + k), now(), now()
FROM generate_series(1, %(people)s) n JOIN users u ON u.handle = 'solver' || n
CROSS JOIN LATERAL generate_series(1, 1 + n %% 4) k;
INSERT INTO results (submission_id, round, attempt, worker, verdict, reason, stage_hash, speedup, speedup_low, speedup_high,
                     body, created_at)
SELECT id, 1, 1, 'w', verdict, 'passed', '', speedup, speedup * 0.996, speedup * 1.004,
       CASE WHEN speedup IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('timing',
            jsonb_build_object('user_ms', 0.68 / speedup, 'baseline_ms', 0.68)) END, created_at
FROM submissions;
INSERT INTO workers (name, queues, backends, healthy, health, started_at, heartbeat_at)
VALUES ('w', '{cpu}', '{torch}', true, '{}', now(), now() + interval '1 day');
ANALYZE;
"""


@contextmanager
def board(people: int) -> Iterator[str]:
    """The address of a service with a board of that many people."""
    with tempfile.TemporaryDirectory(prefix="kgb-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        root.chmod(0o711)
        data = DataDir(root)
        servers = [Postgres(data, durable=False), Broker(data, durable=False)]
        for server in servers:
            server.start()
        schema.upgrade(servers[0].url("postgres"))
        (root / "data").mkdir()
        values = Settings(
            database_url=servers[0].url("postgres"), broker_url=servers[1].url, data_dir=root / "data", port=free_port()
        )
        take_stages_as_proven(values)
        with psycopg.connect(host=str(servers[0].socket_folder), user="kernelgate", dbname="postgres") as connection:
            for statement in FILL.split(";\n"):
                if statement.strip():
                    given = {"people": people, "stage": STAGE} if "%(" in statement else None
                    connection.execute(statement, given)
        child = Child(
            "serve", [sys.executable, "-m", "kernelgate", "serve"], log=root / "serve.log", env=environment(values)
        )
        try:
            child.start()
            wait_until_ready(f"http://127.0.0.1:{values.port}", [child])
            yield f"http://127.0.0.1:{values.port}"
        finally:
            child.stop()
            for server in reversed(servers):
                server.stop()


def opened(browser: Browser, address: str, *, again: bool) -> tuple[float, int, float]:
    """(milliseconds to the load event, bytes over the wire, milliseconds until the first byte) of one visit."""
    with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
        page = context.new_page()
        sizes: list[int] = []
        for _ in range(2 if again else 1):
            sizes.clear()
            page.goto(address, wait_until="load")
        timing = page.evaluate(
            "(() => { const n = performance.getEntriesByType('navigation')[0];"
            "return [n.loadEventEnd || n.domComplete, n.responseStart - n.requestStart,"
            "performance.getEntries().reduce((sum, e) => sum + (e.transferSize || 0), 0)]; })()"
        )
        return float(timing[0]), int(timing[2]), float(timing[1])


def measure(address: str, opens: int) -> dict[str, Any]:
    found = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        opened(browser, address, again=False)
        cold = [opened(browser, address, again=False) for _ in range(opens)]
        warm = [opened(browser, address, again=True) for _ in range(opens)]
        browser.close()
    return {
        "open_ms": [round(each[0], 1) for each in cold],
        "again_ms": [round(each[0], 1) for each in warm],
        "first_byte_ms": [round(each[2], 1) for each in cold],
        "bytes": cold[-1][1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--opens", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULTS)
    stated = parser.parse_args()
    with board(stated.people) as url:
        found = measure(f"{url}/leaderboard/{STAGE}", stated.opens)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    result = {"people": stated.people, "machine": machine, "load_average": os.getloadavg()[0], **found}
    stated.output.parent.mkdir(parents=True, exist_ok=True)
    stated.output.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{stated.people} people; {machine}; load average {result['load_average']:.1f}")
    for name in ("open_ms", "again_ms", "first_byte_ms"):
        values = found[name]
        median = statistics.median(values)
        spread = f"fastest {min(values):7.1f}  slowest {max(values):7.1f}"
        print(f"{name:14} median {median:7.1f}  {spread}  {median / AIM_MS:.2f} of the aim")
    print(f"{'bytes':14} {found['bytes']:14}  {found['bytes'] / AIM_BYTES:.2f} of the aim")


if __name__ == "__main__":
    main()
