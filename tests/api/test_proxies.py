"""Forwarding headers: who is believed, and what whoever is not gains by sending them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import httpx
import pytest
from fastapi import Request
from pydantic import ValidationError
from sqlalchemy import create_engine, pool, select
from sqlalchemy.orm import Session as Database

from api.app import create_app
from api.limits import address_of
from kernelgate.db import transaction
from kernelgate.models import SignInFailure
from kernelgate.settings import Settings
from tests.api.conftest import running
from tests.conftest import Service

Behind = Callable[[str], AbstractContextManager[httpx.Client]]
LIES = (
    {"X-Forwarded-For": "{}"},
    {"X-Forwarded-For": "{}, 127.0.0.1"},
    {"Forwarded": "for={}"},
    {"X-Real-IP": "{}"},
    {"X-Client-IP": "{}"},
    {"CF-Connecting-IP": "{}"},
    {"True-Client-IP": "{}"},
)


@pytest.fixture
def behind(graders: object, limits: Callable[..., None]) -> Behind:  # noqa: ARG001
    """A running API that takes these addresses for proxies."""

    @contextmanager
    def started(proxies: str) -> Iterator[httpx.Client]:
        limits(proxies=proxies, sign_in_limit=3)
        with running(create_app()) as url, httpx.Client(base_url=url, timeout=30) as client:
            yield client

    return started


def guess(client: httpx.Client, **headers: str) -> int:
    return client.post("/sign-in", json={"token": "guess"}, headers=headers).status_code


def counted() -> list[str]:
    with transaction() as database:
        return [row.address for row in database.query(SignInFailure).order_by(SignInFailure.id)]


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: next(iter(lie)))
def test_nobody_is_a_proxy_unless_a_setting_says_so(behind: Behind, lie: dict[str, str]) -> None:
    """Guessing on under other addresses; whoever sends this is on the machine itself, as a proxy would be."""
    with behind("") as client:
        statuses = [
            guess(client, **{name: value.format(f"198.51.100.{number}") for name, value in lie.items()})
            for number in range(5)
        ]
    assert statuses == [401, 401, 401, 429, 429]
    assert counted() == ["127.0.0.1"] * 3


def test_a_proxy_elsewhere_is_nobody_here(behind: Behind) -> None:
    with behind("192.0.2.7, 10.0.0.0/8") as client:
        assert [guess(client, **{"X-Forwarded-For": f"198.51.100.{n}"}) for n in range(4)] == [401, 401, 401, 429]


def test_the_proxy_that_is_named_says_whose_request_it_is(behind: Behind) -> None:
    with behind("127.0.0.1") as client:
        assert [guess(client, **{"X-Forwarded-For": f"198.51.100.{n}"}) for n in range(4)] == [401] * 4
        assert guess(client) == 401
    assert counted() == [*(f"198.51.100.{n}" for n in range(4)), "127.0.0.1"]


@pytest.mark.parametrize(
    ("proxies", "sent"),
    [
        ("127.0.0.1", "203.0.113.9, 198.51.100.1"),
        ("127.0.0.1,10.0.0.0/8", "203.0.113.9, 198.51.100.1, 10.1.2.3"),
        ("127.0.0.1", "127.0.0.1, 198.51.100.1"),
        ("127.0.0.1", "198.51.100.1:4711"),
    ],
)
def test_of_a_list_the_last_address_that_is_no_proxy_counts(behind: Behind, proxies: str, sent: str) -> None:
    """What stands before it the visitor wrote: a proxy appends."""
    with behind(proxies) as client:
        guess(client, **{"X-Forwarded-For": sent})
    assert counted() == ["198.51.100.1"]


@pytest.mark.parametrize(("proxies", "scheme"), [("", "http"), ("192.0.2.7", "http"), ("127.0.0.1", "https")])
def test_https_is_believed_of_the_proxy_alone(behind: Behind, proxies: str, scheme: str) -> None:
    with behind(proxies) as client:
        headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example", "Accept": "text/html"}
        text = client.get("/stages/double", headers=headers).text
        assert f"{scheme}://{client.base_url.netloc.decode()}/submit" in text
    assert "evil.example" not in text


def test_an_ipv6_network_is_one_address() -> None:
    def of(host: str) -> str:
        return address_of(Request({"type": "http", "client": (host, 1), "headers": []}))

    assert of("2001:db8:1:2::1") == of("2001:db8:1:2:ffff:ffff:ffff:ffff") == "2001:db8:1:2::/64"
    assert of("2001:db8:1:3::1") != of("2001:db8:1:2::1")
    assert of("::ffff:198.51.100.1") == of("198.51.100.1") == "198.51.100.1"
    assert len(of("x" * 5000)) == 100


@pytest.mark.parametrize(
    "value", ["*", "localhost", "proxy.example", "10.0.0.1/8", "0.0.0.0/0", "::/0", "127.0.0.1;::1"]
)
def test_what_names_no_proxy_is_refused_when_the_service_starts(value: str) -> None:
    with pytest.raises(ValidationError):
        Settings(proxies=value)


def test_the_server_that_is_shipped_believes_nobody_either(service: Service) -> None:
    """`kernelgate serve` itself, whose web server would believe everybody on its own machine, and FORWARDED_ALLOW_IPS."""
    for number in range(3):
        answer = httpx.post(
            f"{service.url}/sign-in", json={"token": "guess"}, headers={"X-Forwarded-For": f"203.0.113.{number}"}
        )
        assert answer.status_code in (401, 429)
    engine = create_engine(service.env["KERNELGATE_DATABASE_URL"], poolclass=pool.NullPool)
    with Database(engine) as database:
        addresses = set(database.scalars(select(SignInFailure.address)))
    assert addresses == {"127.0.0.1"}
