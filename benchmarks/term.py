"""How long a teacher waits in a whole term: teams, extensions, late days, judgings again, and a rejudge of a stage.

    python -m benchmarks.term             # both terms of TERMS; another one with --people 500 --stages 20 --attempts 33000
    python -m benchmarks.term --serve     # only fills the last term, prints address and instructor's token, and serves it

Starts its own Postgres, broker and API in a temporary folder, fills a term, fetches its pages, its exports and the similar
submissions of one stage, opens the pages in a chromium as the instructor (from the start of the navigation to the load event,
and of the grid until all its rows are there), and in the end has a stage judged again, which may change nobody's points. The
first of several figures is the one that has nothing kept. The browser, the service and Postgres share this machine's cores, so
a busy machine shows in all times; what it shows in least are the processor seconds beside them: the service's with Postgres's,
and those of the page's process. Stages beyond the shipped ones are shipped ones once more, under other names. All figures are
printed, with what is asked of them, and go to `benchmarks/results/term.json`.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import random
import re
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402
import psycopg  # noqa: E402
from playwright.sync_api import CDPSession, sync_playwright  # noqa: E402
from psycopg.types.json import Jsonb  # noqa: E402
from sqlalchemy import create_engine, pool  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from benchmarks.processors import machine, spent_ms  # noqa: E402
from benchmarks.served import served  # noqa: E402
from kernelgate.accounts import create_token, create_user  # noqa: E402
from kernelgate.models import (  # noqa: E402
    Course,
    CourseRole,
    CourseStage,
    Extension,
    LateRule,
    Member,
    PointsRule,
    Role,
    Team,
    User,
    now,
)
from kernelgate.protocol import CaseReport, NamedMistake, Result, Timing  # noqa: E402
from kernelgate.settings import Settings  # noqa: E402
from kernelgate.stage_folders import load_stages  # noqa: E402
from kernelgate.stages import Stage  # noqa: E402
from kernelgate.verdicts import Verdict  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "term.json"
COURSE, INSTRUCTOR = "gpu-term", "ines"
TEAM_OF, WEEK = 3, timedelta(days=7)
TERMS = ((300, 12, 20_000), (500, 20, 33_000))
"""People, stages, attempts: a large course, and the largest that a grid has to show on one page."""
ASKED = {"grid": 500.0, "grid after an attempt": 500.0, "similarity": 60_000.0}
"""Milliseconds at most, on a quiet machine, in the last of TERMS: the median, where there are several without the first one."""
_SUBMISSIONS = (
    "COPY submissions (id, user_id, stage, stage_hash, filename, source, source_hash, via, state, queue, round, attempt,"
    " cancel_requested, hidden, verdict, reason, backend, gpu_model, speedup, created_at, claimed_at, finished_at) FROM STDIN"
)
_RESULTS = (
    "COPY results (submission_id, round, attempt, worker, verdict, reason, stage_hash, speedup, speedup_low, speedup_high,"
    " body, created_at) FROM STDIN"
)


class Term(NamedTuple):
    """A running service with the term in it. token: the instructor's. stage: one whose submissions are compared. socket: the
    folder of Postgres's."""

    url: str
    token: str
    stage: str
    socket: str


@contextmanager
def term(people: int, attempts: int, count: int) -> Iterator[Term]:
    def filled(values: Settings, socket: str) -> tuple[str, str, str]:
        shipped = [stage for stage in load_stages(values.graders_dir)[0].values() if not stage.spec.draft]
        stages = [_once_more(shipped[place % len(shipped)], place // len(shipped)) for place in range(count)]
        return fill(values.database_url, socket, stages, people, attempts), stages[0].name, socket

    with served(filled) as (url, (token, stage, socket)):
        yield Term(url, token, stage, socket)


def _once_more(stage: Stage, again: int) -> Stage:
    found = copy.copy(stage)
    found.name = f"{stage.name}_{again}" if again else stage.name
    return found


def fill(url: str, socket: str, stages: list[Stage], people: int, attempts: int) -> str:
    """The course and its people, then every attempt. Returns the instructor's token. The same numbers each time."""
    draw = random.Random(19)  # noqa: S311 - sample data
    begun = now() - 10 * WEEK
    engine = create_engine(url, poolclass=pool.NullPool)
    with Session(engine) as session, session.begin():
        teacher = create_user(session, INSTRUCTOR, Role.SUBMITTER)
        _, token = create_token(session, teacher, days=9)
        users = _people(session, teacher, people)
        chosen = _schedule(session, stages, begun, users, draw)
    with psycopg.connect(host=socket, user="kernelgate", dbname="postgres") as connection:
        rows = list(_attempts(chosen, users, attempts, begun, draw))
        with connection.cursor().copy(_SUBMISSIONS) as copy:
            for row, _ in rows:
                copy.write_row(row)
        with connection.cursor().copy(_RESULTS) as copy:
            for _, results in rows:
                for result in results:
                    copy.write_row(result)
        connection.execute(
            "INSERT INTO workers (name, queues, backends, healthy, health, started_at, heartbeat_at) "
            "VALUES ('w', '{cpu}', '{torch}', true, '{}', now(), now() + interval '1 day')"
        )
        connection.commit()
        connection.autocommit = True
        connection.execute("VACUUM ANALYZE")
    return token


def _people(session: Session, teacher: User, people: int) -> list[int]:
    course = Course(name=COURSE, title="GPU programming, a whole term", late_days=5)
    session.add(course)
    session.flush()
    session.add(Member(course_id=course.id, user_id=teacher.id, role=CourseRole.INSTRUCTOR))
    users = [create_user(session, f"student{number:03}") for number in range(people)]
    teams = [Team(course_id=course.id, name=f"team {number}") for number in range(people // TEAM_OF)]
    session.add_all(teams)
    session.flush()
    for number, user in enumerate(users):
        team = teams[number // TEAM_OF].id if number // TEAM_OF < len(teams) else None
        person = {"email": f"{user.handle}@uni.example", "person": f"Student {number}"}
        session.add(Member(course_id=course.id, user_id=user.id, team_id=team, **person))
    return [user.id for user in users]


def _schedule(
    session: Session, stages: list[Stage], begun: datetime, users: list[int], draw: random.Random
) -> list[tuple[Stage, datetime]]:
    """A stage every five days, each with one of the late rules and of the ways to earn points; some people are given longer."""
    course = session.query(Course).one()
    found = []
    for place, stage in enumerate(stages):
        opens = begun + place * timedelta(days=5)
        due = opens + 2 * WEEK
        late = (LateRule.DAYS, LateRule.PENALTY, LateRule.NONE)[place % 3]
        rule = list(PointsRule)[place % 4]
        session.add(
            CourseStage(
                course_id=course.id, stage=stage.name, place=place, opens_at=opens, due_at=due, late=late, late_limit=3,
                late_percent=10, joint=place % 4 == 3, rule=rule, points=10, steps=[[0, 4], [1.5, 7], [2.0, 10]],
            )
        )  # fmt: skip
        for user in draw.sample(users, len(users) // 25):
            later = due + timedelta(days=draw.randint(1, 7))
            session.add(Extension(course_id=course.id, stage=stage.name, user_id=user, due_at=later, reason="ill"))
        found.append((stage, due))
    return found


def _attempts(
    stages: list[tuple[Stage, datetime]], users: list[int], attempts: int, begun: datetime, draw: random.Random
) -> Iterator[tuple[tuple[Any, ...], list[tuple[Any, ...]]]]:
    """Every attempt with its judgings. Whoever tries often enough passes; every fortieth was judged again later."""
    made = 0
    each = attempts / (len(users) * len(stages))
    files = {stage.name: sources(stage) for stage, _ in stages}
    for number, user in enumerate(users):
        diligence = draw.uniform(0.4, 1.6)
        for stage, due in stages:
            tries = min(max(0, round(draw.gauss(each * diligence, 2))), attempts - made)
            made += tries
            first = max(begun, due - timedelta(days=draw.uniform(0.5, 12)))
            for at in range(tries):
                created = min(first + (due + timedelta(days=1.5) - first) * at / max(tries, 1), now())
                verdict = _verdict(stage, at, tries, diligence, draw)
                text = _own(files[stage.name][(number + at) % len(files[stage.name])], number, at)
                yield _row(f"{made:08x}{number:04x}{at:04x}", user, stage, created, verdict, text, draw)


def _verdict(stage: Stage, at: int, tries: int, diligence: float, draw: random.Random) -> Verdict:
    if at >= 2 and draw.random() < 0.25 * diligence + at / (3 * tries):
        slow = stage.spec.gate is not None and draw.random() < 0.3
        return Verdict.GATE_MISSED if slow else Verdict.ACCEPTED
    return draw.choice((Verdict.WRONG_ANSWER, Verdict.WRONG_ANSWER, Verdict.COMPILE_ERROR, Verdict.RUNTIME_ERROR))


def sources(stage: Stage) -> list[str]:
    """Everything in the language that ships as a submission, of whatever stage: as different as what students write."""
    folders, suffix = {"starter", "solution", "submissions"}, Path(stage.spec.file).suffix
    shipped = sorted(path for path in stage.folder.parent.rglob(f"*{suffix}") if folders & set(path.parts))
    return [path.read_text() for path in shipped]


def _own(text: str, number: int, at: int) -> str:
    """A student's version of a file: other names for its long words, and a line of their own."""
    renamed = re.sub(r"\b(scores|values|output|tile|row|index)\b", rf"\1_{number}", text)
    return f"{renamed}\n# attempt {at} of student {number}\n"


def _row(
    name: str, user: int, stage: Stage, created: datetime, verdict: Verdict, text: str, draw: random.Random
) -> tuple[tuple[Any, ...], list[tuple[Any, ...]]]:
    timed = verdict in (Verdict.ACCEPTED, Verdict.GATE_MISSED) and stage.spec.gate is not None
    speedup = None
    if timed and stage.spec.gate is not None:
        speedup = round(
            stage.spec.gate.speedup * (1 + draw.random() if verdict is Verdict.ACCEPTED else 0.5 + 0.4 * draw.random()),
            3,
        )
    rounds = 2 if draw.random() < 1 / 40 else 1
    done = created + timedelta(seconds=9)
    reason = {Verdict.ACCEPTED: "passed", Verdict.GATE_MISSED: "too_slow", Verdict.WRONG_ANSWER: "wrong_value"}.get(
        verdict, "exception"
    )
    source = text.encode()
    model = "NVIDIA H200" if timed else None
    digest, backend = hashlib.sha256(source).hexdigest(), "gpu" if timed else "torch"
    row = (name, user, stage.name, stage.hash, stage.spec.file, source, digest, "web", "done", "cpu",
           rounds, 1, False, False, str(verdict), reason, backend, model, speedup, created, created, done)  # fmt: skip
    results = []
    for number in range(1, rounds + 1):
        judged = Verdict.WRONG_ANSWER if number < rounds and draw.random() < 0.2 else verdict
        body = _result(stage, judged, speedup if judged is verdict else None, draw)
        at = done + (number - 1) * 3 * WEEK
        own = speedup if judged is verdict else None
        low, high = (own * 0.996, own * 1.004) if own else (None, None)
        results.append((name, number, 1, "w", str(judged), reason, stage.hash, own, low, high, Jsonb(body), at))
    return row, results


def _result(stage: Stage, verdict: Verdict, speedup: float | None, draw: random.Random) -> dict[str, Any]:
    cases = stage.spec.cases[:24]
    right = len(cases) if verdict in (Verdict.ACCEPTED, Verdict.GATE_MISSED) else draw.randrange(max(len(cases), 1))
    mistakes = stage.spec.mistakes
    mistake = mistakes[draw.randrange(min(3, len(mistakes)))] if mistakes and verdict is Verdict.WRONG_ANSWER else None
    timing = None
    if speedup is not None:
        timing = Timing(
            baseline_ms=0.94, user_ms=0.94 / speedup, speedup=speedup,
            speedup_low=speedup * 0.996, speedup_high=speedup * 1.004, gate=1.8,
            baseline_samples_ms=(0.94,) * 30, user_samples_ms=(0.94 / speedup,) * 30,
        )  # fmt: skip
    found = Result.model_validate(
        {
            "verdict": verdict, "reason": "passed", "message": verdict.about.meaning,
            "stage": stage.name, "stage_hash": stage.hash,
            "backend": "gpu" if timing else stage.spec.backends[0], "seed": "00", "timing": timing,
            "cases": [
                CaseReport(name=case.name, title=case.title, group=case.group, state="right" if at < right else "wrong")
                for at, case in enumerate(cases)
            ],
            "mistake": NamedMistake(name=mistake.name, title=mistake.title, hint=mistake.hint) if mistake else None,
        }
    )  # fmt: skip
    return found.stored()


AFTER = "grid after an attempt"
PAGES = {
    "grid": "grid", AFTER: "grid", "grid of who looks stuck": "grid?show=stuck", "timeline": "people/student001/{stage}",
    "course": "", "changes": "changes", "people": "members", "board": "stages/{stage}",
}  # fmt: skip
EXPORTS = {
    "points.csv": "points?format=csv", "grid.csv": "grid?format=csv", "grid.json": "grid", "gradescope.zip": "gradescope.zip",
    "results.json": "people/student001/{stage}/results.json", "work log": "logs/student001",
    "similarity": "stages/{stage}/similarity",
}  # fmt: skip
LOADED = """(async () => {
  const table = document.querySelector('.course-grid');
  while (table && document.querySelector('[data-rest]')) await new Promise((next) => setTimeout(next, 10));
  const navigation = performance.getEntriesByType('navigation')[0];
  return [navigation.loadEventEnd, navigation.responseEnd, performance.now()];
})()"""


def opened(served: Term, opens: int) -> dict[str, list[float]]:
    """Milliseconds until each page's load event, its last byte, and (grids) its last row; and of the page's processor."""
    found: dict[str, list[float]] = {}
    chromium = next(path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        inside = context.new_cdp_session(page)
        inside.send("Performance.enable")
        page.goto(f"{served.url}/sign-in")
        page.get_by_text("With a token").click()
        page.get_by_label("Token").fill(served.token)
        page.get_by_role("button", name="Use the token").click()
        page.get_by_role("button", name="Sign out").wait_for()
        for name, path in PAGES.items():
            for _ in range(opens):
                page.goto("about:blank")
                if name == AFTER:
                    _attempted(served)
                before = _renderer_ms(inside)
                page.goto(f"{served.url}/courses/{COURSE}/{path.format(stage=served.stage)}".rstrip("/"))
                spent = _renderer_ms(inside) - before
                load, last, rows = page.evaluate(LOADED)
                found.setdefault(name, []).append(round(load, 1))
                found.setdefault(f"{name}, last byte", []).append(round(last, 1))
                found.setdefault(f"{name}, processor of the page", []).append(round(spent, 1))
                if name.startswith("grid"):
                    found.setdefault(f"{name}, all rows", []).append(round(rows, 1))
        browser.close()
    return found


def _renderer_ms(inside: CDPSession) -> float:
    found = inside.send("Performance.getMetrics")["metrics"]
    return 1000 * float(next(each["value"] for each in found if each["name"] == "ProcessTime"))


def fetched(served: Term, times: int) -> dict[str, list[float]]:
    """Milliseconds until each page and export is there, the first one cold, and of the service's and Postgres's processors
    meanwhile; similarity once, for it is kept."""
    found: dict[str, list[float]] = {}
    asked = [(f"page {name}", path, "text/html") for name, path in PAGES.items()]
    asked += [(name, path, "*/*") for name, path in EXPORTS.items()]
    with httpx.Client(headers={"Authorization": f"Bearer {served.token}"}, timeout=300) as client:
        for name, path, form in asked:
            address = f"{served.url}/courses/{COURSE}/{path.format(stage=served.stage)}".rstrip("/")
            for _ in range(1 if name == "similarity" else times):
                if AFTER in name:
                    _attempted(served)
                before, begun = spent_ms(), time.perf_counter()
                answer = client.get(address, headers={"Accept": form})
                answer.raise_for_status()
                found.setdefault(name, []).append(round(1000 * (time.perf_counter() - begun), 1))
                found.setdefault(f"{name}, processor", []).append(spent_ms() - before)
                found[f"{name}, bytes"] = [len(answer.content)]
    return found


def _attempted(served: Term) -> None:
    """What is kept of the course does not hold any more, as after somebody's attempt: one counts, or no longer."""
    with psycopg.connect(host=served.socket, user="kernelgate", dbname="postgres") as connection:
        connection.execute(
            "UPDATE submissions SET hidden = NOT hidden WHERE id = "
            "(SELECT id FROM submissions WHERE stage = %s ORDER BY created_at DESC LIMIT 1)",
            (served.stage,),
        )


def rejudged(served: Term) -> dict[str, list[float]]:
    """Milliseconds of looking at what judging a stage again would take up, and of doing it. What counts is fixed at the due
    time, so points that changed by it end the run."""
    found = {}
    course = f"{served.url}/courses/{COURSE}"
    with httpx.Client(headers={"Authorization": f"Bearer {served.token}"}, timeout=300) as client:
        before = client.get(f"{course}/points?format=csv").text
        for name, dry in (("rejudge of a stage, preview", True), ("rejudge of a stage", False)):
            begun = time.perf_counter()
            answer = client.post(f"{course}/stages/{served.stage}/rejudge", json={"dry_run": dry})
            answer.raise_for_status()
            found[name] = [round(1000 * (time.perf_counter() - begun), 1)]
        found["rejudge of a stage, submissions"] = [answer.json()["submissions"]]
        if client.get(f"{course}/points?format=csv").text != before:
            raise SystemExit("judging a stage again changed points that its due time had fixed")
    return found


def measured(people: int, stages: int, attempts: int, opens: int) -> dict[str, Any]:
    with term(people, attempts, stages) as served:
        before = os.getloadavg()[0]
        exports, pages = fetched(served, 3), opened(served, opens)
        exports |= rejudged(served)
    return {"people": people, "stages": stages, "attempts": attempts,
            "load_averages": [round(before, 1), round(os.getloadavg()[0], 1)],
            "opened_ms": pages, "fetched_ms": exports}  # fmt: skip


def show(found: dict[str, Any]) -> None:
    loads = found["load_averages"]
    size = f"{found['people']} people, {found['stages']} stages, {found['attempts']} attempts"
    print(f"\n{size}; {machine()}; load average {loads[0]} before, {loads[1]} after")
    for name, values in {**found["fetched_ms"], **found["opened_ms"]}.items():
        first, median, fastest = values[0], statistics.median(values), min(values)
        print(f"{name:48} first {first:10.1f}  median {median:10.1f}  fastest {fastest:10.1f}", flush=True)


def show_asked(found: dict[str, Any]) -> None:
    print(f"\nAsked of {found['people']} people and {found['stages']} stages, on a quiet machine:")
    for name, most in ASKED.items():
        values = {**found["fetched_ms"], **found["opened_ms"]}[name]
        value = statistics.median(values[1:] or values)
        print(f"{name:48} {value:10.1f} ms, at most {most:.0f}: {'met' if value <= most else 'MISSED'}")


def serve(people: int, stages: int, attempts: int) -> None:
    with term(people, attempts, stages) as served:
        print(served.url, served.token, flush=True)
        while True:
            time.sleep(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int)
    parser.add_argument("--stages", type=int, default=20)
    parser.add_argument("--attempts", type=int, default=33_000)
    parser.add_argument("--opens", type=int, default=5)
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    stated = parser.parse_args()
    terms = ((stated.people, stated.stages, stated.attempts),) if stated.people else TERMS
    if stated.serve:
        serve(*terms[-1])
    results = []
    for each in terms:
        results.append(measured(*each, stated.opens))
        show(results[-1])
    show_asked(results[-1])
    stated.output.parent.mkdir(parents=True, exist_ok=True)
    stated.output.write_text(json.dumps({"machine": machine(), "terms": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
