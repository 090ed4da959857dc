"""Submitting: the two forms of a request, waiting, idempotency, and what is refused at the door."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from sqlalchemy import func, select

from kernelgate.db import engine, transaction
from kernelgate.models import EventRow, Submission
from kernelgate.verdicts import Verdict
from tests.api.conftest import HONEST, Api, Graded, problem, result_of, verify, write_stage


def test_multipart_gives_202_with_id_and_addresses(api: Api) -> None:
    client = api.as_("ada")
    answer = client.post("/submit", data={"stage": "double"}, files={"file": ("double.py", HONEST)})
    body = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == body["urls"]["submission"]
    assert (body["state"], body["queue"], body["queue_position"]) == ("queued", "cpu", 1)
    assert client.get(body["urls"]["submission"]).json()["id"] == body["id"]
    assert client.get(body["urls"]["source"]).text == HONEST


def test_json_does_the_same(api: Api) -> None:
    client = api.as_("ada")
    answer = client.post("/submit", json={"stage": "double", "source": HONEST})
    body = answer.json()
    assert answer.status_code == 202
    assert body["filename"] == "double.py"
    assert client.get(body["urls"]["source"]).content == HONEST.encode()


def test_a_submission_is_stored_with_its_first_event(api: Api) -> None:
    body = api.submit(api.as_("ada"))
    with transaction() as session:
        event = session.scalars(select(EventRow).where(EventRow.submission_id == body["id"])).one()
    assert (event.kind, event.data) == ("state", {"state": "queued", "attempt": 0})


def test_wait_gives_the_finished_result(api: Api) -> None:
    client = api.as_("ada")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(
            client.post, "/submit", data={"stage": "double", "wait": "20"}, files={"file": ("double.py", HONEST)}
        )
        Graded.finish(_only_submission(), result_of(Verdict.ACCEPTED))
        answer = waiting.result(timeout=20)
    assert answer.status_code == 200
    assert answer.json()["result"]["verdict"] == "accepted"


def _only_submission() -> str:
    return _submissions(1)[0]


def _submissions(count: int) -> Sequence[str]:
    """What is stored, once it is so many."""
    deadline = time.monotonic() + 60
    while True:
        with transaction() as session:
            found = session.scalars(select(Submission.id)).all()
        if len(found) == count:
            return found
        assert time.monotonic() < deadline, f"{len(found)} submissions were stored, not {count}"
        time.sleep(0.05)


def test_wait_that_is_too_short_gives_202(api: Api) -> None:
    started = time.monotonic()
    answer = api.as_("ada").post("/submit?wait=0.3", json={"stage": "double", "source": HONEST})
    assert answer.status_code == 202
    assert time.monotonic() - started >= 0.3


def test_wait_is_bounded_by_the_setting(api: Api, limits: Callable[..., None]) -> None:
    limits(wait_limit_s=0.2)
    answer = api.as_("ada").post("/submit", json={"stage": "double", "source": HONEST, "wait": 500})
    assert answer.status_code == 202


def test_many_waiters_leave_room_for_others(api: Api, limits: Callable[..., None]) -> None:
    """More waiters than the process has threads: a request that needs one is still answered at once."""
    limits(pending_limit=100)
    client = api.as_("ada")
    with ThreadPoolExecutor(40) as pool:
        waiting = [
            pool.submit(client.post, "/submit", json={"stage": "double", "source": HONEST, "wait": 100}, timeout=100)
            for _ in range(40)
        ]
        made = _submissions(40)
        assert client.get("/stages").status_code == 200
        assert not any(each.done() for each in waiting)
        for submission in made:
            Graded.finish(submission, result_of(Verdict.ACCEPTED))
        assert [each.result(timeout=60).status_code for each in waiting] == [200] * 40


def test_the_same_key_and_file_give_the_same_submission(api: Api) -> None:
    client = api.as_("ada")
    sent = {"stage": "double", "source": HONEST}
    first, second = (client.post("/submit", json=sent, headers={"Idempotency-Key": "k1"}) for _ in range(2))
    assert first.json()["id"] == second.json()["id"]
    assert first.json()["id"] != api.submit(client)["id"]


def test_the_same_key_at_the_same_time_gives_one_submission(api: Api) -> None:
    client = api.as_("ada")
    with ThreadPoolExecutor(8) as pool:
        sent = {"json": {"stage": "double", "source": HONEST}, "headers": {"Idempotency-Key": "k1"}}
        answers = [each.result() for each in [pool.submit(client.post, "/submit", **sent) for _ in range(8)]]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_the_same_key_for_another_file_is_refused(api: Api) -> None:
    client = api.as_("ada")
    for source, status in ((HONEST, 202), (HONEST + "#", 422)):
        answer = client.post("/submit", json={"stage": "double", "source": source}, headers={"Idempotency-Key": "k1"})
        assert answer.status_code == status
    assert problem(answer, 422, "idempotency_mismatch")["errors"][0]["value"] == "k1"


def test_keys_of_two_users_do_not_meet(api: Api) -> None:
    ids = {
        api.as_(handle)
        .post("/submit", json={"stage": "double", "source": HONEST}, headers={"Idempotency-Key": "k1"})
        .json()["id"]
        for handle in ("ada", "bob")
    }
    assert len(ids) == 2


@pytest.mark.parametrize("key", ["", "with space", "x" * 129, "naïve".encode("latin-1").decode("latin-1")])
def test_a_key_that_is_no_key_is_refused(api: Api, key: str) -> None:
    answer = api.as_("ada").post(
        "/submit",
        json={"stage": "double", "source": HONEST},
        headers=[(b"Idempotency-Key", key.encode("latin-1"))],
    )
    assert problem(answer, 422, "invalid_field")["errors"][0]["field"] == "header.idempotency-key"


SOURCES = {
    "empty": (b"", 422, "empty_source"),
    "blank": (b" \n\t\n", 422, "empty_source"),
    "elf": (b"\x7fELF\x02\x01\x01\x00\x00", 422, "binary_source"),
    "utf16": ("def double(x): ...".encode("utf-16"), 422, "binary_source"),
    "latin1": ("# é\n".encode("latin-1"), 422, "not_utf8"),
    "surrogate": (b"# \xed\xa0\x80\n", 422, "not_utf8"),
    "too large": (b"#" * 4097, 413, "source_too_large"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_cannot_be_graded_is_refused(api: Api, name: str) -> None:
    source, status, code = SOURCES[name]
    answer = api.as_("ada").post("/submit", data={"stage": "double"}, files={"file": ("double.py", source)})
    body = problem(answer, status, code)
    assert body["errors"][0]["field"] == "file"
    assert body["errors"][0]["accepted"]
    with transaction() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 0


def test_a_source_of_exactly_the_limit_is_taken(api: Api) -> None:
    api.submit(api.as_("ada"), HONEST + "#" * (4096 - len(HONEST)))


def test_broken_python_is_taken_for_the_worker_to_judge(api: Api) -> None:
    api.submit(api.as_("ada"), "def double(x:\n")


NAMES = [
    "double.cu",
    "double",
    ".py",
    "../double.py",
    "a\\b.py",
    "x" * 120 + ".py",
    "dou\nble.py",
    "\u202eyp.elbuod.py",
]


@pytest.mark.parametrize("filename", NAMES)
def test_a_wrong_name_is_refused_with_what_is_accepted(api: Api, filename: str) -> None:
    answer = api.as_("ada").post("/submit", json={"stage": "double", "source": HONEST, "filename": filename})
    body = problem(answer, 422, "wrong_filename")
    assert "double.py" in body["errors"][0]["accepted"]
    assert "\u202e" not in answer.text
    assert "\n" not in body["errors"][0]["value"]


def test_another_base_name_with_the_right_ending_is_taken(api: Api) -> None:
    body = api.as_("ada").post("/submit", json={"stage": "double", "source": HONEST, "filename": "My Try 2.PY"}).json()
    assert body["filename"] == "My Try 2.PY"


def test_an_unknown_stage_is_refused_with_what_looks_like_it(api: Api) -> None:
    body = problem(api.as_("ada").post("/submit", json={"stage": "duoble", "source": HONEST}), 404, "unknown_stage")
    assert "Did you mean double?" in body["detail"]
    assert body["errors"][0] == {
        "field": "stage",
        "value": "duoble",
        "problem": body["detail"],
        "accepted": "double",
    }


def test_a_stage_that_failed_its_verification_takes_nothing(api: Api) -> None:
    verify(write_stage(api.graders, "other"), verified=False)
    api.app.state.catalog.reload()
    answer = api.as_("ada").post("/submit", json={"stage": "other", "source": HONEST})
    assert "failed its verification" in problem(answer, 409, "stage_unverified")["detail"]


def test_a_new_version_takes_nothing_until_it_is_verified(api: Api) -> None:
    (api.graders / "double" / "grader.py").write_text("SECRET = 'new'\n")
    api.app.state.catalog.reload()
    client = api.as_("ada")
    sent = {"stage": "double", "source": HONEST}
    assert "No worker has verified" in problem(client.post("/submit", json=sent), 409, "stage_unverified")["detail"]
    verify(api.graders / "double")
    assert client.post("/submit", json=sent).status_code == 202


def test_the_broker_being_away_does_not_hold_a_submission_up(
    limits: Callable[..., None], graders: object, request: pytest.FixtureRequest
) -> None:
    assert graders
    limits(broker_url="redis://127.0.0.1:1/0")
    api = request.getfixturevalue("api")
    client = api.as_("ada")
    started = time.monotonic()
    body = api.submit(client)
    assert time.monotonic() - started < 10
    assert client.get(f"/submissions/{body['id']}").json()["state"] == "queued"
    with transaction() as session:
        assert session.get_one(Submission, body["id"]).rung_at is None


def test_a_broker_that_hangs_holds_no_submission_up(
    limits: Callable[..., None], graders: object, request: pytest.FixtureRequest
) -> None:
    """The kernel takes the connection; nobody ever says a word on it."""
    assert graders
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        limits(broker_url=f"redis://127.0.0.1:{silent.getsockname()[1]}/0", ring_timeout_s=5)
        api = request.getfixturevalue("api")
        client = api.as_("ada")
        started = time.monotonic()
        for _ in range(4):
            api.submit(client)
        assert time.monotonic() - started < 15, "each would have waited for 5 s"


def test_a_submission_is_rung_for_by_the_tasks_name(api: Api, broker_url: str) -> None:
    import redis

    body = api.submit(api.as_("ada"))
    client = redis.Redis(unix_socket_path=broker_url.removeprefix("redis+socket://").split("?")[0])
    message = None
    for _ in range(100):
        message = client.lindex("cpu", 0)
        if message:
            break
        time.sleep(0.05)
    assert message is not None
    envelope = json.loads(message)
    assert envelope["headers"]["task"] == "kernelgate.grade"
    assert body["id"] in envelope["headers"]["argsrepr"]
    client.close()


def test_the_database_being_away_is_said(api: Api, limits: Callable[..., None]) -> None:
    client = api.as_("ada")
    engine().dispose()
    engine.cache_clear()
    limits(database_url="postgresql+psycopg://nobody@127.0.0.1:1/none")
    answer = client.get("/me")
    problem(answer, 503, "database_unavailable")
    assert answer.headers["retry-after"] == "5"
    assert "127.0.0.1" not in answer.text


def test_submitting_needs_somebody(api: Api) -> None:
    answer = api.client.post("/submit", json={"stage": "double", "source": HONEST})
    problem(answer, 401, "not_signed_in")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_pending_submissions_are_limited(api: Api, limits: Callable[..., None]) -> None:
    limits(pending_limit=2)
    client = api.as_("ada")
    first, _ = api.submit(client), api.submit(client)
    answer = client.post("/submit", json={"stage": "double", "source": HONEST})
    problem(answer, 429, "too_many_pending")
    assert int(answer.headers["retry-after"]) > 0
    Graded.finish(first["id"], result_of(Verdict.ACCEPTED))
    api.submit(client)


def test_two_at_once_cannot_both_be_the_last(api: Api, limits: Callable[..., None]) -> None:
    limits(pending_limit=3)
    client = api.as_("ada")
    with ThreadPoolExecutor(12) as pool:
        tries = [pool.submit(client.post, "/submit", json={"stage": "double", "source": HONEST}) for _ in range(12)]
        statuses = sorted(each.result().status_code for each in tries)
    assert statuses == [202] * 3 + [429] * 9


def test_submissions_an_hour_are_limited_and_our_failures_do_not_count(api: Api, limits: Callable[..., None]) -> None:
    limits(hourly_limit=2)
    client = api.as_("ada")
    Graded.finish(api.submit(client)["id"], result_of(Verdict.JUDGE_ERROR))
    for _ in range(2):
        Graded.finish(api.submit(client)["id"], result_of(Verdict.WRONG_ANSWER))
    answer = client.post("/submit", json={"stage": "double", "source": HONEST})
    problem(answer, 429, "too_many_per_hour")
    assert 3500 < int(answer.headers["retry-after"]) <= 3600
    assert api.as_("bob").post("/submit", json={"stage": "double", "source": HONEST}).status_code == 202


def test_a_browsers_form_leads_to_the_submissions_page(api: Api) -> None:
    client = api.as_("ada")
    answer = client.post(
        "/submit",
        data={"stage": "double"},
        files={"file": ("double.py", HONEST)},
        headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"},
    )
    assert answer.status_code == 303
    assert httpx.URL(answer.headers["location"]).path.startswith("/submissions/")
