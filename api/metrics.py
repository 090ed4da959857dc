"""What Prometheus reads: this process's requests, and what Postgres says of queues, verdicts and workers when it is asked.

Numbers about submissions come from Postgres at each scrape, so they are the same whichever API process is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from api.queues import alive_since
from kernelgate.db import transaction
from kernelgate.models import Submission
from kernelgate.protocol import CPU_QUEUE
from kernelgate.turns import queued_since
from kernelgate.verdicts import State

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Metrics:
    """The registry of one application."""

    def __init__(self, open_streams: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "kernelgate_http_requests",
            "Requests answered by this process.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "kernelgate_http_request_seconds",
            "Time to answer a request.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self.registry,
        )
        streams = Gauge("kernelgate_event_streams", "Open event streams of this process.", registry=self.registry)
        streams.set_function(open_streams)
        self.registry.register(FromPostgres())

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        if not route.endswith("/events"):  # a stream lasts as long as its submission, which says nothing of the service
            self._seconds.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        return generate_latest(self.registry)


class FromPostgres(Collector):
    """Gauges read from Postgres at each scrape. When it does not answer, `kernelgate_database_up` is 0 and they are missing."""

    def describe(self) -> list[Metric]:
        """Nothing: registering must not ask the database."""
        return []

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("kernelgate_database_up", "1 when Postgres answers.")
        try:
            with transaction() as database:
                found = [metric for read in _READ for metric in read(database)]
        except (DBAPIError, PoolTimeoutError):
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from found


def _queues(database: Session) -> Iterator[Metric]:
    depth = GaugeMetricFamily(
        "kernelgate_queue_depth", "Submissions in a state that is not final.", labels=("queue", "state")
    )
    oldest = GaugeMetricFamily(
        "kernelgate_queue_oldest_seconds",
        "Since the longest-waiting one was queued.",
        labels=("queue",),
    )
    rows = database.execute(
        select(
            Submission.queue,
            Submission.state,
            func.count(),
            func.extract("epoch", func.now() - func.min(queued_since())),
        )
        .where(Submission.state.in_([State.QUEUED, State.RUNNING]))
        .group_by(Submission.queue, Submission.state)
    )
    for queue, state, count, age in rows:
        depth.add_metric([queue, state], count)
        if state == "queued":
            oldest.add_metric([queue], max(float(age), 0.0))
    yield depth
    yield oldest


def _verdicts(database: Session) -> Iterator[Metric]:
    counted = CounterMetricFamily("kernelgate_verdicts", "Judgings by verdict.", labels=("stage", "verdict"))
    # A counter that appears with its first count never rose, as Prometheus sees it: our own failures begin at 0.
    rows = database.execute(
        text(
            "SELECT stage, verdict, count FROM judgings UNION ALL "
            "SELECT DISTINCT stage, 'judge_error', 0 FROM stage_versions v "
            "WHERE NOT EXISTS (SELECT FROM judgings j WHERE j.stage = v.stage AND j.verdict = 'judge_error')"
        )
    )
    for stage, verdict, count in rows:
        counted.add_metric([stage, verdict], count)
    yield counted


def _durations(database: Session) -> Iterator[Metric]:
    waited = GaugeMetricFamily(
        "kernelgate_wait_seconds", "Submit to claim, of the last hour's finished submissions.", labels=("quantile",)
    )
    took = GaugeMetricFamily(
        "kernelgate_grading_seconds", "Claim to verdict, of the last hour's finished submissions.", labels=("quantile",)
    )
    quantiles = (0.5, 0.95)
    waits, gradings = database.execute(
        text(
            "SELECT percentile_cont(:q) WITHIN GROUP (ORDER BY extract(epoch FROM claimed_at - created_at)), "
            "percentile_cont(:q) WITHIN GROUP (ORDER BY extract(epoch FROM finished_at - claimed_at)) FROM submissions "
            "WHERE state = 'done' AND round = 1 AND trial IS NULL AND created_at > now() - interval '1 hour'"
        ),
        {"q": [*quantiles]},
    ).one()
    for quantile, wait, grading in zip(quantiles, waits or (), gradings or (), strict=False):
        waited.add_metric([str(quantile)], float(wait))
        took.add_metric([str(quantile)], float(grading))
    yield waited
    yield took


def _workers(database: Session) -> Iterator[Metric]:
    """Also of queues whose workers are gone: a series that is missing raises no alarm."""
    live = GaugeMetricFamily("kernelgate_workers", "Workers with a recent heartbeat.", labels=("queue", "healthy"))
    rows = database.execute(
        text(
            "WITH served AS (SELECT queue, healthy, heartbeat_at >= :since AS alive FROM workers, unnest(queues) AS queue "
            "WHERE heartbeat_at >= now() - interval '7 days'), "
            "known AS (SELECT queue FROM served UNION SELECT :cpu UNION "
            "SELECT queue FROM submissions WHERE state IN ('queued', 'running')) "
            "SELECT known.queue, state.healthy, (SELECT count(*) FROM served WHERE alive AND served.queue = known.queue "
            "AND served.healthy = state.healthy) FROM known, (VALUES (true), (false)) AS state (healthy) ORDER BY 1, 2"
        ),
        {"since": alive_since(), "cpu": CPU_QUEUE},
    )
    for queue, healthy, count in rows:
        live.add_metric([queue, str(healthy).lower()], count)
    yield live


def _held(database: Session) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("kernelgate_held", "Submissions held back until an administrator decides.")
    count = database.scalar(text("SELECT count(*) FROM submissions WHERE held IS NOT NULL AND NOT hidden"))
    waiting.add_metric([], count or 0)
    yield waiting


_READ = (_queues, _verdicts, _durations, _workers, _held)
