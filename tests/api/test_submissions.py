"""One submission: who sees it, in which forms, its events, calling it off."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import text, update

from api.schemas import SubmissionView
from kernelgate.db import transaction
from kernelgate.models import Role, Submission
from kernelgate.protocol import EventKind
from kernelgate.verdicts import Verdict
from tests.api.conftest import HONEST, Api, Graded, problem, result_of, verify, write_stage


def test_a_finished_submission_has_its_whole_result(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    Graded.finish(made["id"], result_of(Verdict.WRONG_ANSWER))
    body = client.get(f"/submissions/{made['id']}").json()
    assert (body["state"], body["verdict"], body["reason"]) == ("done", "wrong_answer", "wrong_value")
    assert body["result"]["wrong"]["got"] == "NaN"
    assert body["result"]["mistake"]["name"] == "tripled"
    assert SubmissionView.model_validate(body).result is not None


def test_plain_text_is_the_evidence(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    waiting = client.get(f"/submissions/{made['id']}", headers={"Accept": "text/plain"})
    assert waiting.text.startswith("STATE    queued (no verdict yet)")
    assert f"/submissions/{made['id']}\nNEXT " in waiting.text
    address = waiting.text.split("AT ")[1].split()[0]
    assert client.get(address).json()["id"] == made["id"]
    Graded.finish(made["id"], result_of(Verdict.ACCEPTED, speedup=(2.0, 1.9, 2.1)))
    answer = client.get(f"/submissions/{made['id']}", headers={"Accept": "text/plain"})
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "DOUBLE BASELINE MS  2.0000" in answer.text


def test_the_source_is_text_to_be_saved_whatever_it_says(api: Api) -> None:
    client = api.as_("ada")
    made = client.post(
        "/submit", json={"stage": "double", "source": "<script>alert(1)</script>", "filename": 'a";x=".py'}
    ).json()
    answer = client.get(f"/submissions/{made['id']}/source")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"] == 'inline; filename="a__x__.py"'
    assert answer.text == "<script>alert(1)</script>"


PATHS = ["", "/source", "/events", "/cancel"]


@pytest.mark.parametrize("path", PATHS)
def test_the_submission_of_another_does_not_exist(api: Api, path: str) -> None:
    made = api.submit(api.as_("ada"))
    method = "POST" if path == "/cancel" else "GET"
    mallory = api.as_("mallory")
    there = mallory.request(method, f"/submissions/{made['id']}{path}")
    nowhere = mallory.request(method, f"/submissions/{'0' * 16}{path}")
    assert problem(there, 404, "unknown_submission") == problem(nowhere, 404, "unknown_submission")
    problem(api.client.request(method, f"/submissions/{made['id']}{path}"), 401, "not_signed_in")
    problem(api.client.request(method, f"/submissions/{'0' * 16}{path}"), 401, "not_signed_in")


def test_instructors_and_admins_read_it_and_only_admins_call_it_off(api: Api) -> None:
    made = api.submit(api.as_("ada"))
    teacher, admin = api.as_("teacher", Role.INSTRUCTOR), api.as_("root", Role.ADMIN)
    for reader in (teacher, admin):
        assert reader.get(f"/submissions/{made['id']}/source").text == HONEST
    problem(teacher.post(f"/submissions/{made['id']}/cancel"), 403, "missing_role")
    assert admin.post(f"/submissions/{made['id']}/cancel").json()["state"] == "cancelled"


def test_a_stage_may_show_sources_to_everyone_or_to_solvers(api: Api) -> None:
    for name, sources in (("open", "everyone"), ("solved", "solvers")):
        verify(write_stage(api.graders, name, sources=sources))
    api.app.state.catalog.reload()
    ada, bob = api.as_("ada"), api.as_("bob")
    shown, solved = api.submit(ada, stage="open"), api.submit(ada, stage="solved")
    assert api.client.get(f"/submissions/{shown['id']}/source").text == HONEST
    problem(bob.get(f"/submissions/{solved['id']}"), 404, "unknown_submission")
    Graded.finish(api.submit(bob, stage="solved")["id"], result_of(Verdict.ACCEPTED, stage="solved"))
    assert bob.get(f"/submissions/{solved['id']}/source").text == HONEST
    admin = api.as_("root", Role.ADMIN)
    admin.post(f"/admin/submissions/{solved['id']}/hide", json={})
    problem(bob.get(f"/submissions/{solved['id']}"), 404, "unknown_submission")
    assert ada.get(f"/submissions/{solved['id']}").json()["hidden"] is True


def test_where_a_gate_has_to_be_reached_right_values_alone_open_no_sources(api: Api) -> None:
    """On a machine without a GPU the unchanged starter has right values, and would be shown everybody's solutions."""
    verify(write_stage(api.graders, "gated", ranking="speedup", sources="solvers", gate=1.8))
    verify(write_stage(api.graders, "values", sources="solvers"))
    api.app.state.catalog.reload()
    bob = api.as_("bob")
    for stage, status in (("gated", 404), ("values", 200)):
        solved = api.submit(api.as_("ada"), stage=stage)["id"]
        Graded.finish(api.submit(bob, stage=stage)["id"], result_of(Verdict.CORRECT, stage=stage))
        assert bob.get(f"/submissions/{solved}/source").status_code == status
    Graded.finish(api.submit(bob, stage="gated")["id"], result_of(Verdict.ACCEPTED, stage="gated"))
    assert bob.get(f"/submissions/{api.submit(api.as_('ada'), stage='gated')['id']}/source").status_code == 200


def test_the_beginning_of_an_id_that_lists_show_is_enough(api: Api) -> None:
    ada, admin = api.as_("ada"), api.as_("root", Role.ADMIN)
    made = api.submit(ada)["id"]
    for length in (8, 11, 15):
        assert ada.get(f"/submissions/{made[:length]}").json()["id"] == made
    assert ada.get(f"/submissions/{made[:8]}/source").text == HONEST
    Graded.finish(made, result_of(Verdict.ACCEPTED))
    assert "event: result" in ada.get(f"/submissions/{made[:8]}/events").text
    assert admin.post(f"/admin/submissions/{made[:8]}/hide", json={}).json()["id"] == made
    assert admin.post(f"/admin/submissions/{made[:8]}/rejudge").json()["round"] == 2
    assert ada.post(f"/submissions/{made[:8]}/cancel").json()["id"] == made
    for wrong in (made[:7], made[:8].upper() + "x", made[:8] + "%", "________", made[1:9]):
        problem(ada.get(f"/submissions/{wrong}"), 404, "unknown_submission")
    problem(api.as_("bob").get(f"/submissions/{made[:8]}"), 404, "unknown_submission")
    problem(api.client.get(f"/submissions/{made[:8]}"), 401, "not_signed_in")


@pytest.mark.usefixtures("changed_schema")
def test_a_beginning_that_two_ids_share_means_the_one_that_may_be_seen(api: Api) -> None:
    ids = [api.submit(api.as_(handle))["id"] for handle in ("ada", "bob")]
    shared = ["0123456789abcdef", "01234567ffffffff"]
    with transaction() as database:
        database.execute(text("ALTER TABLE events DROP CONSTRAINT fk_events_submission_id"))
        for before, after in zip(ids, shared, strict=True):
            database.execute(update(Submission).where(Submission.id == before).values(id=after))
    assert api.as_("ada").get("/submissions/01234567").json()["id"] == shared[0]
    assert api.as_("bob").get("/submissions/01234567").json()["id"] == shared[1]
    admin = api.as_("root", Role.ADMIN)
    problem(admin.get("/submissions/01234567"), 404, "unknown_submission")
    answer = problem(admin.post("/admin/submissions/01234567/hide", json={}), 404, "unknown_submission")
    assert "ids of 2 submissions begin so" in answer["detail"]
    assert admin.get("/submissions/012345678").json()["id"] == shared[0]


def test_a_queued_submission_is_called_off_at_once(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    body = client.post(f"/submissions/{made['id']}/cancel").json()
    assert (body["state"], body["verdict"]) == ("cancelled", None)
    problem(client.post(f"/submissions/{made['id']}/cancel"), 409, "already_final")
    assert "cancelled" in client.get(f"/submissions/{made['id']}", headers={"Accept": "text/plain"}).text


def test_the_worker_of_a_running_one_is_asked_to_stop(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    Graded.run(made["id"])
    body = client.post(f"/submissions/{made['id']}/cancel").json()
    assert (body["state"], body["cancel_requested"]) == ("running", True)
    with transaction() as session:
        assert session.get_one(Submission, made["id"]).lease_owner == "fixture"


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(event name, data) of each event of a stream."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_events_are_replayed_then_come_live_and_end(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    with client.stream("GET", f"/submissions/{made['id']}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = events_of(answer.iter_lines())
        assert next(events)[1]["data"] == {"state": "queued", "attempt": 0}
        Graded.run(made["id"])
        started = time.monotonic()
        assert next(events)[1]["data"]["state"] == "running"
        Graded.event(made["id"], EventKind.CASE, {"index": 0, "total": 1, "name": "small", "state": "right", "ms": 1.0})
        name, event = next(events)
        assert (name, event["kind"], event["data"]["name"]) == ("case", "case", "small")
        Graded.finish(made["id"], result_of(Verdict.ACCEPTED))
        assert [name for name, _ in events] == ["state", "result"]
    assert time.monotonic() - started < 5, "live events come by notification, not by the heartbeat's look"


def test_a_stream_taken_up_again_misses_and_repeats_nothing(api: Api) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    Graded.run(made["id"])
    Graded.finish(made["id"], result_of(Verdict.ACCEPTED))
    path = f"/submissions/{made['id']}/events"
    whole = [event["id"] for _, event in events_of(iter(client.get(path).text.splitlines()))]
    assert len(whole) == 4
    rest = client.get(path, headers={"Last-Event-ID": str(whole[1])}).text
    assert [event["id"] for _, event in events_of(iter(rest.splitlines()))] == whole[2:]
    finished = client.get(path, headers={"Last-Event-ID": str(whole[-1])})
    assert (finished.status_code, finished.content) == (204, b"")


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 30, "1; DROP TABLE events"])
def test_a_last_event_id_that_is_none_is_refused(api: Api, value: str) -> None:
    client = api.as_("ada")
    made = api.submit(client)
    answer = client.get(f"/submissions/{made['id']}/events", headers={"Last-Event-ID": value})
    assert problem(answer, 422, "invalid_field")["errors"][0]["field"] == "header.last-event-id"


def test_streams_of_one_user_are_limited_and_given_back(api: Api, limits: Callable[..., None]) -> None:
    limits(streams_per_user=2)
    client = api.as_("ada")
    path = f"/submissions/{api.submit(client)['id']}/events"
    with client.stream("GET", path) as first, client.stream("GET", path) as second:
        assert first.status_code == second.status_code == 200
        answer = client.get(path)
        problem(answer, 429, "too_many_streams")
        assert answer.headers["retry-after"]
    _until(lambda: api.app.state.streams.total == 0)
    with client.stream("GET", path) as again:
        assert again.status_code == 200


def _until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.02)


def test_a_quiet_stream_has_heartbeats(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.events.HEARTBEAT_S", 0.1)
    client = api.as_("ada")
    with client.stream("GET", f"/submissions/{api.submit(client)['id']}/events") as answer:
        assert any(line == ": still here" for line in answer.iter_lines())


def test_streams_live_through_a_lost_listening_connection(api: Api) -> None:
    """Every connection to the database is ended, as by a restart; the stream stays open and goes on by itself."""
    client = api.as_("ada")
    made = api.submit(client)
    with client.stream("GET", f"/submissions/{made['id']}/events") as answer:
        events = events_of(answer.iter_lines())
        next(events)
        with transaction() as session:
            ended = session.execute(
                text(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            ).scalar_one()
        assert ended >= 1
        started = time.monotonic()
        Graded.run(made["id"])
        assert next(events)[1]["data"]["state"] == "running"
        assert time.monotonic() - started < 10
        Graded.finish(made["id"], result_of(Verdict.ACCEPTED))
        assert [name for name, _ in events] == ["state", "result"]


def test_a_server_that_stops_ends_its_streams(api: Api) -> None:
    client = api.as_("ada")
    with client.stream("GET", f"/submissions/{api.submit(client)['id']}/events") as answer:
        lines = answer.iter_lines()
        next(lines)
        threading.Timer(0.2, api.app.state.hub.end_streams).start()
        started = time.monotonic()
        assert list(lines)
    assert time.monotonic() - started < 5


def test_my_submissions_come_newest_first_in_pages(api: Api, limits: Callable[..., None]) -> None:
    limits(pending_limit=10)
    client = api.as_("ada")
    made = [api.submit(client)["id"] for _ in range(5)]
    api.submit(api.as_("bob"))
    Graded.finish(made[0], result_of(Verdict.ACCEPTED))
    seen, address = [], "/me/submissions?limit=2"
    while address:
        page = client.get(address).json()
        seen += [item["id"] for item in page["items"]]
        address = page["next"]
    assert seen == made[::-1]
    assert [item["id"] for item in client.get("/me/submissions?verdict=accepted").json()["items"]] == made[:1]
    assert len(client.get("/me/submissions?state=queued").json()["items"]) == 4
    assert client.get("/me/submissions?stage=other").json()["items"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=999", "limit=x", "before=nothing", "verdict=best", "state=lost"])
def test_a_page_that_cannot_be_is_refused(api: Api, query: str) -> None:
    body = problem(api.as_("ada").get(f"/me/submissions?{query}"), 422, "invalid_field")
    assert body["errors"][0]["field"] == "query." + query.split("=")[0]


def test_ids_are_looked_up_and_nothing_else(api: Api) -> None:
    client = api.as_("ada")
    for id_ in ("..", "%2e%2e%2fetc", "x" * 63, "%00", "' OR 1=1 --"):
        answer = client.get(httpx.URL(api.url).join(f"/submissions/{id_}/source"))
        assert answer.status_code in (404, 422), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "address",
    ["/submissions/a%00", "/stages/a%00", "/me/submissions?stage=a%00", "/leaderboard/double?gpu=%00", "/invite/%00"],
)
def test_an_address_with_a_nul_is_refused(api: Api, address: str) -> None:
    problem(api.as_("ada").get(address), 422, "invalid_field")
