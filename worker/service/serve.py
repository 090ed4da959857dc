"""The process behind `kernelgate worker`: keeps a Celery worker running, sweeps, and says that this host is alive.

It is a process of its own so that a pool child that hangs or dies takes neither the sweeper nor the heartbeat with it, and
so that Celery is not PID 1 in a container. A Celery worker that has gone deaf (alive, connected, and taking nothing while
submissions wait) is restarted: a live process is not yet a working one. While the card is not well, no Celery runs.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.exc import SQLAlchemyError

from kernelgate.db import transaction
from kernelgate.models import Submission, now
from kernelgate.protocol import GRADE_TASK
from kernelgate.settings import environment, settings
from kernelgate.verdicts import State
from worker.gpu import bench_client, nvml
from worker.gpu.health import recovered, why_unwell
from worker.leases.identity import host_name
from worker.leases.sweep import sweep
from worker.service.celery_app import app
from worker.service.die_with_parent import die_with_parent
from worker.service.registration import forget_worker, queues, report_worker, slots, worker_name
from worker.stages.opening import open_shipped, unproven

log = logging.getLogger(__name__)
STOP_S = 15.0
DEAF_S = 60.0
UNWELL_S = 30.0
"""Between two looks at a card that was found unwell."""


class Worker:
    """A Celery child and the chores around it. `run` returns when a signal asks for it or when the child keeps dying."""

    def __init__(self) -> None:
        self.name = worker_name()
        self.started = now()
        self._stop = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._verifying: subprocess.Popen[bytes] | None = None
        self._due: dict[str, float] = {}
        self._proving_own = False
        self._first_look = True
        self._look_again = 0.0

    def run(self) -> int:
        """Works until SIGTERM or SIGINT; the exit status is 0 then, and Celery's when it ended by itself."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked)
        chores: tuple[tuple[str, float, Callable[[], object]], ...] = (
            ("card", 1.0, self._mind_card),
            ("heartbeat", settings().heartbeat_s, self._report),
            ("sweep", settings().sweep_s, self._sweep),
            ("stages", settings().sweep_s, self._mind_stages),
            ("deafness", DEAF_S / 2, self._restart_if_deaf),
        )
        try:
            while not self._stop.wait(0.1):
                if self._child is not None and self._child.poll() is not None:
                    return self._child.returncode or 1
                for name, every, chore in chores:
                    self._when_due(name, every, chore)
        finally:
            self._end()
        return 0

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        self._stop.set()

    def _when_due(self, name: str, every: float, chore: Callable[[], object]) -> None:
        """A chore that fails for want of a database is tried again at its next turn."""
        if time.monotonic() >= self._due.get(name, 0.0):
            self._due[name] = time.monotonic() + every
            try:
                chore()
            except SQLAlchemyError as error:
                log.warning("%s: %s", name, type(error).__name__)

    def _mind_card(self) -> None:
        """Takes work while the card is well; stops, and says so at once, when the grading process found it unwell."""
        why = why_unwell()
        if why is not None and self._child is not None:
            _stop(self._child)
            self._child = None
            self._report()
        elif why is not None and time.monotonic() >= self._look_again:
            recovered(bench_client.look)
            self._look_again = time.monotonic() + UNWELL_S
        elif why is None and self._child is None:
            self._child = _celery()
            self._report()

    def _report(self) -> None:
        why = why_unwell()
        health = {"pid": os.getpid(), "verifying": self._verifying_now(), "cards": nvml.cards()}
        report_worker(
            self.name, self.started, healthy=why is None, health=health if why is None else {"card": why, **health}
        )

    def _sweep(self) -> None:
        swept = sweep(_ring, host=host_name())
        if swept and (swept.requeued or swept.given_up):
            log.warning("swept: requeued %s, gave up %s", swept.requeued, swept.given_up)

    def _mind_stages(self) -> None:
        """Opens what shipped as proven at once, and proves what nobody has proven, then what has not been proven here.

        An administrator's own version is closed until then, so it is proven on the cores that are idle, and at once. One that
        shipped is open: its proof uses time that nobody wants, and is begun again after any of the others. One that failed is
        tried again when a worker starts, and by `kernelgate stage verify --record FOLDER`.
        """
        if self._child is None or (self._proving_own and self._verifying_now()):
            return
        waiting = unproven(failed_too=self._first_look)
        if waiting.own and (names := open_shipped()):
            log.info("open, for they shipped as proven: %s", ", ".join(names))
            waiting = unproven(failed_too=self._first_look)
        self._first_look = False
        if waiting.own:
            self._prove(waiting.own, "--jobs", str(max(1, (os.cpu_count() or 1) // 2)), nice=5)
        elif waiting.shipped and not self._verifying_now():
            self._prove(waiting.shipped, "--give-way", nice=19)
        self._proving_own = bool(waiting.own)

    def _verifying_now(self) -> bool:
        return self._verifying is not None and self._verifying.poll() is None

    def _prove(self, folders: list[Path], *how: str, nice: int) -> None:
        if self._verifying is not None:
            _stop(self._verifying)
        command = [sys.executable, "-m", "kernelgate", "stage", "verify", "--record", "--brief", *how]
        self._verifying = _start(["nice", "-n", str(nice), *command, *map(str, folders)])

    def _restart_if_deaf(self) -> None:
        if self._child is not None and _waits_unheard(self.started):
            log.error("submissions wait and none was claimed for %g s: restarting Celery", DEAF_S)
            _stop(self._child)
            self._child = _celery()

    def _end(self) -> None:
        for child in (self._verifying, self._child):
            if child is not None:
                _stop(child)
        try:
            forget_worker(self.name)
        except SQLAlchemyError as error:
            log.warning("could not take this worker's row away: %s", type(error).__name__)


def _celery() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "celery", "-A", "worker.service.celery_app", "worker"]
    size = ["--concurrency", str(slots())]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", f"--loglevel={settings().log_level}"]
    where = ["--queues", ",".join(queues()), "--hostname", f"kernelgate-{os.getpid()}@%h"]
    return _start([*command, *size, *quiet, *where])


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """A child that a killed parent takes along: the next worker must not find it still grading."""
    env = environment(settings())
    # The parent has one thread when it starts children, so nothing it could hold is held between fork and exec.
    return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Asks first: Celery lets a running submission end. What has not ended after STOP_S is queued again by the sweeper."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _waits_unheard(started: datetime) -> bool:
    """Whether something has waited on our queues for DEAF_S while this host claimed nothing at all."""
    long_ago = now() - timedelta(seconds=DEAF_S)
    if started > long_ago:
        return False
    here = Submission.queue.in_(queues())
    with transaction() as session:
        waiting = session.scalar(_count(here, Submission.state == State.QUEUED, Submission.created_at < long_ago))
        claimed = session.scalar(_count(here, Submission.claimed_at > long_ago))
        running = session.scalar(_count(here, Submission.state == State.RUNNING))
    return bool(waiting) and not claimed and not running


def _count(*conditions: ColumnElement[bool]) -> Select[int]:
    return select(func.count()).select_from(Submission).where(*conditions)


def _ring(submission_id: str, queue: str) -> None:
    """Rings for a swept submission. A broker that is away is rung again at the next sweep."""
    try:
        app.send_task(GRADE_TASK, args=[submission_id], queue=queue, retry=False, ignore_result=True)
    except Exception as error:  # kombu lets its transport's exceptions through
        log.warning("could not ring for %s: %s", submission_id, type(error).__name__)
