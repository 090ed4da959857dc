"""Whether this service can take a submission and grade it, and if not, everything that is in the way."""

from __future__ import annotations

from collections import Counter
from functools import cache

from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from api.catalog import Catalog, standings
from api.doorbell import broker_problem
from api.queues import live_workers, unwell_workers
from api.schemas import Readiness
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.settings import ROOT, settings
from kernelgate.text import line
from kernelgate.turns import queued_since
from kernelgate.verdicts import State

AT_HEAD = "at head"


@cache
def _head() -> str | None:
    return ScriptDirectory(str(ROOT / "migrations")).get_current_head()


def migrations(database: Session) -> str:
    """`at head`, or which revision the database is at and which it should be at."""
    current = MigrationContext.configure(database.connection()).get_current_revision()
    return AT_HEAD if current == _head() else f"at {current}, this version needs {_head()}"


def readiness(catalog: Catalog) -> Readiness:
    """Asks the database, the broker and the workers' heartbeats; takes a few milliseconds, with a dead broker a second."""
    broken = broker_problem(settings().ring_timeout_s)
    answer = Readiness(
        ready=False,
        problems=[],
        database=False,
        broker=broken is None,
        migrations="unknown",
        live_workers={},
        stages_open=[],
    )
    if broken is not None:
        answer.problems.append(f"the broker does not answer: {broken}")
    try:
        with transaction() as database:
            answer.database = True
            answer.migrations = migrations(database)
            if answer.migrations == AT_HEAD:
                _ask(database, catalog, answer)
            else:
                answer.problems.append(f"the database's schema is {answer.migrations}: run `kernelgate migrate`")
    except (DBAPIError, PoolTimeoutError) as error:
        answer.database = False
        answer.problems.append(f"the database does not answer: {type(error).__name__}")
    answer.ready = not answer.problems
    return answer


def _ask(database: Session, catalog: Catalog, answer: Readiness) -> None:
    queued = select(Submission.queue, func.extract("epoch", func.now() - func.min(queued_since())))
    ages = {
        queue: float(age)
        for queue, age in database.execute(queued.where(Submission.state == State.QUEUED).group_by(Submission.queue))
    }
    answer.oldest_queued_s = max(ages.values(), default=None)
    answer.live_workers = dict(Counter(queue for worker in live_workers(database) for queue in worker.queues))
    for worker in unwell_workers(database):
        why = line(str(worker.health.get("card", "it does not say why")), 500)
        answer.unwell_workers[worker.name] = why
        if not set(worker.queues) <= set(answer.live_workers):
            answer.problems.append(f"the worker {worker.name} takes no work: {why}")
    if not answer.live_workers:
        answer.problems.append("no worker is alive: start one with `kernelgate worker`")
    for queue in ages:
        if answer.live_workers and queue not in answer.live_workers:
            answer.problems.append(f"submissions wait in the queue {queue}, which no live worker serves")
    found = standings(database, catalog.stages())
    answer.stages_open = [name for name, standing in found.items() if standing.open]
    if not answer.stages_open:
        answer.problems.append("no stage takes submissions: `kernelgate stage verify` says why")
