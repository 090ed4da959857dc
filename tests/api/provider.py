"""A real OpenID Connect provider in a process of its own, and browsers without script that sign in with it."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx

from api.problems import KINDS
from kernelgate.settings import ROOT
from tests.api.conftest import Api

NODE = Path(sys.executable).with_name("node")
PROGRAM = Path(__file__).with_name("provider.mjs")
CLIENT = ("kernelgate", "a secret: of+the/client")
ACCEPT = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


@contextmanager
def serving() -> Iterator[str]:
    """The provider on a free port; its issuer."""
    port = free_port()
    process = subprocess.Popen(
        [NODE, PROGRAM, str(port)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.communicate(timeout=10)  # it ends when its input does


class Person:
    """A browser without script, and what somebody does with it at the provider's forms."""

    def __init__(self, api: Api) -> None:
        self.url = api.url
        self.here = api.open(**ACCEPT)
        self.there = api.open(**ACCEPT)
        """The same browser at the provider: its cookies are of another place."""

    def leave(self, **query: str) -> httpx.URL:
        """Presses the button; the address at the provider that it leads to."""
        answer = self.here.get("/sign-in/provider", params=query)
        assert answer.status_code == 303, answer.text
        return httpx.URL(answer.headers["location"])

    def authenticate(self, address: httpx.URL | str, name: str) -> httpx.URL:
        """Fills the provider's forms in; where it then sends the browser."""
        for _ in range(12):
            answer = self.there.get(address)
            if answer.is_redirect:
                address = answer.url.join(answer.headers["location"])
                if str(address).startswith(self.url):
                    return address
                continue
            fields = (
                {"prompt": "login", "login": name, "password": "any"}
                if 'name="login"' in answer.text
                else {"prompt": "consent"}
            )
            action = re.search(r'action="([^"]+)"', answer.text)
            assert action, answer.text
            sent = self.there.post(answer.url.join(action[1]), data=fields)
            address = sent.url.join(sent.headers["location"])
            if str(address).startswith(self.url):
                return address
        raise AssertionError(f"the provider does not let {name} go: {address}")

    def sign_in(self, name: str, **query: str) -> httpx.Response:
        """All the way, to the page that comes after it."""
        back = self.authenticate(self.leave(**query), name)
        return self.arrive(back)

    def arrive(self, back: httpx.URL) -> httpx.Response:
        return self.here.get(back, follow_redirects=True)

    def choose(self, **fields: str) -> httpx.Response:
        return self.here.post("/sign-in/provider/choose", data=fields, follow_redirects=True)

    @property
    def handle(self) -> str | None:
        """Who is signed in here."""
        answer = self.here.get("/me", headers={"accept": "application/json"})
        return str(answer.json()["handle"]) if answer.status_code == 200 else None


def told(answer: httpx.Response, code: str) -> bool:
    """Whether it is the page of this problem."""
    return answer.status_code == KINDS[code].status and KINDS[code].title in answer.text


def asked(address: httpx.URL) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(str(address)).query))
