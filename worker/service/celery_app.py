"""The Celery application. Started by `kernelgate worker`: a pool process for each slot, one submission at a time in each.

The broker is a doorbell: a message is acknowledged before the work starts and may be lost, doubled or late, because the
claim in Postgres decides. So none of Celery's own retries, late acknowledgements or results are used.
"""

from __future__ import annotations

import logging

from billiard import current_process
from celery import Celery
from celery.signals import worker_process_init, worker_process_shutdown

from kernelgate import db
from kernelgate.protocol import GRADE_TASK
from kernelgate.settings import settings
from worker.backends import open_sandbox, warm
from worker.sandbox import Sandbox
from worker.service import tasks
from worker.service.die_with_parent import die_with_parent

RESTORE_S = 2

app = Celery("kernelgate", broker=settings().broker_url, set_as_current=True)
app.conf.update(
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        # A message that died with a worker comes back after this long instead of kombu's 100 s a scan.
        "unacked_restore_interval": RESTORE_S,
        "unacked_restore_throttle": 1,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "health_check_interval": 10,
    },
    result_backend=None,
    task_acks_late=False,
    task_ignore_result=True,
    task_serializer="json",
    accept_content=["json"],
    worker_concurrency=1,
    worker_disable_prefetch=True,
    worker_hijack_root_logger=False,
    worker_pool="prefork",
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
)

log = logging.getLogger(__name__)
_sandbox: Sandbox | None = None


@app.task(name=GRADE_TASK, ignore_result=True)
def grade(submission_id: str) -> None:
    if _sandbox is None:
        raise RuntimeError("the pool process has no sandbox: start workers with `kernelgate worker`")
    log.debug("rung for %s", submission_id)
    tasks.run(_sandbox)


def process_index() -> int:
    """This pool process's place among those of its worker; one that takes a dead one's place takes its number."""
    return int(getattr(current_process(), "index", 0))


@worker_process_init.connect
def start_process(**_: object) -> None:
    """In a fresh pool process: dies with its parent, has connections and a sandbox of its own."""
    global _sandbox
    die_with_parent()
    db.reset()
    _sandbox = open_sandbox(slot=process_index())
    warm()


@worker_process_shutdown.connect
def stop_process(**_: object) -> None:
    if _sandbox is not None:
        _sandbox.close()
