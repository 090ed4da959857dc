"""Webhooks: what is told, in the transaction that it happened in; where it may lead; signed, tried again, given up."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from api.problems import Refusal
from api.webhooks import courier, places, sending
from api.webhooks.courier import MOST_FAILURES, PAUSES, Courier
from kernelgate import lifecycle
from kernelgate.db import engine, transaction
from kernelgate.models import CourseRole, Role, Submission, now
from kernelgate.outbox import Delivery, Happening, Webhook
from kernelgate.verdicts import Verdict
from tests.api.conftest import Api, Graded, problem, result_of
from tests.api.test_courses import course_with

ALL = ["first_accepted", "record", "judge_error"]


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A program that webhooks lead to, on this machine. answers: statuses, the last one for ever."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int] = [204]
        self.pause_s = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.received.append(Received(self.path, dict(self.headers.items()), body))
                time.sleep(outer.pause_s)
                status = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                self.send_response(status)
                self.send_header("Location", f"{outer.url}/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver(limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    limits(webhook_networks="127.0.0.0/8")
    monkeypatch.setattr(courier, "_LOOK_S", 3600.0)  # the tests send by themselves
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def course(receiver: Receiver, api: Api) -> str:  # noqa: ARG001 - settings before the application
    return course_with(api, ines=CourseRole.INSTRUCTOR, ada=CourseRole.MEMBER, bob=CourseRole.MEMBER)


def held(api: Api, course: str, url: str, events: list[str] = ALL) -> dict[str, Any]:
    answer = api.as_("ines").post(f"/courses/{course}/webhooks", json={"url": url, "events": events})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def judged(api: Api, who: str, verdict: Verdict, *, speedup: tuple[float, float, float] | None = None) -> str:
    """As a worker finishes it."""
    made = str(api.submit(api.as_(who))["id"])
    Graded.run(made)
    machine = {"gpu": "H200"} if speedup else {}
    result = result_of(verdict, speedup=speedup, machine=machine)
    with transaction() as session:
        columns = lifecycle.columns_of(result)
        graded = lifecycle.Graded(result, "w")
        assert lifecycle.change(session, lifecycle.FINISH, Submission.id == made, graded=graded, columns=columns)
    return made


def sent() -> None:
    while Courier().send_one():
        pass


def test_who_stops_a_courier_finds_the_pool_unused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    del api
    monkeypatch.setattr(courier, "_LOOK_S", 0.0)
    busy = Courier()
    busy.start()
    time.sleep(0.2)
    busy.stop()
    assert not [
        each.name for each in threading.enumerate() if each.name.startswith("courier-") and each in busy._threads
    ]


def due() -> None:
    """As if the pause were over."""
    with transaction() as session:
        waits = Delivery.next_at.is_not(None)
        session.execute(update(Delivery).where(waits).values(next_at=now() - timedelta(seconds=1)))


def events(receiver: Receiver) -> list[tuple[str, str]]:
    bodies = [json.loads(each.body) for each in receiver.received]
    return [(body["event"], body.get("user", "")) for body in bodies]


def test_first_accepted_records_and_our_failures_are_told_once_and_signed(
    api: Api, receiver: Receiver, course: str
) -> None:
    secret = held(api, course, f"{receiver.url}/hook?room=1")["secret"]
    judged(api, "ada", Verdict.WRONG_ANSWER)
    judged(api, "ada", Verdict.JUDGE_ERROR)
    made = judged(api, "bob", Verdict.ACCEPTED, speedup=(2.0, 1.99, 2.01))
    judged(api, "ada", Verdict.ACCEPTED, speedup=(2.005, 1.995, 2.015))
    judged(api, "ada", Verdict.ACCEPTED, speedup=(2.5, 2.49, 2.51))
    judged(api, "otto", Verdict.ACCEPTED, speedup=(9.0, 8.99, 9.01))
    sent()
    told = [("judge_error", "ada"), ("first_accepted", "bob"), ("record", "bob"), ("record", "ada")]
    assert sorted(events(receiver)) == sorted(told)
    one = next(each for each in receiver.received if b"first_accepted" in each.body)
    assert one.path == "/hook?room=1"
    body = json.loads(one.body)
    assert (body["course"], body["stage"], body["submission"], body["gpu_model"]) == (course, "double", made, "H200")
    moment, given = (part.partition("=")[2] for part in one.headers["Kernelgate-Signature"].split(","))
    signed = f"{moment}.{one.headers['Kernelgate-Delivery']}.".encode() + one.body
    assert hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest() == given
    assert abs(int(moment) - time.time()) < 60
    view = api.as_("ines").get(f"/courses/{course}/webhooks")
    assert secret not in view.text
    assert {each["answer"] for each in view.json()[0]["deliveries"]} == {"answered 204"}


def test_what_is_rolled_back_is_told_to_nobody(api: Api, receiver: Receiver, course: str) -> None:
    held(api, course, receiver.url)
    made = str(api.submit(api.as_("ada"))["id"])
    Graded.run(made)
    with Session(engine()) as session:
        graded = lifecycle.Graded(result_of(Verdict.ACCEPTED), "w")
        assert lifecycle.change(session, lifecycle.FINISH, Submission.id == made, graded=graded)
        assert session.query(Delivery).count() == 1
        session.rollback()
    with transaction() as session:
        assert session.query(Delivery).count() == 0
    sent()
    assert receiver.received == []


def test_a_rejudged_first_is_not_first_again(api: Api, receiver: Receiver, course: str) -> None:
    held(api, course, receiver.url, ["first_accepted"])
    made = judged(api, "ada", Verdict.ACCEPTED)
    api.as_("ines").post(f"/courses/{course}/submissions/{made}/rejudge")
    Graded.run(made)
    with transaction() as session:
        result = result_of(Verdict.ACCEPTED)
        columns = lifecycle.columns_of(result)
        lifecycle.change(
            session, lifecycle.FINISH, Submission.id == made, graded=lifecycle.Graded(result, "w"), columns=columns
        )
    sent()
    assert len(receiver.received) == 1


def test_what_fails_is_tried_again_later_and_given_up_in_the_end(api: Api, receiver: Receiver, course: str) -> None:
    held(api, course, receiver.url)
    receiver.answers = [500]
    judged(api, "ada", Verdict.JUDGE_ERROR)
    sent()
    sent()
    assert len(receiver.received) == 1, "it is not due again yet"
    for tries in range(1, len(PAUSES) + 1):
        with transaction() as session:
            row = session.query(Delivery).one()
            assert row.tries == tries
            assert row.next_at is not None
            assert abs((row.next_at - now() - PAUSES[tries - 1]).total_seconds()) < 60
        due()
        sent()
    with transaction() as session:
        row = session.query(Delivery).one()
        assert (row.next_at, row.delivered_at, row.answer) == (None, None, "answered 500")
    assert len(receiver.received) == len(PAUSES) + 1
    names = {each.headers["Kernelgate-Delivery"] for each in receiver.received}
    bodies = {each.body for each in receiver.received}
    assert (len(names), len(bodies)) == (1, 1), "what comes twice can be known by its id"


def test_a_webhook_that_keeps_failing_is_off_until_it_is_tested(api: Api, receiver: Receiver, course: str) -> None:
    number = held(api, course, receiver.url)["id"]
    receiver.answers = [500]
    with transaction() as session:
        session.execute(update(Webhook).values(failures=MOST_FAILURES - 1))
    judged(api, "ada", Verdict.JUDGE_ERROR)
    sent()
    assert api.as_("ines").get(f"/courses/{course}/webhooks").json()[0]["off_at"]
    judged(api, "ada", Verdict.JUDGE_ERROR)
    due()
    sent()
    assert len(receiver.received) == 1
    receiver.answers = [200]
    assert api.as_("ines").post(f"/courses/{course}/webhooks/{number}/test").json()["off_at"] is None
    sent()
    assert [name for name, _ in events(receiver)] == ["judge_error", "judge_error", "ping"]


def test_redirects_are_not_followed_and_gone_means_off(api: Api, receiver: Receiver, course: str) -> None:
    held(api, course, f"{receiver.url}/here")
    receiver.answers = [302, 410]
    judged(api, "ada", Verdict.JUDGE_ERROR)
    sent()
    assert [each.path for each in receiver.received] == ["/here"]
    shown = api.as_("ines").get(f"/courses/{course}/webhooks").json()[0]
    assert shown["deliveries"][0]["answer"] == "answered 302; redirects are not followed"
    due()
    sent()
    assert api.as_("ines").get(f"/courses/{course}/webhooks").json()[0]["off_at"]


def test_who_answers_slowly_is_cut_off(
    api: Api, receiver: Receiver, course: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api
    assert course
    monkeypatch.setattr(sending, "SECONDS", 0.3)
    receiver.pause_s = 3.0
    answer = sending.send(receiver.url, "s", "n", "ping", {})
    assert answer == (0, "no answer: it took longer than ten seconds")


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",  # noqa: S104
        "255.255.255.255", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
        "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::1",
    ],
)  # fmt: skip
def test_addresses_inside_are_not_reached(own_settings: None, address: str) -> None:  # noqa: ARG001
    assert not places.may_reach(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700:4700::1111"])
def test_public_addresses_are_reached(own_settings: None, address: str) -> None:  # noqa: ARG001
    assert places.may_reach(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/", "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1:8443/", "file:///etc/passwd",
        "https://hooks.example:25/", "https://user:word@hooks.example/", "https://hooks.example/#part", "https://",
        "gopher://hooks.example/", "https://hooks.example/\r\nX: y", "https://[::ffff:169.254.169.254]/", "https://[/",
    ],
)  # fmt: skip
def test_such_urls_are_refused(own_settings: None, url: str) -> None:  # noqa: ARG001
    with pytest.raises(Refusal):
        places.check_url(url)


def test_a_name_that_leads_inside_is_not_connected_to(
    api: Api, receiver: Receiver, course: str, limits: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api
    assert course
    limits(webhook_networks="192.0.2.0/24")
    asked: list[str] = []

    def lookup(host: str, port: int, **_: object) -> list[Any]:
        asked.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(places.socket, "getaddrinfo", lookup)
    answer = sending.send(receiver.url.replace("127.0.0.1", "inside.example"), "s", "n", "ping", {})
    assert (answer, asked) == ((0, "the name leads to no public address"), ["inside.example"])
    assert receiver.received == []


def test_webhooks_are_few_and_their_course_s(api: Api, receiver: Receiver, course: str) -> None:
    number = held(api, course, receiver.url)["id"]
    for _ in range(4):
        held(api, course, receiver.url)
    body = {"url": receiver.url, "events": ALL}
    problem(api.as_("ines").post(f"/courses/{course}/webhooks", json=body), 409, "too_many_webhooks")
    wrong = {"url": receiver.url, "events": ["ping"]}
    problem(api.as_("ines").post(f"/courses/{course}/webhooks", json=wrong), 422, "invalid_field")
    other = course_with(api, egon=CourseRole.INSTRUCTOR)
    problem(api.as_("egon").post(f"/courses/{other}/webhooks/{number}/test"), 404, "not_found")
    problem(api.as_("egon").post(f"/courses/{other}/webhooks/{number}/remove"), 404, "not_found")
    assert api.as_("ines").post(f"/courses/{course}/webhooks/{number}/remove").status_code == 204


def test_the_service_s_own_are_an_administrator_s(api: Api, receiver: Receiver, course: str) -> None:
    assert course
    root = api.as_("root", Role.ADMIN)
    number = root.post("/admin/webhooks", json={"url": receiver.url, "events": ["first_accepted"]}).json()["id"]
    for address in ("/admin/webhooks", f"/admin/webhooks/{number}/test", f"/admin/webhooks/{number}/remove"):
        problem(api.as_("ines").post(address, json={"url": receiver.url, "events": ALL}), 403, "missing_scope")
    judged(api, "otto", Verdict.ACCEPTED)
    assert root.post(f"/admin/webhooks/{number}/test").is_success
    sent()
    assert sorted(events(receiver)) == [("first_accepted", "otto"), ("ping", "")]
    assert root.get("/admin/webhooks").json()[0]["events"] == [Happening.FIRST_ACCEPTED]
    assert root.post(f"/admin/webhooks/{number}/remove").status_code == 204
