"""Alive, ready, measured."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from sqlalchemy import text

from kernelgate.db import engine, transaction
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, add_worker, result_of


def test_alive(api: Api) -> None:
    assert api.client.get("/livez").text == "alive\n"


def test_ready_when_a_submission_would_be_graded(api: Api) -> None:
    add_worker()
    answer = api.client.get("/readyz")
    body = answer.json()
    assert answer.status_code == 200, body
    assert (body["ready"], body["problems"], body["migrations"]) == (True, [], "at head")
    assert (body["database"], body["broker"], body["live_workers"]) == (True, True, {"cpu": 1})
    assert (body["stages_open"], body["oldest_queued_s"]) == (["double"], None)
    api.submit(api.as_("ada"))
    assert 0 <= api.client.get("/readyz").json()["oldest_queued_s"] < 60


def not_ready(api: Api) -> str:
    answer = api.client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["ready"] is False
    return "\n".join(answer.json()["problems"])


def test_not_ready_without_a_live_worker(api: Api) -> None:
    add_worker(age_s=3600)
    assert "no worker is alive" in not_ready(api)


def test_not_ready_when_a_queue_is_served_by_nobody(api: Api) -> None:
    add_worker(queues=("gpu-x",), gpu="X")
    api.submit(api.as_("ada"))
    assert "wait in the queue cpu" in not_ready(api)


def test_a_worker_with_an_unwell_card_is_named(api: Api) -> None:
    add_worker("w1", queues=("cpu", "gpu-x"), gpu="X", unwell="a test kernel computed wrongly\x1b")
    assert "the worker w1 takes no work: a test kernel computed wrongly" in not_ready(api)
    add_worker("w2", queues=("cpu", "gpu-x"), gpu="X")
    body = api.client.get("/readyz").json()
    assert (body["ready"], body["problems"]) == (True, [])
    assert body["unwell_workers"] == {"w1": "a test kernel computed wrongly\N{REPLACEMENT CHARACTER}"}
    assert body["live_workers"] == {"cpu": 1, "gpu-x": 1}


def test_not_ready_without_an_open_stage(api: Api) -> None:
    add_worker()
    with transaction() as session:
        session.execute(text("UPDATE stage_versions SET verified = false"))
    assert "no stage takes submissions" in not_ready(api)


def test_not_ready_at_another_revision(api: Api) -> None:
    with transaction() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'older'"))
    assert "kernelgate migrate" in not_ready(api)


def test_not_ready_without_broker_or_database(api: Api, limits: Callable[..., None]) -> None:
    engine().dispose()
    engine.cache_clear()
    limits(broker_url="redis://127.0.0.1:1/0", database_url="postgresql+psycopg://nobody@127.0.0.1:1/none")
    problems = not_ready(api)
    assert "the broker does not answer" in problems
    assert "the database does not answer" in problems


def test_metrics_count_what_happens(api: Api) -> None:
    client = api.as_("ada")
    Graded.finish(api.submit(client)["id"], result_of(Verdict.WRONG_ANSWER))
    api.submit(client)
    add_worker()
    api.client.get("/nothing/<script>")
    answer = api.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in (
        'kernelgate_queue_depth{queue="cpu",state="queued"} 1.0',
        'kernelgate_verdicts_total{stage="double",verdict="wrong_answer"} 1.0',
        'kernelgate_workers{healthy="true",queue="cpu"} 1.0',
        'kernelgate_http_requests_total{method="POST",route="/submit",status="202"} 2.0',
        'kernelgate_http_requests_total{method="GET",route="(no route)",status="404"} 1.0',
        "kernelgate_database_up 1.0",
        "kernelgate_event_streams 0.0",
    ):
        assert line in answer.text, line
    assert re.search(r'kernelgate_queue_oldest_seconds\{queue="cpu"\} \d', answer.text)
    assert re.search(r'kernelgate_grading_seconds\{quantile="0.95"\} \d', answer.text)
    assert "script" not in answer.text


def test_metrics_say_that_the_database_is_away(api: Api, limits: Callable[..., None]) -> None:
    engine().dispose()
    engine.cache_clear()
    limits(database_url="postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert "kernelgate_database_up 0.0" in api.client.get("/metrics").text


HEADERS = {
    "content-security-policy": "default-src 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=()",
    "cache-control": "no-store",
}


@pytest.mark.parametrize(
    "path", ["/stages", "/nothing", "/me", "/metrics", "/openapi.json", "/leaderboard/x", "/static/x"]
)
def test_every_answer_carries_the_security_headers(api: Api, path: str) -> None:
    answer = api.client.get(path)
    for name, start in HEADERS.items():
        assert answer.headers[name].startswith(start)
    policy = answer.headers["content-security-policy"]
    for part in ("frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'", "script-src 'self'"):
        assert part in policy.split("; ")
    assert "unsafe" not in policy
    assert "server" not in answer.headers or "uvicorn" in answer.headers["server"]


@pytest.mark.usefixtures("changed_schema")
def test_a_failure_of_ours_is_a_problem_with_headers_and_without_details(api: Api) -> None:
    with transaction() as session:
        session.execute(text("DROP TABLE stage_switches"))
    answer = api.client.get("/stages")
    assert answer.status_code == 500
    assert answer.json()["code"] == "internal_error"
    assert "stage_switches" not in answer.text
    assert answer.headers["content-security-policy"]


def test_a_wrong_method_names_the_right_ones(api: Api) -> None:
    answer = api.client.delete("/stages")
    assert answer.status_code == 405
    assert answer.json()["code"] == "method_not_allowed"
    assert answer.headers["allow"] == "GET"


def test_logs_name_routes_and_no_secret(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    """An invite's secret is part of its address, and an address may hold line ends for whoever reads the log."""
    caplog.set_level("INFO", logger="api.requests")
    api.client.post("/invite/kgi_verysecret", json={"handle": "ada"})
    api.client.get("/x%0aINFO%20forged")
    logged = "\n".join(record.getMessage() for record in caplog.records if record.name == "api.requests")
    assert "POST /invite/{secret} 404" in logged
    assert "verysecret" not in logged
    assert "forged" not in logged
