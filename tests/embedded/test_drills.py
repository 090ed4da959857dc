"""Fire drills: something dies in the middle of a grading, and no submission is lost and none is graded twice on record.

A service of its own (Postgres, broker, API, worker), with short leases and one small stage. The submissions are its solution,
which sleeps while it is loaded, so that there is a middle to die in.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, pool, text

from embedded import schema
from embedded.broker import Broker
from embedded.datadir import DataDir
from embedded.postgres import Postgres
from embedded.process import Child
from kernelgate.models import Role
from kernelgate.settings import ROOT, Settings, environment
from kernelgate.stage_folders import load_stage
from kernelgate.stages import Stage
from tests.conftest import free_port, make_account, take_stages_as_proven, wait_until_ready

pytestmark = pytest.mark.timeout(420)
STAGE = "attacked"
LIMITS = {"wall_s": 60, "case_s": 30}
"""Of the stage here: the sleep counts, and a machine may be busy."""
COUNT = 2
SLEEP_S = 2.0
PATIENCE_S = 150.0
BEGUN = "SELECT 1 FROM events WHERE submission_id = ANY(:ids) AND kind = 'phase' AND data->>'state' = 'started'"
WAITING = "SELECT id, state, attempt FROM submissions WHERE id = ANY(:ids) AND state <> 'done'"
RECORDED = """
    SELECT id, verdict,
        (SELECT count(*) FROM results WHERE submission_id = submissions.id),
        (SELECT count(*) FROM events WHERE submission_id = submissions.id AND kind = 'result')
    FROM submissions WHERE id = ANY(:ids)
"""


@dataclass
class Site:
    """A whole service whose parts can be killed one by one."""

    postgres: Postgres
    broker: Broker
    api: Child
    worker: Child
    client: httpx.Client
    stage: Stage

    def rows(self, query: str, ids: list[str]) -> list[tuple[object, ...]]:
        engine = create_engine(self.postgres.url(), poolclass=pool.NullPool)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query), {"ids": ids})]

    def submit(self, count: int = COUNT) -> list[str]:
        """Slow but honest submissions, each another file."""
        stage = self.stage
        source = stage.text(f"solution/{stage.spec.file}")
        slow = f"{source}\n\nimport time\n\ntime.sleep({SLEEP_S})\n"
        found = []
        for number in range(count):
            body = {"stage": STAGE, "filename": stage.spec.file, "source": f"{slow}# {time.time_ns()} {number}\n"}
            answer = self.client.post("/submit", json=body)
            assert answer.status_code == httpx.codes.ACCEPTED, answer.text
            found.append(str(answer.json()["id"]))
        return found

    def until_one_runs(self, ids: list[str]) -> None:
        """Until a grading of one of these is under way in the sandbox."""
        until(lambda: bool(self.rows(BEGUN, ids)), 60, lambda: self.worker.tail(40))
        time.sleep(0.3)

    def until_all_done(self, ids: list[str]) -> None:
        until(
            lambda: not self.rows(WAITING, ids),
            PATIENCE_S,
            lambda: f"{self.rows(WAITING, ids)}\n{self.worker.tail(40)}",
        )

    def assert_each_has_one_result(self, ids: list[str]) -> None:
        assert sorted(map(str, self.rows(RECORDED, ids))) == sorted(str((name, "accepted", 1, 1)) for name in ids)


def until(condition: Callable[[], bool], within_s: float, why: Callable[[], str] = lambda: "") -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"did not happen within {within_s:.0f} s: {why()}")
        time.sleep(0.1)


def patient_stage(graders: Path) -> Stage:
    """A folder of stages with one alone, whose limits leave time to sleep."""
    shutil.copytree(ROOT / "tests/exploits/stages" / STAGE, graders / STAGE)
    described = graders / STAGE / "stage.toml"
    text = described.read_text()
    for name, seconds in LIMITS.items():
        text, changed = re.subn(rf"^{name} = \d+$", f"{name} = {seconds}", text, flags=re.MULTILINE)
        assert changed == 1
    described.write_text(text)
    return load_stage(graders / STAGE)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    root = Path(tempfile.mkdtemp(prefix="kgd-"))
    root.chmod(0o711)
    data = DataDir(root)
    postgres, broker = Postgres(data), Broker(data)
    children: list[Child] = []
    try:
        postgres.start()
        broker.start()
        schema.upgrade(postgres.url())
        stage = patient_stage(root / "graders")
        values = Settings(
            database_url=postgres.url(),
            broker_url=broker.url,
            data_dir=root,
            graders_dir=root / "graders",
            port=free_port(),
            pending_limit=50,
            lease_s=6,
            heartbeat_s=1,
            sweep_s=1,
            ring_again_s=2,
        )
        take_stages_as_proven(values)
        for name in ("serve", "worker"):
            argv = [sys.executable, "-m", "kernelgate", name]
            children.append(Child(name, argv, log=data.log(name), env=environment(values), grace_s=35))
            children[-1].start()
        url = f"http://127.0.0.1:{values.port}"
        wait_until_ready(url, children)
        token = make_account(postgres.url(), "driller", Role.SUBMITTER)
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
            yield Site(postgres, broker, children[0], children[1], client, stage)
    finally:
        for child in reversed(children):
            child.stop()
        broker.stop()
        postgres.stop()
        data.release()
        shutil.rmtree(root, ignore_errors=True)


def children_of(pid: int) -> list[int]:
    """The processes whose parent is `pid`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
        except OSError:
            continue
        if int(words[1]) == pid:
            found.append(int(entry.name))
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def celery_of(site: Site) -> int:
    assert site.worker.pid is not None
    return next(pid for pid in children_of(site.worker.pid) if "celery" in command_of(pid))


def test_the_pool_process_is_killed_in_the_middle(site: Site) -> None:
    ids = site.submit()
    site.until_one_runs(ids)
    pool_process = next(pid for pid in children_of(celery_of(site)) if "celery" in command_of(pid))
    os.kill(pool_process, signal.SIGKILL)
    site.until_all_done(ids)
    site.assert_each_has_one_result(ids)


def test_the_worker_is_killed_in_the_middle(site: Site) -> None:
    ids = site.submit()
    site.until_one_runs(ids)
    assert site.worker.pid is not None
    celery = celery_of(site)
    os.kill(site.worker.pid, signal.SIGKILL)
    until(lambda: not site.worker.running, 10)
    # What the killed process had started must not go on beside the next worker.
    until(lambda: "celery" not in command_of(celery), 15, lambda: command_of(celery))
    site.worker.stop()
    site.worker.start()
    site.until_all_done(ids)
    site.assert_each_has_one_result(ids)


def test_the_broker_is_killed_in_the_middle_and_away_for_a_while(site: Site) -> None:
    ids = site.submit()
    site.until_one_runs(ids)
    assert site.broker.pid is not None
    os.kill(site.broker.pid, signal.SIGKILL)
    until(lambda: not site.broker.running, 10)
    # Nobody answers the bell, and a submission is taken all the same, promptly.
    started = time.monotonic()
    ids += site.submit(1)
    assert time.monotonic() - started < 5
    site.broker.start()
    site.until_all_done(ids)
    site.assert_each_has_one_result(ids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["restarted", "killed"])
def test_postgres_goes_away_in_the_middle(number: signal.Signals, site: Site) -> None:
    ids = site.submit()
    site.until_one_runs(ids)
    assert site.postgres.pid is not None
    os.kill(site.postgres.pid, number)
    until(lambda: not site.postgres.running, 20)
    time.sleep(1)
    site.postgres.start()
    site.until_all_done(ids)
    site.assert_each_has_one_result(ids)
    ready = site.client.get("/readyz")
    assert ready.status_code == httpx.codes.OK, ready.text


def test_everything_is_killed_at_once(site: Site) -> None:
    ids = site.submit()
    site.until_one_runs(ids)
    for victim in (site.worker, site.broker, site.postgres):
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
    until(lambda: not (site.worker.running or site.broker.running or site.postgres.running), 20)
    site.worker.stop()
    site.postgres.start()
    site.broker.start()
    site.worker.start()
    site.until_all_done(ids)
    site.assert_each_has_one_result(ids)
