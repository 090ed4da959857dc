"""How long a leaderboard of 10,000 people takes to open in a browser, and how much of the page goes over the wire.

    .venv/bin/python benchmarks/leaderboard.py            # --people 10000 --opens 15

Starts its own Postgres, broker and API in a temporary folder, fills a speedup board (each person with one to four graded
submissions, one of them accepted) and opens it in a chromium that stands on the page of all boards. "open" is from the start
of the navigation to the load event, by when the rows stand, with an empty cache; "again" with the scripts and styles kept;
"painted" until something of it is seen, with an empty cache. The browser, the service and Postgres share this machine's
cores, so a busy machine slows all three: the script waits for a quiet moment before each visit and says what CPU time a visit
took in the page's process, which a busy machine changes less. The figures go to `benchmarks/results/leaderboard.json`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import psycopg  # noqa: E402
from playwright.sync_api import Browser, sync_playwright  # noqa: E402

from benchmarks.processors import machine, settled  # noqa: E402
from benchmarks.served import served  # noqa: E402
from kernelgate.settings import Settings  # noqa: E402

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

    def fill(_: Settings, socket: str) -> None:
        with psycopg.connect(host=socket, user="kernelgate", dbname="postgres") as connection:
            for statement in FILL.split(";\n"):
                if statement.strip():
                    given = {"people": people, "stage": STAGE} if "%(" in statement else None
                    connection.execute(statement, given)

    with served(fill) as (url, _):
        yield url


class Visit(NamedTuple):
    """One opening of the board. open_ms, first_byte_ms, painted_ms: from the start of the navigation. renderer_cpu_ms: CPU
    time of the page's process. load_average: of the machine, before. bytes: over the wire."""

    open_ms: float
    first_byte_ms: float
    painted_ms: float
    renderer_cpu_ms: float
    load_average: float
    bytes: int


TIMES = """(async () => {
  const navigation = performance.getEntriesByType('navigation')[0];
  const paint = () => performance.getEntriesByName('first-contentful-paint')[0];
  while (!paint()) await new Promise((next) => setTimeout(next, 20));
  const painted = paint();
  if (document.querySelectorAll('.board tbody tr').length < 50) throw new Error('the rows are not there');
  return [navigation.loadEventEnd, navigation.responseStart, painted.startTime,
          performance.getEntries().reduce((sum, each) => sum + (each.transferSize || 0), 0)];
})()"""


class Reader:
    """A browser of one person, who opens the board from the page of all boards."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.url = url
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        self.page = context.new_page()
        self.inside = context.new_cdp_session(self.page)
        self.inside.send("Performance.enable")
        self.inside.send("Network.enable")

    def opens(self, *, cold: bool) -> Visit:
        self.page.goto(f"{self.url}/leaderboard", wait_until="load")
        self.page.wait_for_timeout(500)
        if cold:
            self.inside.send("Network.clearBrowserCache")
        load, before = settled(), self._cpu_ms()
        self.page.goto(f"{self.url}/leaderboard/{STAGE}", wait_until="load")
        opened, first_byte, painted, size = self.page.evaluate(TIMES)
        return Visit(opened, first_byte, painted, self._cpu_ms() - before, load, int(size))

    def _cpu_ms(self) -> float:
        found = self.inside.send("Performance.getMetrics")["metrics"]
        return 1000 * float(next(each["value"] for each in found if each["name"] == "ProcessTime"))


def measure(url: str, opens: int) -> dict[str, Any]:
    found = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        reader = Reader(browser, url)
        reader.opens(cold=True)
        cold = [reader.opens(cold=True) for _ in range(opens)]
        again = [reader.opens(cold=False) for _ in range(opens)]
        browser.close()
    return {
        "open_ms": [round(each.open_ms, 1) for each in cold],
        "again_ms": [round(each.open_ms, 1) for each in again],
        "first_byte_ms": [round(each.first_byte_ms, 1) for each in cold],
        "painted_ms": [round(each.painted_ms, 1) for each in cold],
        "renderer_cpu_ms": [round(each.renderer_cpu_ms, 1) for each in cold],
        "load_averages": [round(each.load_average, 1) for each in cold],
        "bytes": cold[-1].bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--opens", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULTS)
    stated = parser.parse_args()
    with board(stated.people) as url:
        found = measure(url, stated.opens)
    loads = found["load_averages"]
    result = {"people": stated.people, "machine": machine(), **found}
    stated.output.parent.mkdir(parents=True, exist_ok=True)
    stated.output.write_text(json.dumps(result, indent=2) + "\n")
    print(f"{stated.people} people; {machine()}; load average {min(loads)} to {max(loads)}")
    for name in ("open_ms", "again_ms", "first_byte_ms", "painted_ms", "renderer_cpu_ms"):
        values = found[name]
        median = statistics.median(values)
        spread = f"fastest {min(values):7.1f}  slowest {max(values):7.1f}"
        print(f"{name:14} median {median:7.1f}  {spread}  {median / AIM_MS:.2f} of the aim")
    print(f"{'bytes':14} {found['bytes']:14}  {found['bytes'] / AIM_BYTES:.2f} of the aim")


if __name__ == "__main__":
    main()
