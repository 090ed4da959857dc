"""docs/alerts.yml: every rule is quiet while all is well, and fires in the condition it is for.

The rules are kept so plain (a selector compared with a number, at most an increase around it) that they are evaluated here on
what /metrics says, as Prometheus would: a series that is missing makes no alarm.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update

from kernelgate.db import engine, transaction
from kernelgate.models import EventRow, Role, Submission, WorkerRow, now
from kernelgate.settings import ROOT
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, add_worker, result_of

RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "docs" / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}
_EXPRESSION = re.compile(
    r"(?P<rise>increase\()?(?P<name>\w+)(\{(?P<labels>[^}]*)\})?(\[\w+\]\))? (?P<than>==|<|>) (?P<number>[\d.]+)"
)
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scraped(api: Api) -> Series:
    text = api.client.get("/metrics").text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return {(each.name, frozenset(each.labels.items())): each.value for each in samples}


def firing(alert: str, at: Series, before: Series | None = None) -> list[dict[str, str]]:
    """The labels of the series for which a rule is true; an increase is since the scrape `before`."""
    said = _EXPRESSION.fullmatch(RULES[alert]["expr"])
    assert said, RULES[alert]["expr"]
    wanted = set(re.findall(r'(\w+)="([^"]*)"', said["labels"] or ""))
    found = []
    for (name, labels), value in at.items():
        if name != said["name"] or not wanted <= labels:
            continue
        if said["rise"]:
            value -= (before or at).get((name, labels), value)
        goal = float(said["number"])
        if {"==": value == goal, "<": value < goal, ">": value > goal}[said["than"]]:
            found.append(dict(labels))
    return found


@pytest.fixture
def well(api: Api) -> Api:
    """A service in which everything is as it should be."""
    add_worker(queues=("cpu", "gpu-nvidia-h200"), gpu="NVIDIA H200")
    Graded.finish(api.submit(api.as_("ada"))["id"], result_of(Verdict.ACCEPTED))
    api.submit(api.as_("ada"))
    return api


def test_all_is_quiet_while_all_is_well(well: Api) -> None:
    before = scraped(well)
    Graded.finish(well.submit(well.as_("bob"))["id"], result_of(Verdict.WRONG_ANSWER))
    assert [alert for alert in RULES if firing(alert, scraped(well), before)] == []


def test_a_database_that_is_away_is_reported(well: Api, limits: Callable[..., None]) -> None:
    engine().dispose()
    engine.cache_clear()
    limits(database_url="postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert firing("KernelgateDatabaseDown", scraped(well)) == [{}]


def test_a_queue_whose_workers_are_gone_is_reported(well: Api) -> None:
    """Also when the last of them stopped long before the scrape: the series is there and says 0."""
    with transaction() as database:
        database.execute(update(WorkerRow).values(heartbeat_at=now() - timedelta(hours=3)))
    queues = sorted(each["queue"] for each in firing("KernelgateQueueUnserved", scraped(well)))
    assert queues == ["cpu", "gpu-nvidia-h200"]


def test_a_service_without_any_worker_is_reported(api: Api) -> None:
    assert [each["queue"] for each in firing("KernelgateQueueUnserved", scraped(api))] == ["cpu"]


def test_a_worker_that_takes_no_work_is_reported(well: Api) -> None:
    add_worker("w2", unwell="a test kernel computed 3 values wrongly")
    assert [each["queue"] for each in firing("KernelgateWorkerUnhealthy", scraped(well))] == ["cpu"]
    assert firing("KernelgateQueueUnserved", scraped(well)) == []


def test_what_waits_long_is_reported_and_what_is_judged_again_after_a_week_is_not(well: Api) -> None:
    admin = well.as_("root", Role.ADMIN)
    old = well.submit(well.as_("eve"))["id"]
    Graded.finish(old, result_of(Verdict.ACCEPTED))
    with transaction() as database:
        week = now() - timedelta(days=7)
        database.execute(update(Submission).where(Submission.id == old).values(created_at=week))
        database.execute(update(EventRow).where(EventRow.submission_id == old).values(at=week))
    assert admin.post(f"/admin/submissions/{old}/rejudge").json()["queue_position"] == 2, "it stands behind the other"
    assert firing("KernelgateWaiting", scraped(well)) == []
    assert admin.get("/admin/queue").json()["queues"][0]["oldest_queued_s"] < 60
    with transaction() as database:
        database.execute(update(EventRow).values(at=now() - timedelta(minutes=3)))
    assert [each["queue"] for each in firing("KernelgateWaiting", scraped(well))] == ["cpu"]


def test_the_first_failure_of_ours_is_reported(well: Api) -> None:
    """Its counter must have been there before, at 0, or it never rose."""
    before = scraped(well)
    Graded.finish(well.submit(well.as_("eve"))["id"], result_of(Verdict.JUDGE_ERROR))
    assert [each["stage"] for each in firing("KernelgateJudgeError", scraped(well), before)] == ["double"]


def test_a_held_result_is_reported_until_it_is_decided(well: Api) -> None:
    made = well.submit(well.as_("eve"))["id"]
    Graded.finish(made, result_of(Verdict.ACCEPTED, held="Faster than the card can be."))
    assert firing("KernelgateHeld", scraped(well)) == [{}]
    well.as_("root", Role.ADMIN).post(f"/admin/submissions/{made}/release")
    assert firing("KernelgateHeld", scraped(well)) == []


def test_every_rule_has_a_test_of_its_own() -> None:
    text = (ROOT / "tests" / "api" / "test_alerts.py").read_text()
    assert [alert for alert in RULES if f'firing("{alert}"' not in text] == []
