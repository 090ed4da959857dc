"""What pages and routes take over a million submissions: 10,000 people with 100 each, 40 of them waiting.

    .venv/bin/python benchmarks/million.py          # --people 10000 --each 100 --times 30; --serve only serves it

Starts its own Postgres, broker and API in a temporary folder (4 GB), fills it, and asks every address as an administrator and
as a student would, over one connection: the first time with nothing kept (the service was started after the filling), and then
again and again. Milliseconds are of the server: from the request sent to the last byte, over loopback. The service and
Postgres share this machine's cores, so a busy machine shows; beside each stand the processor's milliseconds of both. The
figures go to `benchmarks/results/million.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402
import psycopg  # noqa: E402
from psycopg.types.json import Jsonb  # noqa: E402
from sqlalchemy import create_engine, pool, select  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from benchmarks.processors import machine, spent_ms  # noqa: E402
from benchmarks.served import served  # noqa: E402
from kernelgate.accounts import create_token, create_user  # noqa: E402
from kernelgate.models import Role, User  # noqa: E402
from kernelgate.protocol import CaseReport, Result, Timing  # noqa: E402
from kernelgate.settings import Settings  # noqa: E402
from kernelgate.stage_folders import load_stages  # noqa: E402
from kernelgate.stages import Stage  # noqa: E402
from kernelgate.verdicts import Verdict  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "million.json"
AIM_MS = 50
FILL = """
SET session_replication_role = replica;
SET synchronous_commit = off;
SELECT setseed(0.5);
INSERT INTO users (handle, role) SELECT 'student' || n, 'submitter' FROM generate_series(1, %(people)s) n;
CREATE TEMP TABLE made AS
SELECT lpad(to_hex(n), 8, '0') || lpad(to_hex(k), 8, '0') AS id, u.id AS user_id, p.stage, p.hash, p.file,
       now() - interval '1 second' * (n %% 997 + (%(each)s - k) * 86400.0 * 120 / %(each)s) AS at,
       CASE WHEN v < 0.12 THEN 'accepted' WHEN v < 0.15 THEN 'gate_missed' WHEN v < 0.7 THEN 'wrong_answer'
            WHEN v < 0.9 THEN 'compile_error' WHEN v < 0.999 THEN 'runtime_error' ELSE 'judge_error' END AS verdict,
       CASE WHEN timed AND v < 0.15 THEN CASE WHEN n %% 5 = 0 THEN 'NVIDIA H100' ELSE 'NVIDIA H200' END END AS model,
       CASE WHEN timed AND v < 0.15 THEN 1.8 + 2.7 * random() * random() END AS speedup
FROM generate_series(1, %(people)s) n JOIN users u ON u.handle = 'student' || n
CROSS JOIN LATERAL generate_series(1, %(each)s) k CROSS JOIN LATERAL (SELECT random() + 0 * k AS v) chance
JOIN playable p ON p.place = (n + k) %% (SELECT count(*) FROM playable);
INSERT INTO submissions (id, user_id, stage, stage_hash, filename, source, source_hash, via, state, queue, round, attempt,
                         cancel_requested, hidden, verdict, reason, backend, gpu_model, speedup, mistake, created_at,
                         claimed_at, finished_at)
SELECT id, user_id, stage, hash, file, convert_to('// ' || id || repeat(' code', 40), 'UTF8'), md5(id), 'web', 'done', 'cpu',
       1, 1, false, false, verdict, 'passed', 'gpu', model, speedup,
       CASE WHEN verdict = 'wrong_answer' THEN 'mistake_' || right(id, 1) END, at, at + interval '2 s', at + interval '9 s'
FROM made;
INSERT INTO results (submission_id, round, attempt, worker, verdict, reason, stage_hash, speedup, speedup_low, speedup_high,
                     body, created_at)
SELECT id, 1, 1, 'w', m.verdict, 'passed', hash, speedup, speedup * 0.996, speedup * 1.004, b.body, at + interval '9 s'
FROM made m JOIN bodies b ON b.stage = m.stage AND b.verdict = m.verdict;
INSERT INTO places SELECT * FROM placed;
INSERT INTO events (submission_id, round, attempt, kind, data, at)
SELECT id, 1, e, 'state', jsonb_build_object('state', (ARRAY['queued', 'running', 'done'])[e + 1]), at + interval '3 s' * e
FROM made, generate_series(0, 2) e;
UPDATE submissions SET state = 'queued', verdict = NULL, speedup = NULL, mistake = NULL, finished_at = NULL, created_at = now(),
                       claimed_at = NULL
WHERE id IN (SELECT id FROM made ORDER BY at DESC LIMIT 40);
DELETE FROM results WHERE submission_id IN (SELECT id FROM submissions WHERE state = 'queued');
UPDATE submissions SET state = 'running', claimed_at = now(), lease_owner = 'w', lease_until = now() + interval '1 day'
WHERE id IN (SELECT id FROM submissions WHERE state = 'queued' LIMIT 1);
INSERT INTO workers (name, queues, backends, healthy, health, started_at, heartbeat_at)
VALUES ('w', '{cpu}', '{torch}', true, '{}', now(), now() + interval '1 day');
INSERT INTO courses (name, title, late_days) VALUES ('gpu', 'GPU', 2);
INSERT INTO course_members (course_id, user_id, role, email, person)
SELECT c.id, u.id, 'member', '', '' FROM courses c, users u WHERE u.id % 40 = 0;
INSERT INTO course_stages (course_id, stage, place, late, late_percent, late_limit, joint, rule, points, steps)
SELECT c.id, stage, place, 'none', 0, 0, false, 'pass', 1, '[]' FROM courses c, playable;
SET session_replication_role = origin;
"""
STUDENT = {
    "home": "", "stages": "stages", "stage page": "stages/{stage}", "boards": "leaderboard", "board": "leaderboard/{stage}",
    "board, timed": "leaderboard/{timed}", "own history": "me/submissions",
    "history of a stage": "me/submissions?stage={stage}",
    "own account": "me", "submission": "submissions/{done}",
    "person": "people/student40", "compare": "me/compare?a={done}&b={other}", "docs": "docs",
}  # fmt: skip
ADMIN = {
    "admin: stages": "admin", "admin: queue": "admin/queue", "admin: submissions": "admin/submissions",
    "admin: of a verdict": "admin/submissions?stage={stage}&verdict=accepted",
    "admin: of a person": "admin/submissions?user=student40", "admin: hidden or held": "admin/submissions?apart=hidden",
    "admin: a stage": "admin/stages/{stage}", "admin: people": "admin/users", "admin: searched": "admin/users?search=99",
    "admin: a person": "admin/users/student40", "admin: held": "admin/held", "admin: audit": "admin/audit",
    "course": "courses/gpu",
    "submission that waits": "submissions/{waits}",
}  # fmt: skip
ROUTES = {
    "GET /leaderboard": "leaderboard/{timed}", "GET /leaderboard, all": "leaderboard/{timed}?format=csv",
    "GET /leaderboard, each": "leaderboard/{timed}?each=submission", "GET /me/submissions": "me/submissions?limit=200",
    "GET /submissions/…": "submissions/{done}", "GET /admin/queue": "admin/queue", "GET /admin/stages": "admin/stages",
    "GET /metrics": "metrics", "GET /readyz": "readyz",
}  # fmt: skip


class Filled(NamedTuple):
    """What the addresses are made of. admin, student: tokens."""

    admin: str
    student: str
    names: dict[str, str]


def fill(values: Settings, socket: str, people: int, each: int) -> Filled:
    stages = [stage for stage in load_stages(values.graders_dir)[0].values() if not stage.spec.draft]
    with psycopg.connect(host=socket, user="kernelgate", dbname="postgres") as connection:
        _reference(connection, stages)
        for statement in FILL.split(";\n"):
            if statement.strip():
                given = {"people": people, "each": each} if "%(" in statement else None
                connection.execute(statement, given)
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")
        of_one = "SELECT s.id FROM submissions s JOIN users u ON u.id = user_id WHERE handle = 'student40' AND state = 'done'"
        done, other = (row[0] for row in connection.execute(f"{of_one} LIMIT 2"))
        (waits,) = (row[0] for row in connection.execute("SELECT id FROM submissions WHERE state = 'queued' LIMIT 1"))
    with Session(create_engine(values.database_url, poolclass=pool.NullPool)) as session, session.begin():
        _, admin = create_token(session, create_user(session, "root", Role.ADMIN), days=9)
        student = session.scalars(select(User).where(User.handle == "student40")).one()
        _, token = create_token(session, student, days=9)
    timed = next(stage.name for stage in stages if stage.spec.gate)
    names = {"stage": stages[0].name, "timed": timed, "done": done, "other": other, "waits": waits}
    return Filled(admin, token, names)


def _reference(connection: psycopg.Connection, stages: list[Stage]) -> None:
    """What the rows are made from: the stages, and a result of each verdict in each."""
    connection.execute("CREATE TEMP TABLE playable (place int, stage text, hash text, file text, timed bool)")
    connection.execute("CREATE TEMP TABLE bodies (stage text, verdict text, body jsonb)")
    for place, stage in enumerate(stages):
        timed = stage.spec.gate is not None
        connection.execute(
            "INSERT INTO playable VALUES (%s, %s, %s, %s, %s)", (place, stage.name, stage.hash, stage.spec.file, timed)
        )
        for verdict in Verdict:
            body = Jsonb(_result(stage, verdict))
            connection.execute("INSERT INTO bodies VALUES (%s, %s, %s)", (stage.name, verdict, body))


def _result(stage: Stage, verdict: Verdict) -> dict[str, Any]:
    right = verdict in (Verdict.ACCEPTED, Verdict.GATE_MISSED)
    timing = None
    if right and stage.spec.gate is not None:
        timing = Timing(
            baseline_ms=0.94, user_ms=0.4, speedup=2.35, speedup_low=2.34, speedup_high=2.36, gate=1.8,
            baseline_samples_ms=(0.94,) * 3, user_samples_ms=(0.4,) * 3,
        )  # fmt: skip
    cases = [
        CaseReport(name=case.name, title=case.title, group=case.group, state="right" if right else "wrong")
        for case in stage.spec.cases[:5]
    ]
    found = Result(
        verdict=verdict, reason="passed", message=verdict.about.meaning, stage=stage.name, stage_hash=stage.hash,
        backend=stage.spec.backends[0], seed="00", timing=timing, cases=cases,
    )  # fmt: skip
    return found.stored()


class Asked(NamedTuple):
    """One address. processor_ms: the service's and Postgres's for one request, the mean of all but the first."""

    first_ms: float
    median_ms: float
    worst_ms: float
    processor_ms: float
    bytes: int

    @classmethod
    def of(cls, client: httpx.Client, path: str, form: str, times: int) -> Asked:
        spent: list[float] = []
        before = 0.0
        for number in range(1 + times):
            if number == 1:
                before = spent_ms()
            begun = time.perf_counter()
            answer = client.get(path, headers={"Accept": form})
            spent.append(1000 * (time.perf_counter() - begun))
            answer.raise_for_status()
        again = sorted(spent[1:])
        each = (spent_ms() - before) / times
        return cls(
            *(round(value, 1) for value in (spent[0], statistics.median(again), again[-1], each)), len(answer.content)
        )


def measured(url: str, filled: Filled, times: int) -> dict[str, Asked]:
    found: dict[str, Asked] = {}
    for token, paths, form in (
        (filled.student, STUDENT, "text/html"),
        (filled.admin, ADMIN, "text/html"),
        (filled.admin, ROUTES, "*/*"),
    ):
        with httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=120, follow_redirects=True
        ) as client:
            for name, path in paths.items():
                found[name] = Asked.of(client, "/" + path.format(**filled.names), form, times)
                print(
                    f"{name:28}", *(f"{key} {value:9.1f}" for key, value in found[name]._asdict().items()), flush=True
                )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=100, help="submissions of each person")
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument(
        "--serve", action="store_true", help="print the address, the tokens and the socket's folder, and serve it"
    )
    parser.add_argument("--output", type=Path, default=RESULTS)
    stated = parser.parse_args()
    kept: list[str] = []

    def filled(values: Settings, socket: str) -> Filled:
        kept.append(socket)
        return fill(values, socket, stated.people, stated.each)

    with served(filled) as (url, about):
        if stated.serve:
            print(url, kept[0], about, flush=True)
            while True:
                time.sleep(60)
        before = os.getloadavg()[0]
        found = measured(url, about, stated.times)
    result = {
        "people": stated.people, "submissions": stated.people * stated.each, "machine": machine(),
        "load_averages": [round(before, 1), round(os.getloadavg()[0], 1)],
        "asked": {name: each._asdict() for name, each in found.items()},
    }  # fmt: skip
    stated.output.parent.mkdir(parents=True, exist_ok=True)
    stated.output.write_text(json.dumps(result, indent=2) + "\n")
    slow = [name for name, each in found.items() if max(each.first_ms, each.worst_ms) > AIM_MS]
    print(f"{machine()}; load average {result['load_averages']}; above {AIM_MS} ms: {', '.join(slow) or 'nothing'}")


if __name__ == "__main__":
    main()
